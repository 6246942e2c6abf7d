# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""What trains in several processes and saves its state: on the device, where PyTorch knows others.

The functions here change modules of PyTorch; see `_integrations.py`.
"""

import contextlib
import datetime
import functools
import hashlib
import importlib
import inspect
import threading
import types
import weakref
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
#: How often each group was split, which all its ranks do alike.
_splits: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
#: Of this thread. `name`: that of the group that is made.
_making = threading.local()


def patch_groups(c10d: Any) -> None:
    """Makes functions of `torch.distributed` take groups with the device's part."""
    for name, wrapped in (
        ("monitored_barrier", _with_gloo),
        ("split_group", _by_new_groups),
        ("_process_group_name", _as_agreed),
        ("batch_isend_irecv", _together),
        ("_coalescing_manager", _attaching),
        ("_set_pg_timeout", _for_all_parts),
        ("destroy_process_group", _shutting_down),
    ):
        _distributed.replace(c10d, name, functools.partial(wrapped, c10d))


def _with_gloo(c10d: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes `monitored_barrier` work for groups with a Gloo for the CPU beside the device's part.

    PyTorch looks at the name of the group, and uses the part for the CPU.
    """

    @functools.wraps(original)
    def monitored_barrier(
        group: Any = None, timeout: Any = None, wait_all_ranks: bool = False
    ) -> Any:
        place = c10d._get_default_group() if group is None else group
        parts = str(c10d._world.pg_backend_config.get(place, "")).split(",")
        here = not c10d._rank_not_in_group(group)
        if not here or "cpu:gloo" not in parts or not _distributed.has_part(place):
            return original(group, timeout, wait_all_ranks)
        if timeout is None:
            timeout = c10d._get_default_timeout(c10d.Backend.GLOO)
        elif isinstance(timeout, float):
            timeout = datetime.timedelta(seconds=timeout)
        return place.monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)

    return monitored_barrier


def _by_new_groups(c10d: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes `split_group` make a new group: a group of the library cannot be split.

    Meshes split the default group if it was made with `device_id`.
    """
    signature = inspect.signature(original)

    @functools.wraps(original)
    def split_group(*arguments: Any, **options: Any) -> Any:
        given = signature.bind(*arguments, **options).arguments
        parent = given.get("parent_pg") or c10d._get_default_group()
        parts = given.get("split_ranks")
        if not parts or not _distributed.has_part(parent):
            return original(*arguments, **options)
        everyone = c10d.get_process_group_ranks(parent)
        number = _splits.setdefault(parent, 0)
        _splits[parent] += 1
        # From 2.14 on, a part has the order in which it is given.
        ordered = hasattr(c10d, "_NonGroupMember")
        arranged: Callable[[Any], list[int]] = list if ordered else sorted
        mine = next((arranged(part) for part in parts if parent.rank() in part), None)
        if mine is None:
            return c10d.GroupMember.NON_GROUP_MEMBER if ordered else None
        order: dict[str, bool] = {"sort_ranks": False} if ordered else {}
        ranks = hashlib.sha256(str(mine).encode()).hexdigest()
        _making.name = f"{parent.group_name}:split{number}:{ranks[:16]}"
        try:
            return c10d.new_group(
                ranks=[everyone[rank] for rank in mine],
                timeout=given.get("timeout"),
                backend=given.get("backend") or str(c10d._world.pg_backend_config[parent]),
                use_local_synchronization=True,
                group_desc=given.get("group_desc"),
                **order,
            )
        finally:
            _making.name = None

    return split_group


def _as_agreed(_: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes all ranks of a part of a group give it one name, which no other group had.

    The ranks meet under this name. PyTorch makes it of the number of groups that a rank is in:
    ranks may be in more groups than others, and the next group gets the name of one that was
    destroyed.
    """

    @functools.wraps(original)
    def _process_group_name(*arguments: Any, **options: Any) -> Any:
        name, _making.name = getattr(_making, "name", None), None
        return name or original(*arguments, **options)

    return _process_group_name


def _together(c10d: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes the messages of a batch start together, and the batch end after an error.

    PyTorch lets them start together with CUDA only (2.5 and 2.6), and not if it checks the
    arguments of all ranks (`TORCH_DISTRIBUTED_DEBUG=DETAIL`, up to 2.10). After an error, it leaves
    the batch open.
    """

    @functools.wraps(original)
    def batch_isend_irecv(p2p_op_list: Any) -> Any:
        c10d._check_p2p_op_list(p2p_op_list)
        first = p2p_op_list[0]
        group = c10d._get_default_group() if first.group is None else first.group
        if first.tensor.device.type != _NAME:
            return original(p2p_op_list)
        _distributed.attach_late(group)
        if not _distributed.has_part(group):
            return original(p2p_op_list)
        group._start_coalescing(first.tensor.device)
        try:
            for one in p2p_op_list:
                one.op(one.tensor, one.peer, one.group, one.tag)
        finally:
            work = group._end_coalescing(first.tensor.device)
        return [work]

    return batch_isend_irecv


def _for_all_parts(c10d: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes `_set_pg_timeout` set the time-out of the device's part, too, in releases that can.

    PyTorch looks for the parts that it has itself. It sets none if it checks the arguments of all
    ranks (`TORCH_DISTRIBUTED_DEBUG=DETAIL`).
    """

    @functools.wraps(original)
    def _set_pg_timeout(timeout: Any, group: Any = None) -> None:
        place = c10d._get_default_group() if group is None else group
        parts = set(str(c10d._world.pg_backend_config.get(place, "")).split(","))
        known = parts - {"cpu:gloo"} == {f"{_NAME}:{_distributed._GROUP}"}
        detail = c10d.get_debug_level() == c10d.DebugLevel.DETAIL
        if known and not detail and hasattr(place, "set_timeout"):
            place.set_timeout(timeout)
        else:
            original(timeout, group)

    return _set_pg_timeout


def _shutting_down(c10d: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes `destroy_process_group` shut down the device's part, as PyTorch does from 2.7 on."""
    if hasattr(c10d.ProcessGroup, "shutdown"):
        return original

    @functools.wraps(original)
    def destroy_process_group(group: Any = None) -> None:
        place = c10d.GroupMember.WORLD if group is None else group
        ending = list(c10d._world.pg_map) if place is c10d.GroupMember.WORLD else [place]
        ours = [one for one in ending if _distributed.has_part(one)]
        original(group)
        for one in ours:
            _device._ops.shutdown_process_group(one.boxed())

    return destroy_process_group


def _attaching(_: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a batch of calls work for a group made before the process used the device."""

    @functools.wraps(original)
    def _coalescing_manager(group: Any = None, device: Any = None, async_ops: Any = False) -> Any:
        if device is not None and torch.device(device).type == _NAME:
            _distributed.attach_late(group)
        return original(group, device, async_ops)

    return _coalescing_manager


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
        if any(one.device.type == _NAME for one in given["module"].parameters()):
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
