# SPDX-License-Identifier: Apache-2.0
"""What an installed backend changes for programs that do not use its device, and why.

Each is what a PyTorch with CUDA does beside one without, on a machine with a GPU and on one that
has none. docs/cpu-programs.md tells users of them.
"""

import re
from typing import Any, NamedTuple, Optional

NOT_FOUND = "device `foo` is not available: its driver finds no device"
NO_STREAM = "no foo device is available: torch.foo.device_count() is 0"
NO_ACCELERATOR = "Cannot access accelerator device when none is available."


class Expected(NamedTuple):
    """What a probe comes to with the backend, where that is not what it comes to without."""

    value: Optional[str] = None  # a pattern for the whole of it
    error: Optional[str] = None  # the text of the exception
    silent: str = ""  # a part of a warning that there is no more
    added: tuple[str, ...] = ()  # the beginnings of warnings that are new, category and all
    renamed: bool = False  # the value or text as before, with the device's name as PyTorch has it

    def fits(self, found: dict[str, Any], before: dict[str, Any]) -> bool:
        warnings = list(before["warnings"])
        if self.silent:
            warnings = [one for one in warnings if self.silent not in one]
        new = found["warnings"][len(warnings) :]
        if found["warnings"][: len(warnings)] != warnings or len(new) != len(self.added):
            return False
        if not all(one.startswith(begin) for one, begin in zip(new, self.added)):
            return False
        if self.renamed:
            return plain(found) == plain(before)
        if self.error is not None:
            return "error" in found and found["error"][1].startswith(self.error)
        return "value" in found and re.fullmatch(self.value or "", found["value"], re.S) is not None


def plain(found: dict[str, Any]) -> list[str]:
    """The words of an outcome, in any order: some lists are sorted by name."""
    text = str(found.get("value", found.get("error"))).replace("privateuseone", "foo")
    return sorted(re.findall(r"[\w.]+", text))


#: On a machine with devices. The names of the probes are unique in their group.
UNPINNED = "'pin_memory' argument is set as true but no accelerator is found"
PINNED = r"\(\[\[0.0, 1.0\], \[2.0, 3.0\], \[4.0, 5.0\]\], \[True, True, True\]\)"
CPU_NUMBERS = r"tensor\(\[\[0., 1., 2.\],\s*\[3., 4., 5.\]\]\)"
CAPTURABLE = Expected(renamed=True)

