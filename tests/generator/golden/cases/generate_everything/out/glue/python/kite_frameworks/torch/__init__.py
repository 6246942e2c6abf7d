# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""The backend in a package: the summary of backend.toml stands for this text."""

import importlib
import os
import sys

from ._build import PACKAGE as _PACKAGE
from ._build import SUMMARY as _SUMMARY
from ._build import VERSION as __version__
from ._gate import open_to_others

__all__ = ["__version__", "is_loaded"]
__doc__ = _SUMMARY

#: Whether the backend's library is loaded. False also after a failure that was reported.
is_loaded: bool = globals().get("is_loaded", False)

try:
    from .._editable import SOURCE  # only in editable builds: the folder of the vendor's Python
except ModuleNotFoundError:
    pass
else:
    if os.path.join(SOURCE, "torch") not in __path__:
        __path__.append(os.path.join(SOURCE, "torch"))


def _autoload() -> None:
    """Loads the backend unless that is done; `_autoload` of the package calls it.

    Returns also when the backend cannot be loaded, after one warning, unless backend.toml has
    `on_failure = "error"`: then it raises an ImportError.
    """
    global is_loaded
    if not is_loaded:
        loader = importlib.import_module("._loader", __name__)
        is_loaded = getattr(loader, "failure", None) is None
        vars(sys.modules[_PACKAGE])["is_loaded"] = is_loaded


# Last: PyTorch calls `_autoload` at the end of this, while this module is half made.
with open_to_others(__name__):
    import torch  # noqa: F401

_autoload()
