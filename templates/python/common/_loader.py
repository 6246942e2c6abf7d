# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Importing this module loads the backend.

This happens at import because Python's import locks detect circular imports between threads, which
would deadlock with a lock of this module's own: twenty threads may import torch and this package in
any order, and the backend is loaded once.

With the environment variable BACKENDKIT_SKIP_HANDSHAKE=1, the library is loaded whatever PyTorch
release it was built for.
"""

import atexit
import ctypes
import importlib
import os
import re
import struct
import sys
import types
import warnings
from typing import Any, Callable, Optional, Union

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_build = importlib.import_module("._build", __package__)
_device: Any = importlib.import_module("._device", __package__)
_release = importlib.import_module("._release", __package__)

_Results = dict[str, Union[torch.device, RuntimeError, None]]
_TITLE = f"{_build.PACKAGE} {_build.VERSION}"


class BackendError(ImportError):
    """Why the backend cannot be loaded, written for its user."""


def _package_folder() -> str:
    return os.path.dirname(os.path.abspath(sys.modules[_build.PACKAGE].__file__ or ""))


def _library_name() -> str:
    ending = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    return f"lib{_build.PACKAGE}{ending}"


def _handshake_is_off() -> bool:
    return os.environ.get("BACKENDKIT_SKIP_HANDSHAKE") == "1"


def _releases(folder: str) -> list[str]:
    """The PyTorch releases for which the package has a folder, oldest first."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        names = []
    releases = [name for name in names if re.fullmatch(r"\d+\.\d+", name)]
    return sorted(releases, key=lambda name: tuple(map(int, name.split("."))))


def _choose_library() -> str:
    """The path of the library for this PyTorch. Raises BackendError if there is none."""
    folder = os.path.join(_package_folder(), "lib")
    version = torch.__version__.split("+")[0]
    minor = ".".join(re.findall(r"\d+", version)[:2])
    releases = _releases(folder)
    if not releases:
        raise BackendError(f"{_TITLE} has no library in {folder}\n{_reinstall_help()}")
    if minor not in releases:
        if not _handshake_is_off():
            raise BackendError(
                f"{_TITLE} was built for PyTorch {_release.listed(releases)}, "
                f"but this is PyTorch {version}\n"
                f'help: `pip install "torch=={releases[-1]}.*"`, or '
                f"`pip install --upgrade {_build.PACKAGE}` for a build for PyTorch {minor}"
            )
        minor = releases[-1]
    path = os.path.join(folder, minor, _library_name())
    if not os.path.isfile(path):
        raise BackendError(f"{_TITLE} has no {path}\n{_reinstall_help()}")
    return path


def _reinstall_help() -> str:
    return (
        "help: `pip install --force-reinstall --no-deps --no-cache-dir "
        f"{_build.PACKAGE}=={_build.VERSION}`"
    )


def _is_truncated(path: str) -> bool:
    """Whether a file is no whole ELF file.

    The system's loader maps such a file and then crashes with a bus error, which cannot be caught.
    """
    with open(path, "rb") as file:
        head = file.read(64)
    if head[:4] != b"\x7fELF" and sys.platform != "linux":
        return False
    end = 64
    if len(head) == 64 and head[:5] == b"\x7fELF\x02":
        order = "<" if head[5] == 1 else ">"
        (sections,) = struct.unpack_from(order + "Q", head, 40)
        size, count = struct.unpack_from(order + "HH", head, 58)
        end = max(end, sections + size * count)
    return head[:4] != b"\x7fELF" or os.path.getsize(path) < end


def _check_name_is_free() -> None:
    """Raises BackendError if another backend already is PyTorch's PrivateUse1 device."""
    taken = torch._C._get_privateuse1_backend_name()
    module = getattr(torch, taken, None)
    owner = getattr(module, "__name__", "") if module is not None else ""
    if taken == "privateuseone" or (taken == _build.DEVICE and owner in ("", _device.__name__)):
        return
    raise _place_taken(
        "PyTorch supports one PrivateUse1 backend per process, and "
        f"device `{taken}`{f' ({owner})' if owner else ''} is already registered"
    )


