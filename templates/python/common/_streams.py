# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The streams and events of the device, like those in `torch.cuda`.

Objects created here are `torch.Stream` and `torch.Event`, as in `torch.accelerator`. If the runtime
has no streams or no events, creating one raises NotImplementedError.
"""

import contextlib
import importlib
from typing import Any, Optional, Union

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
]

_Device = Union[int, str, torch.device, None]
_PRIVATE_USE_1 = 20  # c10::DeviceType::PrivateUse1


class _OnThisDevice(type):
    """Makes `isinstance` accept objects of PyTorch's own class that are on this device."""

    _base: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls._base) and instance.device.type == _device._NAME


class Stream(metaclass=_OnThisDevice):
    """A `torch.Stream`: a queue of work that runs in order, in parallel with other streams.

    `device` is by default the current one. A lower `priority` number is a higher priority; 0 is the
    default. Raises like `init`, and a ValueError for a device that does not exist.
    """

    _base = torch.Stream

    def __new__(  # type: ignore[misc]
        cls, device: _Device = None, priority: int = 0
    ) -> torch.Stream:
        place = torch.device(_device._NAME, _device._index(device))
        return torch.Stream(device=place, priority=priority)


class Event(metaclass=_OnThisDevice):
    """A `torch.Event`: a point in a stream's work, to wait for or to measure time with.

    Raises like `init`, and NotImplementedError if `interprocess` is true. `external` has no effect:
    in `torch.cuda` it applies to graphs that a device records.
    """

    _base = torch.Event

    def __new__(  # type: ignore[misc]
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> torch.Event:
        if interprocess:
            raise NotImplementedError(
                f"an event of {_device.display_name} cannot be shared with other processes"
            )
        _device._lazy_init()
        return torch.Event(device=_device._NAME, enable_timing=enable_timing, blocking=blocking)


def _stream_of_id(number: int, index: int) -> torch.Stream:
    return torch.Stream(stream_id=number, device_index=index, device_type=_PRIVATE_USE_1)


def current_stream(device: _Device = None) -> torch.Stream:
    """This thread's current stream of a device, by default the current one; raises like `init`."""
    index = _device._index(device)
    if _device._traced():
        return torch.accelerator.current_stream(torch.device(_device._NAME, index))
    return _stream_of_id(_device._library().current_stream(index), index)


def default_stream(device: _Device = None) -> torch.Stream:
    """The default stream of a device, by default the current one; raises like `init`."""
    return _stream_of_id(0, _device._index(device))


def set_stream(stream: Optional[torch.Stream]) -> None:
    """Makes a stream and its device this thread's current ones; None does nothing."""
    if stream is not None:
        index = _device._index(stream.device)
        _device._library().exchange_stream(index, stream.stream_id)
        _device._exchange_device(index)


def _set_stream(stream: torch.Stream) -> None:
    """`set_stream` without changing the current device, which a graph does not record."""
    _set_stream_by_id(stream.stream_id, stream.device.index, _PRIVATE_USE_1)


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    _device._library().exchange_stream(device_index, stream_id)


def _raw_stream(device_index: int) -> int:
    """The id of the current stream, for code that a compiler generates."""
    stream: int = _device._library().current_stream(device_index)
    return stream


class StreamContext:
    """A context manager that makes a stream and its device current; None does nothing."""

    def __init__(self, stream: Optional[torch.Stream]) -> None:
        self.stream = stream
        self._before: list[tuple[Any, int, int]] = []

    def __enter__(self) -> Optional[torch.Stream]:
        if self.stream is not None:
            index = _device._index(self.stream.device)
            number = _device._library().exchange_stream(index, self.stream.stream_id)
            guard = _device.device(index)
            guard.__enter__()
            self._before.append((guard, index, number))
        return self.stream

    def __exit__(self, *error: object) -> None:
        if self._before:
            guard, index, number = self._before.pop()
            _device._library().exchange_stream(index, number)
            guard.__exit__(*error)


def _context(stream: Optional[torch.Stream]) -> StreamContext:
    """The function with which torch.compile makes a stream current; the same as `stream`."""
    return StreamContext(stream)


def stream(stream: Optional[torch.Stream]) -> Any:
    """Makes a stream and its device current in a `with` statement; None does nothing."""
    if stream is None and torch.compiler.is_dynamo_compiling():
        return contextlib.nullcontext()
    return _context(stream)
