# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The device module, such as `torch.foo` for a device `foo`.

If the backend could not be loaded, or there is no device, `is_available()` is False and
`device_count()` is 0; functions that need a device raise a RuntimeError that says why.
"""

import importlib
import operator
import os
import threading
from typing import Any, Callable, Optional, Union

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_build = importlib.import_module("._build", __package__)
_release = importlib.import_module("._release", __package__)

__all__ = [
    "current_device",
    "device",
    "device_count",
    "device_of",
    "display_name",
    "get_amp_supported_dtype",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "set_device",
    "synchronize",
    "when_imported",
]

#: A device's index, name or object; None is the current device.
_Device = Union[int, str, torch.device, None]

_NAME: str = _build.DEVICE
#: What messages for people call the device; `display_name` of backend.toml.
display_name: str = _build.DISPLAY_NAME
_ops = getattr(torch.ops, f"_{_build.PACKAGE}")
_failure: Optional[Exception] = None  # why the backend could not be loaded
_registered = False  # whether `_register_late` has been called
_selected = False  # whether the program has called `set_device`
_initialized = False  # PyTorch's checkpoints read this name
# Cached results of the library: PyTorch also asks for them in programs that do not use the device,
# and the profiles of these programs would list each call.
_count: Optional[int] = None
_bad_fork: tuple[int, bool] = (os.getpid(), False)  # of this process, which loads the library
_lock = threading.RLock()
_outside_graphs: Any = None  # what torch.compile sees instead of the library: see `_dynamo.py`
_unpublished: set[str] = set()  # the vendor's modules whose names are not added yet
_postponed: list[tuple[Callable[[], None], bool]] = []


def _library() -> Any:
    """The operators of the backend's library."""
    return _outside_graphs if torch.compiler.is_dynamo_compiling() else _ops


def _operators() -> list[tuple[str, Callable[..., Any]]]:
    """The names and operators of `_library`; none if the backend could not be loaded."""
    within = f"_{_build.PACKAGE}::"
    known = torch._C._dispatch_get_all_op_names()
    names = [one[len(within) :] for one in known if one.startswith(within)]
    return [(name, getattr(_ops, name)) for name in names]


def is_available() -> bool:
    """Whether there is a device that can be used. Never raises."""
    return device_count() > 0


def is_initialized() -> bool:
    """Whether this process has used the device."""
    return _initialized and not _is_in_bad_fork()


def device_count() -> int:
    """The number of devices; 0 if the backend or its driver is missing. Never raises.

    Calls the driver once per process.
    """
    global _count
    if _failure is not None:
        return 0
    if _count is None:
        _count = _library().device_count()
    return _count


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that had used the device, so it cannot use it."""
    global _bad_fork
    if _failure is not None:
        return False
    if torch.compiler.is_dynamo_compiling():  # Dynamo cannot trace getpid
        forked: bool = _library().is_in_bad_fork()
        return forked
    if _bad_fork[0] != os.getpid():
        _bad_fork = (os.getpid(), _library().is_in_bad_fork())
    return _bad_fork[1]


def init() -> None:
    """Initializes the device; its first use does this automatically.

    Raises a RuntimeError if the backend could not be loaded, if there is no device, and in a
    process forked from one that had used the device.
    """
    _lazy_init()


def _lazy_init() -> None:
    """Called by PyTorch before it puts anything on the device; raises like `init`."""
    global _initialized
    if is_initialized():
        return
    if _failure is not None:
        raise RuntimeError(f"device `{_NAME}` is not available: {_failure}") from _failure
    if _is_in_bad_fork():
        raise RuntimeError(
            f"Cannot re-initialize {display_name} in forked subprocess. To use {display_name} with "
            "multiprocessing, you must use the 'spawn' start method"
        )
    if device_count() == 0:
        why = _library().device_failure() or "its driver finds no device"
        raise RuntimeError(f"device `{_NAME}` is not available: {why}")
    with _lock:
        if not _initialized:
            for call, _ in _postponed:
                call()
            _postponed.clear()
            importlib.import_module("._autograd", __package__).install()
            importlib.import_module("._dlpack", __package__).install()
            importlib.import_module("._sharing", __package__).install()
            _register_late()
            _initialized = True


def _lazy_call(call: Callable[[], None], **options: bool) -> None:
    """Calls now, or at the device's first use. `seed_all=True` replaces all earlier seeding."""
    with _lock:
        if is_initialized():
            call()
            return
        replaces = options.get("seed_all", False)
        if replaces:
            _postponed[:] = [one for one in _postponed if not one[1]]
        _postponed.append((call, replaces or options.get("seed", False)))


def _index(device: _Device) -> int:
    """The index of a device; raises like `init`, and a ValueError for another type of device."""
    _lazy_init()
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != _NAME:
            raise ValueError(f"expected a {_NAME} device, got `{device}`")
        device = device.index
    if device is None:
        return _current_device()
    if not isinstance(device, int):
        device = _as_index(device)
    count = device_count()
    if not 0 <= device < count:
        raise ValueError(
            f"there is no device `{_NAME}:{device}`: the last one is `{_NAME}:{count - 1}`"
        )
    return device


