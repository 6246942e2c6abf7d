# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""What `tensor.__dlpack_device__()` says of a tensor on the device: DLPack's kDLExtDev.

PyTorch knows this of a device that has the name "privateuse1" and of no other. Its function gets
new code and stays the same object, since there are tensor subclasses that know functions by their
identity. That is done at the device's first use, so that who only uses the CPU has PyTorch's code.
"""

import enum
import importlib
import types
from typing import Callable

import torch

# Not `from . import`: that would wait for the package, which may be waiting for this module.
_device = importlib.import_module("._device", __package__)

_Name = tuple[enum.IntEnum, int]

_function = torch.Tensor.__dlpack_device__


def _copy() -> Callable[[torch.Tensor], _Name]:
    """PyTorch's function with the code that PyTorch gave it, also where this is imported anew."""
    known: Callable[[torch.Tensor], _Name] = getattr(_function, "__wrapped__", _function)
    if known is not _function or not isinstance(_function, types.FunctionType):
        return known
    return types.FunctionType(_function.__code__, _function.__globals__, _function.__name__)


_pytorch_answers = _copy()


def install() -> None:
    """Has PyTorch ask `answer`. Does nothing where that is so."""
    # Another kind of function is that of a release which nobody has seen yet.
    if isinstance(_function, types.FunctionType) and not _function.__code__.co_freevars:
        vars(_function)["__wrapped__"] = _pytorch_answers
        _function.__code__ = _asks.__code__


def answer(tensor: torch.Tensor) -> _Name:
    """PyTorch's own answer, where it has one."""
    try:
        return _pytorch_answers(tensor)
    except ValueError:
        if tensor.device.type != _device._NAME:
            raise
    from torch.utils.dlpack import DLDeviceType

    return DLDeviceType.kDLExtDev, tensor.get_device()


def _asks(self: torch.Tensor) -> _Name:
    import importlib  # it runs with the names of PyTorch's module

    name: _Name = importlib.import_module("._dlpack", __package__).answer(self)
    return name
