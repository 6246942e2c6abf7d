# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""What trains in several processes and saves its state: on the device, where PyTorch knows others.

The functions here change modules of PyTorch; see `_integrations.py`.
"""

import contextlib
import functools
import importlib
import inspect
import types
from typing import Any, Callable

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)
_defaults = importlib.import_module("._defaults", __package__)
_distributed = importlib.import_module("._distributed", __package__)

_NAME: str = _device._NAME
#: The operators of `fully_shard`, and the functions in its module that compute them on any device.
SHARDING = {
    "all_gather_copy_in": "all_gather_copy_in_cuda",
    "split_with_sizes_copy": "split_with_sizes_copy",
    "chunk_cat": "chunk_cat",
}


def patch_data_parallel(module: types.ModuleType) -> None:
    """Makes DistributedDataParallel work for a group made before the process used the device.

    Its hooks that compress gradients to bfloat16 need CUDA or XPU in PyTorch's opinion.
    """
    if not _distributed.is_registered():
        return
    parallel = vars(module)["DistributedDataParallel"]
    original = parallel.__init__
    check_hook = parallel._check_comm_hook
    signature = inspect.signature(original)

    @functools.wraps(original)
    def initialize(self: Any, *arguments: Any, **options: Any) -> None:
        given = signature.bind(self, *arguments, **options).arguments
        if any(_distributed.is_on_device(one) for one in given["module"].parameters()):
            _distributed.attach_late(given.get("process_group"))
        original(self, *arguments, **options)

    @functools.wraps(check_hook)
    def _check_comm_hook(self: Any, hook: Any) -> None:
        if self.device_type == _NAME and getattr(hook, "__name__", "").startswith("bf16_compress"):
            hook = functools.wraps(hook)(functools.partial(hook))
            hook.__name__ = "hook_on_the_device"
        check_hook(self, hook)

    parallel.__init__ = initialize
    parallel._check_comm_hook = _check_comm_hook


def patch_sharded_parallel(module: types.ModuleType) -> None:
    """Makes FullyShardedDataParallel work for a group made before the process used the device."""
    if not _distributed.is_registered():
        return
    parallel = vars(module)["FullyShardedDataParallel"]
    original = parallel.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def initialize(self: Any, *arguments: Any, **options: Any) -> None:
        given = signature.bind(self, *arguments, **options).arguments
        if _distributed.wanted() or str(given.get("device_id")).startswith(_NAME):
            groups = given.get("process_group")
            for group in groups if isinstance(groups, (tuple, list)) else (groups,):
                _distributed.attach_late(group)
        original(self, *arguments, **options)

    parallel.__init__ = initialize


def patch_pinning(module: types.ModuleType) -> None:
    """Makes checkpoints stage tensors in shared memory that is not pinned, where CUDA would pin it.

    PyTorch asks CUDA for that whatever the device is. The copy then takes longer.
    """
    for name in ("pin_memory", "unpin_memory"):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _unless_other(original))


def _unless_other(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def call(*arguments: Any, **options: Any) -> None:
        if not _device.is_available() or _defaults.other_accelerator().type == "cuda":
            original(*arguments, **options)

    return call


def patch_pipelines(module: types.ModuleType) -> None:
    """Makes the first messages of a pipeline as long as what receives them.

    PyTorch 2.9 sends int64 where it receives float32, with which Gloo ends the process.
    """
    stage: Any = vars(module).get("_PipelineStageBase")
    original = getattr(stage, "_get_init_p2p_neighbors_ops", None)
    if original is None:
        return

    @functools.wraps(original)
    def first_messages(self: Any) -> Any:
        messages = original(self)
        for one in messages:
            if one.tensor.device.type == _NAME:
                one.tensor = one.tensor.float()
        return messages

    stage._get_init_p2p_neighbors_ops = first_messages


def add_sharding_kernels(module: types.ModuleType) -> None:
    """Registers the kernels of `fully_shard` for the device; from 2.8 on PyTorch does so itself."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for operator, function in SHARDING.items():
        kernel = getattr(module, function, None)
        if kernel is None or not has(f"fsdp::{operator}", "CPU"):
            continue
        if operator == "split_with_sizes_copy":
            kernel = _keeping_versions(kernel)
        if not has(f"fsdp::{operator}", "PrivateUse1"):
            torch.library.impl(vars(module)["lib"], operator, "PrivateUse1")(kernel)


def _keeping_versions(kernel: Callable[..., None]) -> Callable[..., None]:
    """Makes autograd not see that the outputs were written.

    They are parameters, which get the values that they had. Before 2.7, PyTorch's caller does not
    say so, and the backward pass refuses them.
    """

    @functools.wraps(kernel)
    def split(*arguments: Any, out: list[torch.Tensor], **options: Any) -> None:
        with contextlib.ExitStack() as versions:
            for one in out:
                if not one.is_inference():
                    versions.enter_context(torch.autograd._unsafe_preserve_version_counter(one))
            kernel(*arguments, out=out, **options)

    return split