def _as_index(number: Any) -> int:
    """Converts an integer that is not an `int`, such as NumPy's; a ValueError for anything else."""
    try:
        return operator.index(number)
    except TypeError:
        raise ValueError(f"expected a {_NAME} device or its index, got {number!r}") from None


def _current_device() -> int:
    """`current_device` for a device in use; torch.compile calls it while it traces."""
    index: int = _library().current_device()
    return index


def _exchange_device(device: int) -> int:
    """Makes a device current, unless the index is negative, and returns the previous one."""
    return _current_device() if device < 0 else _library().exchange_device(_index(device))


def _maybe_exchange_device(device: int) -> int:
    """The same as `_exchange_device`; PyTorch calls both."""
    return _exchange_device(device)


def current_device() -> int:
    """The index of this thread's current device; raises like `init`."""
    return _index(None)


def set_device(device: _Device) -> None:
    """Makes a device this thread's current one; a negative index does nothing.

    Raises like `init`, and a ValueError for a device that does not exist.
    """
    global _selected
    if not (isinstance(device, int) and device < 0):
        _exchange_device(_index(device))
        _selected = True


class device:
    """A context manager that makes a device current; a negative index does nothing.

    On entry raises like `init`, and a ValueError for a device that does not exist.
    """

    def __init__(self, device: _Device) -> None:
        self._device = device
        self._before: list[int] = []

    def __enter__(self) -> None:
        nothing = isinstance(self._device, int) and self._device < 0
        self._before.append(-1 if nothing else _exchange_device(_index(self._device)))

    def __exit__(self, *_: object) -> None:
        before = self._before.pop()
        if before >= 0:
            _exchange_device(before)


class device_of(device):
    """A context manager that makes the device of a tensor or storage current.

    Does nothing if that is another type of device.
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.device.type == _NAME else -1)


def synchronize(device: _Device = None) -> None:
    """Waits until all work on a device, by default the current one, has completed.

    Raises like `init`. PyTorch's profiler calls this in programs that do not use the device, which
    does not count as its first use.
    """
    if device is None and not is_initialized() and device_count() > 0:
        _unrecorded(lambda library: library.synchronize(library.current_device()))
        return
    index = _index(device)
    if _traced():
        torch.accelerator.synchronize(torch.device(_NAME, index))
    else:
        _library().synchronize(index)


def _unrecorded(call: Callable[[Any], None]) -> None:
    """Calls operators of the library without listing them in PyTorch's profiler."""
    torch.autograd._enable_record_function(False)
    try:
        call(_library())
    finally:
        torch.autograd._enable_record_function(True)


def _traced() -> bool:
    """Whether torch.compile is tracing, in a release where it supports torch.accelerator."""
    return torch.compiler.is_dynamo_compiling() and _release.HAS_ACCELERATOR


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that autocast may use on the device. Never raises."""
    _register_late()
    return _amp_dtypes()


def _amp_dtypes() -> list[torch.dtype]:
    """The same as `get_amp_supported_dtype`, for callers that do not start autocast."""
    return [getattr(torch, name) for name in _build.AMP_DTYPES]


def _register_late() -> None:
    """Makes the library register with PyTorch what only tensors on the device need.

    Creating a tensor on the device does so too. But a tensor may come from elsewhere, such as
    `from_dlpack`, and autocast also casts fake tensors, in processes without a real tensor on the
    device: `torch.autocast` asks for its dtypes whenever it is created.
    """
    global _registered
    if _registered or _failure is not None or torch.compiler.is_dynamo_compiling():
        return
    _unrecorded(lambda library: library.register_late())
    _registered = True


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether autocast may use bfloat16 on the device, emulated or not. Never raises."""
    return torch.bfloat16 in _amp_dtypes()


def __getattr__(name: str) -> Any:
    """Finds names of the vendor's modules that were partly imported when the backend was loaded."""
    for module in sorted(_unpublished):
        importlib.import_module("._loader", __package__).publish(module)
    if name in globals():
        return globals()[name]
    raise AttributeError(f"module 'torch.{_NAME}' has no attribute '{name}'")


when_imported = importlib.import_module("._lazy", __package__).when_imported
#: Parts of this module; their public names are also this module's.
memory = importlib.import_module("._memory", __package__)
random = importlib.import_module("._random", __package__)
streams = importlib.import_module("._streams", __package__)
_capabilities = importlib.import_module("._capabilities", __package__)
_fallback_report = importlib.import_module("._fallback_report", __package__)
_properties = importlib.import_module("._properties", __package__)
for _part in (memory, random, streams, _capabilities, _fallback_report, _properties):
    globals().update({name: getattr(_part, name) for name in _part.__all__})
    __all__ += _part.__all__
__all__ += ["memory", "random", "streams"]
#: For type annotations; programs get them from `fallback_report`.
FallbackReport = _fallback_report.FallbackReport
FallbackRow = _fallback_report.FallbackRow
