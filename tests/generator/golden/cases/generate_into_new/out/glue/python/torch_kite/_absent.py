# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""What PyTorch is told where the backend could not be loaded.

The device's name is known to PyTorch then, and a known name makes PyTorch take the device for
the machine's accelerator. So that programs which do not use it go on as without this package,
its place is given back here to the accelerator that PyTorch had before, or to none.
"""

import importlib
from typing import Any, Callable, Optional, Union

import torch

# Not `from . import`: that would wait for the package, which may be waiting for this module.
_device = importlib.import_module("._device", __package__)
_release = importlib.import_module("._release", __package__)

#: What torch.accelerator calls below torch._C, and the function of a device module that does it.
_FUNCTIONS: dict[str, str] = {
    "_accelerator_deviceCount": "device_count",
    "_accelerator_emptyCache": "empty_cache",
    "_accelerator_emptyHostCache": "_host_empty_cache",
    "_accelerator_exchangeDevice": "_exchange_device",
    "_accelerator_getDefaultGenerator": "_default_generator",
    "_accelerator_getDeviceCapability": "_device_capability",
    "_accelerator_getDeviceIndex": "current_device",
    "_accelerator_getDeviceStats": "memory_stats_as_nested_dict",
    "_accelerator_getMemoryInfo": "mem_get_info",
    "_accelerator_getStream": "current_stream",
    "_accelerator_isAllocatorInitialized": "is_initialized",
    "_accelerator_maybeExchangeDevice": "_maybe_exchange_device",
    "_accelerator_resetAccumulatedStats": "reset_accumulated_memory_stats",
    "_accelerator_resetPeakStats": "reset_peak_memory_stats",
    "_accelerator_setDeviceIndex": "set_device",
    "_accelerator_setStream": "set_stream",
    "_accelerator_synchronizeDevice": "synchronize",
}

# The registration lasts as long as this object.
_library: Optional[torch.library.Library] = None


def install(answers: dict[str, Union[torch.device, RuntimeError, None]]) -> None:
    """Names the cause where the device is used, and leaves torch.accelerator to what is there.

    `answers` holds what the functions of torch._C that name the accelerator returned or raised
    before the device's name was known.
    """
    global _library
    _library = torch.library.Library("_", "IMPL")
    _library.fallback(_refuse, "PrivateUse1")
    for name in _release.known_to_c(answers):
        setattr(torch._C, name, _answering(answers[name]))
    other = answers.get("_accelerator_getAccelerator", answers.get("_get_accelerator"))
    if not isinstance(other, torch.device) or other.type == "cpu":
        other = None
    for name in _release.known_to_c(_FUNCTIONS):
        setattr(torch._C, name, _delegate(_FUNCTIONS[name], other))
    _keep_pinning(other)
    importlib.import_module("._defaults", __package__).keep_activities(torch.autograd)
    places = {"Generator": torch.device("cpu"), "Stream": other, "Event": other}
    for name, place in places.items():
        setattr(torch, name, _stand_in(getattr(torch, name), place))


def _refuse(operator: Any, *arguments: Any, **options: Any) -> None:
    """What an operator on the device does; most uses meet PyTorch's call of `_lazy_init` before."""
    _device._lazy_init()


def _answering(answer: Union[torch.device, RuntimeError, None]) -> Callable[[], Any]:
    def accelerator() -> Optional[torch.device]:
        if isinstance(answer, RuntimeError):
            raise RuntimeError(*answer.args)
        return answer

    return accelerator


def _no_accelerator() -> RuntimeError:
    return RuntimeError("Cannot access accelerator device when none is available.")


def _delegate(function: str, other: Optional[torch.device]) -> Callable[..., Any]:
    """A function of torch._C that uses the device module of `other`, if there is one."""

    def call(*arguments: Any) -> Any:
        if other is None:
            if function == "device_count":
                return 0
            raise _no_accelerator()
        module = torch.get_device_module(other)
        if function == "_host_empty_cache":
            return torch._C._host_emptyCache()
        if function in ("set_stream", "_default_generator", "_device_capability"):
            module.init()
        if hasattr(module, function):
            return getattr(module, function)(*arguments)
        if function == "_default_generator":
            return module.default_generators[arguments[0]]
        raise RuntimeError(f"PyTorch cannot ask `{other}`: {_device._failure}")

    return call


def _keep_pinning(other: Optional[torch.device]) -> None:
    """Makes tensors on the CPU pin their memory for `other`, or say that there is nothing to."""
    is_pinned, pin_memory = torch.Tensor.is_pinned, torch.Tensor.pin_memory

    def is_pinned_here(self: torch.Tensor, device: Any = None) -> bool:
        if device is not None:
            return is_pinned(self, device)
        if other is None or not torch.get_device_module(other).is_initialized():
            return False
        pinned: bool = torch.ops.aten.is_pinned(self, other)
        return pinned

    def pin_memory_here(self: torch.Tensor, device: Any = None) -> torch.Tensor:
        if device is not None:
            return pin_memory(self, device)
        if other is None:
            raise _no_accelerator()
        return self if is_pinned_here(self) else torch.ops.aten._pin_memory(self, other)

    is_pinned_here.__name__, pin_memory_here.__name__ = is_pinned.__name__, pin_memory.__name__
    for name, method in (("is_pinned", is_pinned_here), ("pin_memory", pin_memory_here)):
        setattr(torch.Tensor, name, method)


def _stand_in(original: type, other: Optional[torch.device]) -> type:
    """A class to be called in the place of `original`, whose objects and subclasses are its own.

    For the device it raises the cause, and where no device is named it takes `other` or the CPU.
    PyTorch's own classes are immutable and raise a text that names no cause.
    """

    class Kind(type(original)):  # type: ignore[misc]
        def __call__(cls, *arguments: Any, **options: Any) -> Any:
            if cls is not stand_in:
                return super().__call__(*arguments, **options)
            place = options.get("device", arguments[0] if arguments else None)
            if str(place).split(":")[0] == _device._NAME:
                _device._lazy_init()
            if isinstance(place, int):
                if other is None:
                    raise _no_accelerator()
                options["device"] = torch.device(other.type, place)
                return original(*arguments[1:], **options)
            if place is None and "device_type" not in options:
                options["device"] = other or "cpu"
            return original(*arguments, **options)

        def __instancecheck__(cls, instance: Any) -> bool:
            return type.__instancecheck__(original if cls is stand_in else cls, instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return type.__subclasscheck__(original if cls is stand_in else cls, subclass)

    names = {"__module__": "torch", "__doc__": original.__doc__}
    stand_in = Kind(original.__name__, (original,), names)
    return stand_in
