# SPDX-License-Identifier: Apache-2.0
"""Where the parts of BackendKit are: its program, C++ headers, CMake package and device tests."""

from __future__ import annotations

import os
import sys

__all__ = ["__version__", "cmake_dir", "device_tests_dir", "executable", "include_dir"]

__version__: str

_FOLDER = os.path.dirname(os.path.abspath(__file__))


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
    return _part("bin", "backendgen.exe" if sys.platform == "win32" else "backendgen")


def _part(*names: str) -> str:
    path = os.path.join(_FOLDER, *names)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} is missing: install backendkit with `pip install`")
    return path


def __getattr__(name: str) -> str:
    if name == "__version__":
        # Looked up on demand: importlib.metadata takes longer to import than backendgen to run.
        from importlib.metadata import version

        return version("backendkit")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
