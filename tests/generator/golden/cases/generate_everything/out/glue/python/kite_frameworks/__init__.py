# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""A package that contains a PyTorch backend; the summary of backend.toml replaces this text."""

import importlib
import os

from ._build import SUMMARY as _SUMMARY
from ._build import VERSION as __version__

__all__ = ["__version__", "cmake_prefix_path", "is_loaded"]
__doc__ = _SUMMARY

#: Add this to CMAKE_PREFIX_PATH of a C++ project, so that `find_package` finds this package.
cmake_prefix_path: str = os.path.join(os.path.dirname(os.path.abspath(__file__)), "share", "cmake")

#: Whether the backend's library is loaded; the module `torch` of this package sets it.
is_loaded: bool = globals().get("is_loaded", False)

try:
    from ._editable import SOURCE  # in editable builds only: the folder of the vendor's Python
except ModuleNotFoundError:
    pass
else:
    if SOURCE not in __path__:
        __path__.append(SOURCE)


def _autoload() -> None:
    """Loads the backend unless it is loaded; PyTorch calls it at the end of `import torch`.

    If the backend cannot be loaded, this warns once and returns. If backend.toml has `on_failure =
    "error"`, it raises an ImportError instead.
    """
    if not is_loaded:
        importlib.import_module(".torch", __name__)._autoload()
