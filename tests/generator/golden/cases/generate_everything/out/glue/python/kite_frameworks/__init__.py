# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""A package with a backend in it: the summary of backend.toml stands for this text."""

import importlib
import os

from ._build import SUMMARY as _SUMMARY
from ._build import VERSION as __version__

__all__ = ["__version__", "cmake_prefix_path", "is_loaded"]
__doc__ = _SUMMARY

#: For CMAKE_PREFIX_PATH of a C++ project, whose `find_package` then finds this package.
cmake_prefix_path: str = os.path.join(os.path.dirname(os.path.abspath(__file__)), "share", "cmake")

#: Whether the backend's library is loaded; the module `torch` of this package sets it.
is_loaded: bool = globals().get("is_loaded", False)

try:
    from ._editable import SOURCE  # only in editable builds: the folder of the vendor's Python
except ModuleNotFoundError:
    pass
else:
    if SOURCE not in __path__:
        __path__.append(SOURCE)


def _autoload() -> None:
    """Loads the backend, unless that is done; PyTorch calls it at the end of `import torch`.

    Returns also when the backend cannot be loaded, after one warning, unless backend.toml has
    `on_failure = "error"`: then it raises an ImportError.
    """
    if not is_loaded:
        importlib.import_module(".torch", __name__)._autoload()