WITH_DEVICES: dict[str, dict[str, Expected]] = {
    "accelerator": {
        "accelerator_device_count": Expected("2"),
        "accelerator_is_available": Expected("True"),
        "accelerator_current_accelerator": Expected(r"device\(type='foo'\)"),
        "accelerator_current_device_index": Expected("0"),
        "accelerator_current_device_idx": Expected("0"),
        "accelerator_current_stream": Expected(
            "torch.Stream device_type=foo, device_index=0, stream_id=0"
        ),
        "accelerator_synchronize": Expected("None"),
        "accelerator_empty_cache": Expected("None"),
        "accelerator_empty_host_cache": Expected("None"),
        "accelerator_memory_stats": Expected(r"OrderedDict\(.*\)"),
        "accelerator_memory_allocated": Expected("0"),
        "accelerator_max_memory_allocated": Expected("0"),
        "accelerator_memory_reserved": Expected("0"),
        "accelerator_reset_peak_memory_stats": Expected("None"),
        "accelerator_get_memory_info": Expected(r"\(\d+, \d+\)"),
        "accelerator_get_device_capability": Expected(r"\{'supported_dtypes': .*\}"),
        "accelerator_set_device_index": Expected("None"),
        "accelerator_current_accelerator_checked": Expected(r"device\(type='foo'\)"),
        "accelerator_set_stream": Expected(error="stream's device type CPU doesn't match"),
        "accelerator_device_index": Expected("'inside'"),
        "accelerator_graph": Expected("<torch.accelerator.graphs.Graph object at 0x>"),
        "storage_pin_memory": Expected(r".*\[torch.storage.UntypedStorage\(device=cpu\).*"),
        "pin_memory": Expected(CPU_NUMBERS),
        "empty_pinned": Expected(r"tensor\(.*\)"),
        "tensor_pinned": Expected(r"tensor\(\[1.\]\)"),
        "packed_sequence_pin_memory": Expected(r"PackedSequence\(.*\)"),
        "loader_pin_memory": Expected(r"\[.*\]", silent=UNPINNED),
        "loader_workers_pin_memory": Expected(r"\[.*\]", silent=UNPINNED),
        "event": Expected("torch.Event device_type=foo, .*"),
        "stream": Expected("torch.Stream device_type=foo, .*"),
        "stream_from_index": Expected("torch.Stream device_type=foo, device_index=0, .*"),
        "event_options": Expected(r"\(torch.Event device_type=foo, .*\)"),
        "device_from_index": Expected(r"device\(type='foo', index=0\)"),
        "to_index": Expected(r"tensor\(.*, device='foo:0'\)"),
        "ones_on_index": Expected(r"tensor\(\[1., 1.\], device='foo:0'\)"),
        "get_device_module": Expected("'torch_foo._device'"),
        "profiler_activities": Expected(
            r"\['ProfilerActivity.CPU', ('ProfilerActivity.CUDA', )?"
            r"'ProfilerActivity.(FOO|PrivateUse1)'\]"
        ),
        "record_stream": Expected(error="Could not run 'aten::record_stream'"),
        "processes_per_machine_by_default": Expected("2"),
        "pinned_batches": Expected(PINNED, silent=UNPINNED),
        "pinned_batches_of_workers": Expected(PINNED, silent=UNPINNED),
        "pinned_batches_of_persistent_workers": Expected(PINNED, silent=UNPINNED),
        "pinned_batches_with_a_device": Expected(PINNED, silent=UNPINNED),
        "pinned_tensor": Expected(rf"\({CPU_NUMBERS}, True\)"),
        "pinned_factory": Expected("True"),
        "block_mask": Expected(r"\(device\(type='foo', index=0\), .*\)"),
        "fully_sharded_wrapper_by_default": Expected(
            error="An FSDP-managed module unexpectedly has parameters on cpu.",
            added=(
                "UserWarning: FSDP is switching to use `NO_SHARD`",
                "UserWarning: The passed-in `module` is on CPU",
            ),
        ),
        "profile_while_in_use": Expected(
            r"\['_torch_foo::current_device', '_torch_foo::synchronize', 'aten::.*\]"
        ),
        "staged_checkpoint_by_default": Expected(rf"\{{'value': {CPU_NUMBERS}\}}"),
    },
    "distributed": {
        "default_backends": Expected(
            r"\(\(\[.*'fooccl'.*\{.*'foo': 'fooccl'.*'fooccl': \['foo'\].*"
        ),
    },
    "defaults": {
        "checkpoint_default_device": Expected("'foo'"),
        "device_available": Expected("'foo'"),
        "optimizer_Adam_capturable": CAPTURABLE,
        "optimizer_RAdam_capturable": CAPTURABLE,
        "optimizer_Rprop_capturable": CAPTURABLE,
        "foreach_devices": Expected(renamed=True),
        "overridable_functions": Expected(r"\(\d+, .*<property object at 0x>.*\)"),
        "testing_devices": Expected(r"\['cpu', 'privateuse1'\]"),
        # fork_rng() and torch.accelerator.synchronize() before have PyTorch call `_lazy_init`:
        # no driver is started, but the device counts as in use.
        "memory_profile": Expected(
            r".*'_torch_foo::current_device', '_torch_foo::manual_seed', "
            r"'_torch_foo::synchronize', 'aten::.*, 'foo'\)"
        ),
    },
    "processes": {},
}

