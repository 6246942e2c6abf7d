# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Makes `tensor.__dlpack_device__()` return DLPack's kDLExtDev for a tensor on the device.

PyTorch does so only for a device named "privateuse1". Its function gets new code but stays the same
object, because some tensor subclasses compare functions by identity. This happens at the device's
first use, so that programs that use only the CPU run PyTorch's code.
"""

import enum
import importlib
import types
from typing import Callable

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)

_Name = tuple[enum.IntEnum, int]

_function = torch.Tensor.__dlpack_device__


def _copy() -> Callable[[torch.Tensor], _Name]:
    """PyTorch's function with PyTorch's own code, also if this module is imported again."""
    known: Callable[[torch.Tensor], _Name] = getattr(_function, "__wrapped__", _function)
    if known is not _function or not isinstance(_function, types.FunctionType):
        return known
    return types.FunctionType(_function.__code__, _function.__globals__, _function.__name__)


_pytorch_dlpack_device = _copy()


def install() -> None:
    """Makes PyTorch call `dlpack_device`. Does nothing if it already does."""
    # A function of another kind belongs to an unknown release.
    if isinstance(_function, types.FunctionType) and not _function.__code__.co_freevars:
        vars(_function)["__wrapped__"] = _pytorch_dlpack_device
        code = _dlpack_device.__code__
        names = tuple(__name__ if one == "this module" else one for one in code.co_consts)
        _function.__code__ = code.replace(co_consts=names)


def dlpack_device(tensor: torch.Tensor) -> _Name:
    """Returns PyTorch's own answer, if it has one."""
    try:
        return _pytorch_dlpack_device(tensor)
    except ValueError:
        if tensor.device.type != _device._NAME:
            raise
    from torch.utils.dlpack import DLDeviceType

    return DLDeviceType.kDLExtDev, tensor.get_device()


def _dlpack_device(self: torch.Tensor) -> _Name:
    import importlib  # runs in the namespace of PyTorch's module; `install` sets the name

    name: _Name = importlib.import_module("this module").dlpack_device(self)
    return name
