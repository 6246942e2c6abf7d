# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Calls functions when a program imports a module, and costs nothing before."""

import importlib.machinery
import sys
import threading
import types
import warnings
from collections.abc import Sequence
from typing import Any, Callable, Optional, cast

__all__ = ["when_imported"]

_PACKAGE: str = importlib.import_module("._build", __package__).PACKAGE

_Call = Callable[[types.ModuleType], None]

_lock = threading.Lock()
_waiting: dict[str, list[_Call]] = {}  # by the names of modules that are not imported yet


def when_imported(name: str, call: _Call) -> None:
    """Calls `call(module)` once: when the module `name` is imported, or now if it already is.

    The call happens before the import returns, so nothing has used the module yet. An exception in
    `call` becomes a RuntimeWarning, because the importing program may not know this package.
    """
    with _lock:
        module = sys.modules.get(name)
        if module is None or _is_being_imported(module):
            _waiting.setdefault(name, []).append(call)
            if _finder not in sys.meta_path:
                sys.meta_path.insert(0, _finder)
            return
    _call(call, module)


def _call(call: _Call, module: types.ModuleType) -> None:
    try:
        call(module)
    # The import must succeed, whatever is wrong with this package or new in the other one, and even
    # if a filter turns warnings into exceptions.
    except Exception as error:
        text = f"{_PACKAGE} could not set itself up for {module.__name__}: "
        text += f"{type(error).__name__}: {error}"
        try:
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        except RuntimeWarning:
            print(f"{_PACKAGE}: warning: {text}", file=sys.stderr)


def _finish(module: types.ModuleType) -> None:
    """Makes the waiting calls for a module that has been imported."""
    with _lock:
        calls = _waiting.pop(module.__name__, [])
        if not _waiting:
            # A new list, because a thread that iterates over the old one would skip a finder.
            sys.meta_path = [finder for finder in sys.meta_path if finder is not _finder]
    for call in calls:
        _call(call, module)


def _is_being_imported(module: types.ModuleType) -> bool:
    """Whether the import of a module has begun and not ended; if so, its end calls `_finish`.

    This happens if the module is the program's first import of torch, which imports this package.
    """
    spec: Any = module.__spec__
    if getattr(spec, "_initializing", False) and type(spec) is importlib.machinery.ModuleSpec:
        spec.__class__ = _Unfinished
    return bool(getattr(spec, "_initializing", False))


class _Unfinished(importlib.machinery.ModuleSpec):
    """The spec of a module that is being imported: Python sets `_initializing` at the end."""

    @property
    def _initializing(self) -> bool:
        return bool(vars(self)["_initializing"])

    @_initializing.setter
    def _initializing(self, value: bool) -> None:
        module = None if value else sys.modules.get(self.name)  # None also if the import failed
        if module is not None:
            _finish(module)
        vars(self)["_initializing"] = value
        if module is not None:  # for calls that another thread added meanwhile
            _finish(module)


class _Finder:
    """Finds modules through the finders after it in sys.meta_path, and wraps their loaders."""

    def find_spec(
        self,
        name: str,
        path: Optional[Sequence[str]] = None,
        target: Optional[types.ModuleType] = None,
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if name not in _waiting:
            return None
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else []:
            find = getattr(finder, "find_spec", None)
            found = None if find is None else find(name, path, target)
            if found is not None:
                spec: importlib.machinery.ModuleSpec = found
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = cast(Any, _Loader(spec.loader))
                return spec
        return None


_finder = _Finder()


class _Loader:
    """Wraps another loader, which is the only one that the module itself sees."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[types.ModuleType]:
        module: Optional[types.ModuleType] = self._loader.create_module(spec)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        _finish(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
