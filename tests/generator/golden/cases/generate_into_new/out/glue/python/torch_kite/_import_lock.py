# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Lets a package import torch while `import torch` in another thread imports the package."""

import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def without_import_lock(name: str) -> Iterator[None]:
    """In this context, threads that import the module `name` get it immediately, though incomplete.

    Otherwise one thread in `import torch` may wait for this package while another one in this
    package waits for `import torch`. Python detects this deadlock and raises an error in the thread
    that came last, which breaks `import torch`. Everything that PyTorch needs from the module must
    be defined before this context.
    """
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
        yield  # PyTorch does not call any backend
        return
    spec: Any = sys.modules[name].__spec__
    was = getattr(spec, "_initializing", False)  # absent if the module is being reloaded
    spec._initializing = False
    lock = vars(importlib)["_bootstrap"]._get_module_lock(name)
    # Since 3.11 Python checks the flag first; before, it takes the lock whatever the flag says.
    held = sys.version_info < (3, 11) and lock.owner == threading.get_ident()
    if held:
        lock.release()
    try:
        yield
    finally:
        if held:
            lock.acquire()
        spec._initializing = was