def _place_taken(why: str) -> BackendError:
    help_ = (
        "help: `pip uninstall` the backend that you do not need, or set "
        f"TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import only {_build.MODULE}"
    )
    return BackendError(f"{_TITLE} is not loaded: {why}\n{help_}")


def _check_registered(path: str) -> None:
    """Raises BackendError if the loaded library did not register, because another backend had.

    `_check_name_is_free` detects only backends that have set a name, and a library may register
    without one.
    """
    ask = getattr(ctypes.CDLL(path), f"{_build.DEVICE}_backend_problem")
    ask.restype = ctypes.c_char_p
    why = ask()
    if why is not None:
        raise _place_taken(why.decode(errors="replace"))


def _register() -> None:
    """Registers the device's name, its module and its methods: `torch.foo`, `tensor.foo()`."""
    torch.utils.rename_privateuse1_backend(_build.DEVICE)
    if not hasattr(torch, _build.DEVICE):
        torch._register_device_module(_build.DEVICE, _device)
        torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
        # Like `cuda()`, callable on a lazy module's parameters before their shapes are known.
        method = getattr(torch.Tensor, _build.DEVICE)
        lazy: Any = vars(torch.nn.parameter)["UninitializedTensorMixin"]
        lazy._allowed_methods.append(method)
        _add_submodules()


def _add_submodules() -> None:
    """Makes `from torch.foo.random import ...` and similar imports work."""
    for part in ("memory", "random", "streams"):
        sys.modules[f"torch.{_build.DEVICE}.{part}"] = getattr(_device, part)


def _accelerators() -> _Results:
    """What PyTorch returns for its accelerator without this device.

    Called only if the backend failed: in a PyTorch with CUDA this starts CUDA's driver, and
    processes forked from this one could not use CUDA any more.
    """
    if torch._C._get_privateuse1_backend_name() == _build.DEVICE:  # it would return this device
        other = importlib.import_module("._defaults", __package__).other_accelerator()
        none = None if other.type == "cpu" else other
        return {"_get_accelerator": other, "_accelerator_getAccelerator": none}
    results: _Results = {}
    for name in _release.known_to_c(("_get_accelerator", "_accelerator_getAccelerator")):
        try:
            results[name] = getattr(torch._C, name)()
        except RuntimeError as error:
            results[name] = error
    return results


def _open_library() -> None:
    path = _choose_library()
    if _is_truncated(path):
        why = f"{path} is not a complete library"
        raise BackendError(f"{_TITLE} is damaged: {why}\n{_reinstall_help()}")
    if _build.RUNTIME_PACKAGE:
        module = importlib.import_module("._runtime_package", __package__)
        module.open_libraries(BackendError, _is_truncated)
    try:
        torch.ops.load_library(path)
    except OSError as error:
        text = f"{_TITLE} cannot be loaded: {error.__cause__ or error}"
        if _handshake_is_off():
            text += "\nnote: BACKENDKIT_SKIP_HANDSHAKE=1 turned off the check of PyTorch's release"
        raise BackendError(text) from error
    _check_registered(path)


def _add_operators() -> None:
    """Adds the operators of [[operators.custom]], if any, to the device module as `ops`."""
    if not _build.HAS_OPS:
        return
    ops = importlib.import_module(".ops", __package__)
    ops._register()
    vars(_device)["ops"] = ops


def _import(name: str) -> Optional[types.ModuleType]:
    """A vendor's module; None while this thread, or one that waits for torch, is importing it."""
    try:
        module = importlib.import_module(name)
    except RuntimeError as error:
        if type(error).__name__ != "_DeadlockError":
            raise
        return None
    return None if getattr(module.__spec__, "_initializing", False) else module


def _publish(name: str) -> None:
    """Adds the names in the `__all__` of a vendor's module to the device module."""
    _device._unpublished.add(name)
    done = True
    try:
        module = _import(name)
        done = module is not None
        names = {one: getattr(module, one) for one in getattr(module, "__all__", ())}
        for one, value in names.items():
            if vars(_device).get(one, value) is not value:
                raise ImportError(
                    f"torch.{_build.DEVICE} already has `{one}`, which is in its `__all__`"
                )
        vars(_device).update(names)
    finally:
        if done:
            _device._unpublished.discard(name)


