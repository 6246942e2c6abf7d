# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The device in torch.compile.

Imported when Dynamo is imported, not by `import torch`; see `_integrations.py`. What a PyTorch
release lacks is left out: Dynamo then breaks the graph there, and the result is the same.
"""

import functools
import importlib
import importlib.metadata
import types
from typing import Any, Callable, Optional

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_autograd = importlib.import_module("._autograd", __package__)
_device: Any = importlib.import_module("._device", __package__)
_distributed: Any = importlib.import_module("._distributed", __package__)
_release = importlib.import_module("._release", __package__)
_streams = importlib.import_module("._streams", __package__)

_NAME: str = _device._NAME


def _call_if_supported(function: str, *arguments: Any) -> Any:
    """A function that the device module has if the runtime supports it."""
    if not hasattr(_device, function):
        raise NotImplementedError(f"torch.{_NAME} has no {function}")
    return getattr(_device, function)(*arguments)


def _capability(device: Any = None) -> Any:
    """What code generators use to tell devices apart; nothing if the runtime does not report it."""
    return (
        _call_if_supported("get_device_capability", device)
        if hasattr(_device, "get_device_capability")
        else ""
    )


def add_interface(module: types.ModuleType) -> None:
    """Registers the device with `torch._dynamo.device_interface`, unless that is done already."""
    if _NAME in module.device_interfaces:
        return
    interface = _interface(module)
    module.register_interface_for_device(_NAME, interface)
    for index in range(_device.device_count()):  # older releases require these
        module.register_interface_for_device(f"{_NAME}:{index}", interface)


def _interface(module: types.ModuleType) -> type:
    class Worker:
        """For processes that compile and must not use the device."""

        @staticmethod
        def set_device(device: int) -> None:
            module.caching_worker_current_devices[_NAME] = device

        @staticmethod
        def current_device() -> int:
            current: Optional[int] = module.caching_worker_current_devices.get(_NAME)
            return _device.current_device() if current is None else current

        @staticmethod
        def get_device_properties(device: Any = None) -> Any:
            place = torch.device(device) if isinstance(device, str) else device
            index = place.index if isinstance(place, torch.device) else place
            known = module.caching_worker_device_properties
            if _NAME not in known:
                count = _device.device_count()
                known[_NAME] = [
                    _call_if_supported("get_device_properties", one) for one in range(count)
                ]
            return known[_NAME][Worker.current_device() if index is None else index]

    members: dict[str, Any] = {
        "__doc__": "The device, as Dynamo and Inductor know devices.",
        "device": _device.device,
        "Worker": Worker,
        "current_device": staticmethod(_device.current_device),
        "set_device": staticmethod(_device.set_device),
        "exchange_device": staticmethod(_device._exchange_device),
        "maybe_exchange_device": staticmethod(_device._maybe_exchange_device),
        "device_count": staticmethod(_device.device_count),
        "is_available": staticmethod(_device.is_available),
        "stream": staticmethod(_streams._context),
        "current_stream": staticmethod(_streams.current_stream),
        "set_stream": staticmethod(_streams._set_stream),
        "_set_stream_by_id": staticmethod(_streams._set_stream_by_id),
        "get_raw_stream": staticmethod(_streams._raw_stream),
        "synchronize": staticmethod(_device.synchronize),
        "get_device_properties": staticmethod(
            lambda device=None: _call_if_supported("get_device_properties", device)
        ),
        "get_compute_capability": staticmethod(_capability),
        "is_bf16_supported": staticmethod(_device.is_bf16_supported),
        "memory_allocated": staticmethod(_device.memory.memory_allocated),
    }
    base = module.DeviceInterface
    members.update(_release.classes_of_interface(module))
    interface: type = type(base)(f"{_NAME.capitalize()}Interface", (base,), members)
    return interface


def register_functions(dynamo: types.ModuleType) -> None:
    """Tells Dynamo which of the device's functions it may call, trace or put in a graph."""
    if _streams_are_known(dynamo):
        dynamo.allow_in_graph(_streams._context)
    _add_guarded_calls(dynamo)
    # PyTorch calls this function between two graphs, so Dynamo must not trace it.
    dynamo.decorators.skip(_autograd.Engine.run_backward)
    dynamo.decorators.skip(_distributed._use_group)
    _distributed.attach_late = dynamo.disable(_distributed.attach_late)
    # A graph does not record the state that the library's operators read and change, and AOT
    # autograd would call them once while it traces and never again. So each of them breaks the
    # graph. `device` cannot use `register_device_context_manager`: it would give a device without
    # an index another meaning.
    outside = {name: _outside(dynamo, operator) for name, operator in _device._operators()}
    _device._outside_graphs = types.SimpleNamespace(**outside)


def _outside(dynamo: types.ModuleType, operator: Callable[..., Any]) -> Any:
    """The operator, which Dynamo does not trace but calls between two graphs."""

    def call(*arguments: Any) -> Any:
        return operator(*arguments)

    call.__qualname__ = str(operator)  # PyTorch's message if it may not break the graph
    return dynamo.disable(call)


def _streams_are_known(dynamo: types.ModuleType) -> bool:
    interface = dynamo.device_interface.device_interfaces.get(_NAME)
    return getattr(interface, "Stream", None) is torch.Stream


def _add_guarded_calls(dynamo: types.ModuleType) -> None:
    """Makes Dynamo call these functions while it traces, and again to check the results.

    In releases without such guards, a graph calls none of them.
    """
    for table in _release.guarded_calls(dynamo):
        for function in (_device.is_initialized, _device._current_device, _device.device_count):
            dynamo.allow_in_graph(function)
            table[function] = None


def explain_missing_code_generator(module: types.ModuleType) -> None:
    """Makes Inductor name the backends of torch.compile that work on the device.

    It does so while it has no code generator for the device, where it would otherwise raise an
    AssertionError, or a KeyError with the device's name.
    """
    if _release.asks_for_overrides(module) and _NAME not in module.device_op_overrides_dict:
        module.register_device_op_overrides(_NAME, module.DeviceOpOverrides())

    def add_explanation(name: str) -> None:
        function: Callable[..., Any] = vars(module)[name]

        @functools.wraps(function)
        def checked(device: str, *arguments: Any, **options: Any) -> Any:
            if device == _NAME and _NAME not in module.device_codegens:
                names = ", ".join(f'"{one}"' for one in ("aot_eager", *_backends()))
                raise RuntimeError(
                    "Inductor, the default backend of torch.compile, has no code generator for "
                    f"{_NAME}. Pass torch.compile a backend that supports it: {names}"
                )
            return function(device, *arguments, **options)

        vars(module)[name] = checked

    add_explanation("get_wrapper_codegen_for_device")
    add_explanation("get_device_op_overrides")


def _backends() -> list[str]:
    """The torch.compile backends that this package provides."""
    vendor: str = _device._build.PACKAGE
    entries = importlib.metadata.entry_points(group="torch_dynamo_backends")
    named = {one.name for one in entries if one.value.partition(":")[0].split(".")[0] == vendor}
    registry = importlib.import_module("torch._dynamo.backends.registry")
    functions: dict[str, Any] = getattr(registry, "_COMPILER_FNS", {})
    made = {
        name
        for name, one in functions.items()
        if getattr(one, "__module__", "").split(".")[0] == vendor
    }
    return sorted(named | made)
