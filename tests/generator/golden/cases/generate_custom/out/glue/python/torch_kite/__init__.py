# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""A PyTorch backend; the summary of backend.toml replaces this text."""

import importlib
import os

from ._build import SUMMARY as _SUMMARY
from ._build import VERSION as __version__
from ._import_lock import without_import_lock

__all__ = ["__version__", "cmake_prefix_path", "is_loaded"]
__doc__ = _SUMMARY

#: Add this to CMAKE_PREFIX_PATH of a C++ project, so that `find_package` finds this package.
cmake_prefix_path: str = os.path.join(os.path.dirname(os.path.abspath(__file__)), "share", "cmake")

#: Whether the backend's library is loaded; False after a failure, even if it was only reported.
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
    global is_loaded
    if not is_loaded:
        loader = importlib.import_module("._loader", __name__)
        is_loaded = getattr(loader, "failure", None) is None


# Must be last: importing torch calls `_autoload` while this module is still incomplete.
with without_import_lock(__name__):
    import torch  # noqa: F401

_autoload()
