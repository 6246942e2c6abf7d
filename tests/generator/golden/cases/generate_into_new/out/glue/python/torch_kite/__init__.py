# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""A package whose device PyTorch knows: the summary of backend.toml stands for this text."""

import importlib
import os

from ._build import SUMMARY as _SUMMARY
from ._build import VERSION as __version__
from ._gate import open_to_others

__all__ = ["__version__", "cmake_prefix_path", "is_loaded"]
__doc__ = _SUMMARY

#: For CMAKE_PREFIX_PATH of a C++ project, whose `find_package` then finds this package.
cmake_prefix_path: str = os.path.join(os.path.dirname(os.path.abspath(__file__)), "share", "cmake")

#: Whether the backend's library is loaded. False also after a failure that was reported.
is_loaded: bool = globals().get("is_loaded", False)

try:
    from ._editable import SOURCE  # only in editable builds: the folder of the vendor's Python
except ModuleNotFoundError:
    pass
else:
    if SOURCE not in __path__:
        __path__.append(SOURCE)


def _autoload() -> None:
    """Loads the backend unless that is done; PyTorch calls it at the end of `import torch`.

    Returns also when the backend cannot be loaded, after one warning, unless backend.toml has
    `on_failure = "error"`: then it raises an ImportError.
    """
    global is_loaded
    if not is_loaded:
        loader = importlib.import_module("._loader", __name__)
        is_loaded = getattr(loader, "failure", None) is None


# Last: PyTorch calls `_autoload` at the end of this, while this module is half made.
with open_to_others(__name__):
    import torch  # noqa: F401

_autoload()
