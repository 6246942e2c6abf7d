# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Tensors of the device in torch.multiprocessing queues and pipes.

PyTorch shares the memory of the CPU and of CUDA with other processes. A tensor on this device goes
through shared host memory instead: the receiver gets a copy on its own device of the same index.
"""

import importlib
import types
import warnings
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from typing import Any, Callable, cast

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)

_NAME: str = _device._NAME

_Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


def _rebuild_tensor(
    kind: type, rebuild: Callable[..., torch.Tensor], arguments: tuple[Any, ...], index: int,
    size: tuple[int, ...], stride: tuple[int, ...], requires_grad: bool,
) -> torch.Tensor:  # fmt: skip
    made = rebuild(*arguments).detach().to(torch.device(_NAME, index))
    if made.layout == torch.strided:
        made = made.as_strided(size, stride)
    if issubclass(kind, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad)
    return made.requires_grad_(requires_grad)


def _rebuild_storage(
    rebuild: Callable[..., torch.UntypedStorage], arguments: tuple[Any, ...], index: int
) -> torch.UntypedStorage:
    made: torch.UntypedStorage = rebuild(*arguments).to(device=torch.device(_NAME, index))
    return made


def _keep_alive(one: Any) -> Any:
    """Returns `one`, and keeps it alive if it is an argument of a process that is being started.

    That process receives the number of an open file, which closes when `one` is destroyed.
    """
    process: Any = get_spawning_popen()
    if process is not None:
        vars(process).setdefault(f"_{_device._build.PACKAGE}_kept", []).append(one)
    return one


def _spanned(one: torch.Tensor) -> torch.Tensor:
    """A one-dimensional view of the memory from a tensor's first element to its last."""
    last = sum((size - 1) * stride for size, stride in zip(one.size(), one.stride()))
    return one.as_strided((last + 1 if one.numel() else 0,), (1,))


def register_reducers(module: types.ModuleType) -> None:
    """Lets processes send tensors and storages on the device to each other."""
    reduce_tensor: Callable[[torch.Tensor], _Reduced] = vars(module)["reduce_tensor"]
    reduce_storage: Callable[[Any], _Reduced] = vars(module)["reduce_storage"]

    def tensor(one: torch.Tensor) -> _Reduced:
        if one.device.type != _NAME or (one.requires_grad and not one.is_leaf):
            return reduce_tensor(one)  # raises an error if it is not a leaf
        if one.is_quantized:
            return cast(_Reduced, one.__reduce_ex__(2))  # PyTorch's own loses the quantizer
        plain = one.detach()
        size: tuple[int, ...] = tuple(one.size())
        stride: tuple[int, ...] = ()
        if one.layout == torch.strided:
            plain = plain.resolve_conj().resolve_neg()
            stride = plain.stride()
            plain = _spanned(plain)
        rebuild, arguments = reduce_tensor(_keep_alive(plain.cpu()))
        index, requires_grad = one.device.index, one.requires_grad
        return _rebuild_tensor, (type(one), rebuild, arguments, index, size, stride, requires_grad)

    def storage(one: torch.UntypedStorage) -> _Reduced:
        if one.device.type != _NAME:
            return reduce_storage(one)
        rebuild, arguments = reduce_storage(_keep_alive(one.cpu()))
        return _rebuild_storage, (rebuild, arguments, one.device.index)

    kinds: list[Any] = [*torch._tensor_classes, torch.Tensor, torch.nn.Parameter]
    for kind in kinds:
        ForkingPickler.register(kind, tensor)
    ForkingPickler.register(torch.UntypedStorage, storage)


def install() -> None:
    """Makes `share_memory_()` of a tensor or module on the device warn that it shares nothing.

    PyTorch does nothing there, because it assumes that device memory is shared, as CUDA's is.
    """
    original = torch.UntypedStorage.share_memory_

    def share_memory_(self: torch.UntypedStorage, *arguments: Any, **options: Any) -> Any:
        if self.device.type == _NAME:
            warnings.warn(
                f"processes cannot share memory of {_device.display_name}: a process that receives "
                "this tensor gets a copy, and other processes do not see what it writes",
                stacklevel=4,
            )
        return original(self, *arguments, **options)

    torch.UntypedStorage.share_memory_ = share_memory_  # type: ignore[method-assign]