def publish(name: str) -> None:
    """Imports a vendor's module, adds its names to the device module, and reports failures."""
    wrong = _attempt(_publish, name)
    if wrong is not None:
        text = f"{_TITLE} cannot import {name}: {type(wrong).__name__}: {wrong}"
        _report(BackendError(text), wrong)


def _disable_device() -> None:
    """Makes uses of the device raise the cause, and PyTorch ignore the device otherwise."""
    results = _accelerators()
    _attempt(_register)
    importlib.import_module("._not_loaded", __package__).install(results)


def _raise_cause_on_use() -> None:
    """Makes the device module and methods raise the cause if another backend is registered.

    PyTorch itself cannot: its error for the device's name only lists the names that it knows.
    """
    if hasattr(torch, _build.DEVICE):
        return
    setattr(torch, _build.DEVICE, _device)
    sys.modules[f"torch.{_build.DEVICE}"] = _device
    _add_submodules()
    for kind in (torch.Tensor, torch.nn.Module):
        if not hasattr(kind, _build.DEVICE):
            setattr(kind, _build.DEVICE, _raise_cause)


def _raise_cause(self: object, *arguments: object, **options: object) -> None:
    _device._lazy_init()


class _DrainAtExit:
    """Waits for autograd's threads when it is destroyed: after `atexit`, before Python finalizes.

    By then, the threads must have released their Python objects: a thread that takes the GIL while
    Python finalizes ends the process. In a process that has not used the device there is nothing to
    wait for.
    """

    #: More than a thread ever needs to release its objects, even on a busy machine.
    _MILLISECONDS = 5000

    def __init__(self) -> None:
        self._drain = _device._ops.drain_autograd

    def __del__(self) -> None:
        self._drain(self._MILLISECONDS)


def _attempt(step: Callable[..., None], *arguments: object) -> Optional[Exception]:
    """Runs a step of loading the backend; returns its exception, or None."""
    try:
        step(*arguments)
    # PyTorch turns any exception of a backend into a failed `import torch`. But `import torch` must
    # succeed whatever is wrong with the backend, its library, the vendor's Python or a future
    # PyTorch.
    except Exception as error:
        return error
    return None


def _explained(error: Exception) -> BackendError:
    """The error itself if it is written for the user, otherwise a BackendError that quotes it."""
    if isinstance(error, BackendError):
        return error
    return BackendError(f"{_TITLE} cannot be loaded: {type(error).__name__}: {error}")


def _report(error: BackendError, cause: Optional[BaseException]) -> None:
    """Raises or warns, as backend.toml says; prints if a filter turns warnings into exceptions."""
    error.__cause__ = cause
    if _build.ON_FAILURE == "error":
        raise error
    try:
        warnings.warn_explicit(str(error), RuntimeWarning, filename=_build.MODULE, lineno=0)
    except RuntimeWarning:
        print(f"{_build.MODULE}: warning: {error}", file=sys.stderr)


def _load() -> Optional[Exception]:
    """Loads the backend; returns the failure, or None. Raises it if backend.toml says so."""
    if _device._failure is not None:  # with on_failure = "error", an import is tried again
        raise _device._failure
    taken = _attempt(_check_name_is_free)
    error = taken or _attempt(_open_library) or _attempt(_register) or _attempt(_add_operators)
    if error is not None:
        explained = _explained(error)
        _device._failure = explained
        worse = _attempt(_raise_cause_on_use) if taken else _attempt(_disable_device)
        if worse is not None:
            explained.args = (f"{explained}\nnote: the device could not be disabled: {worse!r}",)
        _report(explained, error.__cause__ if explained is error else error)
        return explained
    # As an argument, it outlives all registered functions, whenever they were registered.
    atexit.register(lambda _: None, _DrainAtExit())
    importlib.import_module("._integrations", __package__).register()
    for name in _build.IMPORTS:
        publish(name)
    return None


failure: Optional[Exception] = _load()
