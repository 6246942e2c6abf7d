# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The backend in a package; the summary of backend.toml replaces this text."""

import importlib
import os
import sys

from ._build import PACKAGE as _PACKAGE
from ._build import SUMMARY as _SUMMARY
from ._build import VERSION as __version__
from ._import_lock import without_import_lock

__all__ = ["__version__", "is_loaded"]
__doc__ = _SUMMARY

#: Whether the backend's library is loaded; False after a failure, even if it was only reported.
is_loaded: bool = globals().get("is_loaded", False)

try:
    from .._editable import SOURCE  # in editable builds only: the folder of the vendor's Python
except ModuleNotFoundError:
    pass
else:
    if os.path.join(SOURCE, "torch") not in __path__:
        __path__.append(os.path.join(SOURCE, "torch"))


def _autoload() -> None:
    """Loads the backend unless it is loaded; `_autoload` of the package calls it.

    If the backend cannot be loaded, this warns once and returns. If backend.toml has `on_failure =
    "error"`, it raises an ImportError instead.
    """
    global is_loaded
    if not is_loaded:
        loader = importlib.import_module("._loader", __name__)
        is_loaded = getattr(loader, "failure", None) is None
        vars(sys.modules[_PACKAGE])["is_loaded"] = is_loaded


# Must be last: importing torch calls `_autoload` while this module is still incomplete.
with without_import_lock(__name__):
    import torch  # noqa: F401

_autoload()
