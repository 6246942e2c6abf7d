# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Opens the driver's libraries that a package of their own has: [wheel.runtime] of backend.toml.

The backend's library needs them, but not by a path: the package may lie in another folder of
Python's path. Once they are open, the system's loader takes them wherever their names are asked
for, in a library or in `dlopen`.
"""

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
from typing import Callable, Optional

_build = importlib.import_module("._build", __package__)
_requirement = importlib.import_module("._requirement", __package__)

_TITLE = f"{_build.PACKAGE} {_build.VERSION}"
_WANTED = f"{_build.RUNTIME_PACKAGE}{_build.RUNTIME_REQUIRES}"


def _installed_version() -> Optional[str]:
    try:
        return str(importlib.metadata.version(_build.RUNTIME_PACKAGE))
    except importlib.metadata.PackageNotFoundError:
        return None


def _folder() -> str:
    """Where the package lies, which is not imported; "" if it is nowhere."""
    spec = importlib.util.find_spec(_build.RUNTIME_PACKAGE.replace("-", "_"))
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    return places[0] if places else ""


def open_libraries(
    failure: Callable[[str], Exception], is_truncated: Callable[[str], bool]
) -> None:
    """Opens them, each after those that it needs. Raises `failure`, written for the user."""
    version = _installed_version()
    if version is None or not _requirement.admits(_build.RUNTIME_REQUIRES, version):
        what = "which is not installed" if version is None else f"but {version} is installed"
        raise failure(
            f'{_TITLE} needs {_WANTED}, {what}\nhelp: `pip install "{_WANTED}"`',
        )
    for path in _paths(failure, version):
        if not os.path.isfile(path) or is_truncated(path):
            raise _damaged(failure, version, f"{path} is not a complete library")
        try:
            ctypes.CDLL(path)
        except OSError as error:
            name = f"{_build.RUNTIME_PACKAGE} {version}"
            raise failure(f"{_TITLE} cannot be loaded: {error}\nnote: {name} has it") from error


def _paths(failure: Callable[[str], Exception], version: str) -> list[str]:
    folder = _folder()
    try:
        with open(os.path.join(folder, "load_order.txt"), encoding="utf-8") as file:
            names = file.read().split()
    except OSError as error:
        raise _damaged(failure, version, str(error)) from error
    return [os.path.join(folder, "lib", name) for name in names]


def _damaged(failure: Callable[[str], Exception], version: str, why: str) -> Exception:
    package = f"{_build.RUNTIME_PACKAGE}=={version}"
    return failure(
        f"{_build.RUNTIME_PACKAGE} {version}, which {_TITLE} needs, is damaged: {why}\n"
        f"help: `pip install --force-reinstall --no-deps --no-cache-dir {package}`"
    )
