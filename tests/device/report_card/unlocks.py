# SPDX-License-Identifier: Apache-2.0
"""What each group of optional functions of a Runtime is for, in the words of docs/runtime.md."""

#: Group of `capabilities()`: what a program can do with it.
UNLOCKS = {
    "streams": "torch.Stream, and work that continues after a call returns",
    "events": "torch.Event, wait_stream, and memory that streams share without waiting",
    "timing": "torch.Event.elapsed_time, and times on the device in torch.profiler",
    "memory_info": "mem_get_info, and limits on a fraction of the memory",
    "pinned_memory": "pin_memory, DataLoaders that pin, and copies that the host need not wait for",
    "peer": "copies between devices that bypass the host",
    "graphs": "torch.accelerator.Graph: work is recorded once and run many times",
    "copy_elements": "copies with strides, and to another dtype, that stay on the device",
    "properties": "get_device_name, get_device_properties and get_device_capability",
    "metadata": "what the backend keeps with a tensor is saved and loaded with it",
    "communicators": "torch.distributed by the driver, without copies to the host",
    "all_reduce": "all_reduce and reduce by the driver, and so DistributedDataParallel",
    "reduce_scatter": "reduce_scatter by the driver, and so FSDP; else it is made of all_reduce",
    "all_gather": "all_gather by the driver, and so FSDP; else it is made of broadcast",
    "broadcast": "broadcast by the driver",
    "messages": "gather, scatter, all_to_all and, in groups with a device_id, send and recv by "
    "the driver",
    "host_accessible": "operators without a kernel use the device's memory without a copy",
}

#: What backend.toml or the machine gives rather than a function.
OTHERS = {
    "fallback": "operators without a kernel run on the CPU",
    "autocast": "torch.autocast on the device",
    "devices": "several devices in one program",
    "random": "a torch.Generator on each device, torch.manual_seed and states that can be saved",
}

#: What enables these.
ENABLED_BY = {
    "fallback": '[operators] fallback = "cpu"',
    "autocast": "[amp] dtypes",
    "devices": "device_count",
    "random": "BackendKit",
}
