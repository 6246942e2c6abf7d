# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Disables the device if the backend could not be loaded.

PyTorch knows the device's name by then, and treats a device whose name it knows as the machine's
accelerator. This module makes PyTorch use the accelerator that it had before, or none, so that
programs that do not use the device run as they do without this package.
"""

import importlib
from typing import Any, Callable, Optional, Union

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)
_release = importlib.import_module("._release", __package__)

#: The functions of torch._C that torch.accelerator calls, and their equivalents in a device module.
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

# Keeps the registration alive.
_library: Optional[torch.library.Library] = None


def install(results: dict[str, Union[torch.device, RuntimeError, None]]) -> None:
    """Makes uses of the device raise the cause, and torch.accelerator use another device, if any.

    `results` has what the functions of torch._C that return the accelerator returned or raised
    before PyTorch knew the device's name.
    """
    global _library
    _library = torch.library.Library("_", "IMPL")
    _library.fallback(_raise_cause, "PrivateUse1")
    for name in _release.known_to_c(results):
        setattr(torch._C, name, _returning(results[name]))
    other = results.get("_accelerator_getAccelerator", results.get("_get_accelerator"))
    if not isinstance(other, torch.device) or other.type == "cpu":
        other = None
    for name in _release.known_to_c(_FUNCTIONS):
        setattr(torch._C, name, _delegate(_FUNCTIONS[name], other))
    _patch_pinning(other)
    importlib.import_module("._defaults", __package__).patch_profiler_activities(torch.autograd)
    places = {"Generator": torch.device("cpu"), "Stream": other, "Event": other}
    for name, place in places.items():
        setattr(torch, name, _replacement_class(getattr(torch, name), place))


def _raise_cause(operator: Any, *arguments: Any, **options: Any) -> None:
    """Replaces every operator on the device; usually PyTorch calls `_lazy_init` before it."""
    _device._lazy_init()


def _returning(result: Union[torch.device, RuntimeError, None]) -> Callable[[], Any]:
    def accelerator() -> Optional[torch.device]:
        if isinstance(result, RuntimeError):
            raise RuntimeError(*result.args)
        return result

    return accelerator


def _no_accelerator() -> RuntimeError:
    return RuntimeError("Cannot access accelerator device when none is available.")


def _delegate(function: str, other: Optional[torch.device]) -> Callable[..., Any]:
    """A replacement for a function of torch._C that calls the device module of `other`, if any."""

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
        raise RuntimeError(f"torch.{other.type} has no {function}: {_device._failure}")

    return call


def _patch_pinning(other: Optional[torch.device]) -> None:
    """Makes CPU tensors pin their memory for `other`, or raise an error if there is none."""
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


def _replacement_class(original: type, other: Optional[torch.device]) -> type:
    """A class that creates objects of `original`, and whose instances are those of `original`.

    A call that names the device raises the cause; a call that names no device uses `other` or the
    CPU. PyTorch's own classes are immutable and raise an error that does not give the cause.
    """

    class Kind(type(original)):  # type: ignore[misc]
        def __call__(cls, *arguments: Any, **options: Any) -> Any:
            if cls is not replacement:
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
            return type.__instancecheck__(original if cls is replacement else cls, instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return type.__subclasscheck__(original if cls is replacement else cls, subclass)

    names = {"__module__": "torch", "__doc__": original.__doc__}
    replacement = Kind(original.__name__, (original,), names)
    return replacement
