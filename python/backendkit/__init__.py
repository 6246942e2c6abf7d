# SPDX-License-Identifier: Apache-2.0
"""Where the parts of BackendKit are: its program, C++ headers, CMake package and device tests."""

from __future__ import annotations

import os
import sys

__all__ = ["__version__", "cmake_dir", "device_tests_dir", "executable", "include_dir"]

__version__: str


def cmake_dir() -> str:
    """The folder for CMake's `BackendKit_DIR`."""
    return _part("share", "cmake", "BackendKit")


def device_tests_dir() -> str:
    """The folder of the tests that `python -m backendkit.device_tests` runs."""
    return _part("share", "backendkit", "device_tests")


def include_dir() -> str:
    """The folder that holds `backendkit/*.h`."""
    return _part("include")


def executable() -> str:
    """The program `backendgen`."""
    name = "backendgen.exe" if sys.platform == "win32" else "backendgen"
    for folder in __path__:
        # `pip install --target`, `--home`, an environment or `--user`; the two schemes of Windows.
        for place in ("..", "../../..", "../../../.."):
            path = os.path.normpath(os.path.join(folder, place, "bin", name))
            if os.path.isfile(path):
                return path
        for place in ("../../..", "../.."):
            path = os.path.normpath(os.path.join(folder, place, "Scripts", name))
            if os.path.isfile(path):
                return path
    # Elsewhere, by pip's list of what it installed.
    from importlib.metadata import PackageNotFoundError, files

    try:
        listed = files("backendkit") or ()
    except PackageNotFoundError:
        listed = ()
    for file in listed:
        path = os.path.normpath(os.fspath(file.locate()))
        if file.name == name and os.path.isfile(path):
            return path
    raise FileNotFoundError(f"found no {name}: install backendkit with `pip install`")


def _part(*names: str) -> str:
    # An editable installation has the Python elsewhere than the rest.
    for folder in __path__:
        path = os.path.join(folder, *names)
        if os.path.exists(path):
            return path
    path = os.path.join(__path__[0], *names)
    raise FileNotFoundError(f"{path} is missing: install backendkit with `pip install`")


def __getattr__(name: str) -> str:
    if name == "__version__":
        # Looked up on demand: importlib.metadata takes longer to import than backendgen to run.
        from importlib.metadata import version

        return version("backendkit")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