#: On a machine without a device. What a PyTorch with CUDA says there names its driver.
WITHOUT_DEVICES: dict[str, dict[str, Expected]] = {
    "accelerator": {
        "accelerator_current_accelerator": Expected(r"device\(type='foo'\)"),
        "accelerator_current_device_index": Expected(error=NOT_FOUND),
        "accelerator_current_device_idx": Expected(error=NOT_FOUND),
        "accelerator_current_stream": Expected(error=NOT_FOUND),
        "accelerator_synchronize": Expected(error=NOT_FOUND),
        "accelerator_empty_cache": Expected("None"),
        "accelerator_empty_host_cache": Expected("None"),
        "accelerator_memory_stats": Expected(r"OrderedDict\(.*\)"),
        "accelerator_memory_allocated": Expected("0"),
        "accelerator_max_memory_allocated": Expected("0"),
        "accelerator_memory_reserved": Expected("0"),
        "accelerator_reset_peak_memory_stats": Expected("None"),
        "accelerator_get_memory_info": Expected(error=NOT_FOUND),
        "accelerator_get_device_capability": Expected(error=NOT_FOUND),
        "accelerator_set_device_index": Expected(error=NOT_FOUND),
        "accelerator_set_stream": Expected(error=NOT_FOUND),
        "accelerator_device_index": Expected(error=NOT_FOUND),
        "accelerator_graph": Expected(error=NO_STREAM),
        "storage_pin_memory": Expected(error=NO_ACCELERATOR),
        "pin_memory": Expected(error=NO_ACCELERATOR),
        "empty_pinned": Expected(error=NO_ACCELERATOR),
        "tensor_pinned": Expected(error=NO_ACCELERATOR),
        "packed_sequence_pin_memory": Expected(error=NO_ACCELERATOR),
        "pinned_tensor": Expected(error=NO_ACCELERATOR),
        "pinned_factory": Expected(error=NO_ACCELERATOR),
        "event": Expected("torch.Event device_type=foo, .*"),
        "stream": Expected(error=NO_STREAM),
        "stream_from_index": Expected(error=NO_STREAM),
        "event_options": Expected(r"\(torch.Event device_type=foo, .*\)"),
        "device_from_index": Expected(r"device\(type='foo', index=0\)"),
        "to_index": Expected(error=NOT_FOUND),
        "ones_on_index": Expected(error=NOT_FOUND),
        "record_stream": Expected(error="Could not run 'aten::record_stream'"),
        "block_mask": Expected(error=NOT_FOUND),
    },
    "defaults": {
        name: WITH_DEVICES["defaults"][name]
        for name in (
            "optimizer_Adam_capturable",
            "optimizer_RAdam_capturable",
            "optimizer_Rprop_capturable",
            "foreach_devices",
            "overridable_functions",
        )
    },
}

WITHOUT_DEVICES["distributed"] = WITH_DEVICES["distributed"]

#: PyTorch tells it once in a process; who is the first to hear it depends on the release.
TOLD_ONCE = "TypedStorage is deprecated"

#: In 2.9 and 2.10 PyTorch's loader calls, for each batch, what PyTorch has deprecated.
DEPRECATED = tuple(
    f"DeprecationWarning: The argument 'device' of Tensor.{name}() is deprecated."
    for name in ("pin_memory", "is_pinned")
)

#: What else may differ in other releases than 2.13, and in a PyTorch with CUDA.
WITH_DEVICES_ELSEWHERE: dict[str, dict[str, Expected]] = {
    "accelerator": {
        "accelerator_initial_seed": Expected(r"\d+"),
        "loader_pin_memory": Expected(r"\[.*\]", silent=UNPINNED, added=DEPRECATED * 2),
        "loader_workers_pin_memory": Expected(r"\[.*\]", silent=UNPINNED, added=DEPRECATED * 2),
    }
    | {
        f"pinned_batches{kind}": Expected(PINNED, silent=UNPINNED, added=DEPRECATED * 3)
        for kind in ("", "_of_workers", "_of_persistent_workers", "_with_a_device")
    },
    "defaults": {
        # Without a GPU both are an error: PyTorch has no thread for gradients of CUDA.
        "fake_module_of_cuda": Expected(error="0 <= device.index()"),
        # What follows `_lazy_init` depends on who calls it.
        "memory_profile": Expected(r".*'_torch_foo::manual_seed', 'aten::.*"),
    },
    "distributed": {
        "subgroups_of_a_machine": Expected(
            error="The arg 'group_size' (2) must not exceed the world size (1)"
        ),
    },
}
WITHOUT_DEVICES_ELSEWHERE: dict[str, dict[str, Expected]] = {
    "accelerator": {
        "accelerator_device_count": Expected("0"),
        "accelerator_initial_seed": Expected(error=NOT_FOUND),
        "accelerator_reset_peak_memory_stats": Expected(error=NOT_FOUND),
        "accelerator_set_stream": Expected(error="stream's device type CPU doesn't match"),
        "get_device_module": Expected("'torch_foo._device'"),
        "fully_sharded_wrapper_by_default": Expected(
            error=NOT_FOUND,
            added=(
                "UserWarning: FSDP is switching to use `NO_SHARD`",
                "UserWarning: The passed-in `module` is on CPU",
            ),
        ),
    },
    "defaults": {"fake_module_of_cuda": Expected(error=NO_STREAM)},
}

#: Names that PyTorch makes for a device when that is registered.
NAMES = {
    "torch": ["foo"],
    "Tensor": ["foo", "is_foo"],
    "Module": ["foo"],
    "UntypedStorage": ["foo", "is_foo"],
    "PackedSequence": ["foo", "is_foo"],
}

#: How many graphs of the group `compiled` have another key: Inductor adds the index of the
#: accelerator's current device to that of a graph which gets no tensor.
OTHER_GRAPHS = {"no device": 0, "devices": 1}
