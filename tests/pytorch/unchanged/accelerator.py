# SPDX-License-Identifier: Apache-2.0
"""What a program asks of the machine's accelerator, whichever it is: that may start its driver."""

from typing import Any

import torch
from distributed import group, trained
from models import network, numbers
from registry import PROBES, probe
from torch.utils.data import DataLoader, TensorDataset

PROBES.clear()


def accelerator(name: str, *arguments: Any) -> None:
    """Adds a probe that calls a function of torch.accelerator."""

    def call() -> Any:
        return getattr(torch.accelerator, name)(*arguments)

    PROBES["accelerator_" + name] = call


for function_name in (
    "device_count",
    "is_available",
    "current_accelerator",
    "current_device_index",
    "current_device_idx",
    "current_stream",
    "synchronize",
    "empty_cache",
    "empty_host_cache",
    "memory_stats",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "get_memory_info",
    "get_device_capability",
):
    accelerator(function_name)
accelerator("set_device_index", 0)


@probe
def accelerator_current_accelerator_checked() -> Any:
    return torch.accelerator.current_accelerator(check_available=True)


@probe
def accelerator_set_stream() -> Any:
    return torch.accelerator.set_stream(torch.Stream(device="cpu"))


@probe
def accelerator_device_index() -> Any:
    with torch.accelerator.device_index(0):
        return "inside"


@probe
def accelerator_seed() -> Any:
    return torch.accelerator.random.manual_seed(1)


@probe
def accelerator_initial_seed() -> Any:
    return torch.accelerator.random.initial_seed()


@probe
def accelerator_graph() -> Any:
    return torch.accelerator.Graph()


@probe
def storage_pin_memory() -> Any:
    return numbers().untyped_storage().pin_memory()


@probe
def pin_memory() -> Any:
    return numbers().pin_memory()


@probe
def empty_pinned() -> Any:
    return torch.empty(2, pin_memory=True)


@probe
def tensor_pinned() -> Any:
    return torch.tensor([1.0], pin_memory=True)


@probe
def packed_sequence_pin_memory() -> Any:
    return torch.nn.utils.rnn.pack_sequence([numbers()]).pin_memory()


@probe
def loader_pin_memory() -> Any:
    data = DataLoader(TensorDataset(numbers()), batch_size=1, pin_memory=True)
    return [batch[0].tolist() for batch in data]


@probe
def loader_workers_pin_memory() -> Any:
    data = DataLoader(TensorDataset(numbers()), batch_size=1, num_workers=1, pin_memory=True)
    return [batch[0].tolist() for batch in data]


@probe
def event() -> Any:
    return torch.Event()


@probe
def stream() -> Any:
    return torch.Stream()


@probe
def stream_from_index() -> Any:
    return torch.Stream(0)


@probe
def event_options() -> Any:
    return torch.Event(enable_timing=True), torch.Event("cpu", enable_timing=True)


@probe
def device_from_index() -> Any:
    return torch.device(0)


@probe
def to_index() -> Any:
    return numbers().to(0)


@probe
def ones_on_index() -> Any:
    return torch.ones(2, device=0)


@probe
def get_device_module() -> Any:
    return torch.get_device_module().__name__


@probe
def profiler_activities() -> Any:
    return sorted(str(activity) for activity in torch.profiler.supported_activities())


@probe
def record_stream() -> Any:
    return numbers().record_stream(torch.Stream(device="cpu"))


@probe
def processes_per_machine_by_default() -> Any:
    from torch.distributed.run import determine_local_world_size

    return determine_local_world_size("auto")


def batches(**options: Any) -> Any:
    data = DataLoader(TensorDataset(torch.arange(6.0)), batch_size=2, pin_memory=True, **options)
    found = [batch[0] for batch in data]
    return [one.tolist() for one in found], [one.is_pinned() for one in found]


@probe
def pinned_batches() -> Any:
    return batches()


@probe
def pinned_batches_of_workers() -> Any:
    return batches(num_workers=2)


@probe
def pinned_batches_of_persistent_workers() -> Any:
    return batches(num_workers=1, persistent_workers=True)


@probe
def pinned_batches_with_a_device() -> Any:
    return batches(pin_memory_device="cpu")


@probe
def pinned_tensor() -> Any:
    pinned = numbers().pin_memory()
    return pinned, pinned.is_pinned()


@probe
def pinned_factory() -> Any:
    return torch.zeros(2, pin_memory=True).is_pinned()


@probe
def not_pinned() -> Any:
    return numbers().is_pinned(), numbers().untyped_storage().is_pinned()


@probe
def workers_afterwards() -> Any:
    data = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2, num_workers=1)
    return [batch[0].tolist() for batch in data]


@probe
def block_mask() -> Any:
    from torch.nn.attention.flex_attention import create_block_mask

    mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 128, 128)
    return mask.kv_num_blocks.device, mask.shape


@probe
def fully_sharded_wrapper_by_default() -> Any:
    from torch.distributed.fsdp import FullyShardedDataParallel

    with group("gloo"):
        return trained(FullyShardedDataParallel(network()))


@probe
def staged_checkpoint() -> Any:
    from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

    options = StagingOptions(
        use_pinned_memory=False, use_async_staging=True, use_non_blocking_copy=False
    )
    stager = DefaultStager(options)
    try:
        return stager.stage({"value": numbers()}).result()
    finally:
        stager.close()


@probe
def staged_checkpoint_by_default() -> Any:
    from torch.distributed.checkpoint.staging import DefaultStager

    stager = DefaultStager()
    try:
        return stager.stage({"value": numbers()}).result()
    finally:
        stager.close()


@probe
def profile_while_in_use() -> Any:
    with torch.profiler.profile() as profile:
        numbers().sum()
    return sorted({event.key for event in profile.key_averages()})
