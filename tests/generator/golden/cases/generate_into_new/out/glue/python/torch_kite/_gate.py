# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""How a package imports torch when `import torch` in another thread imports the package."""

import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def open_to_others(name: str) -> Iterator[None]:
    """Inside, other threads get the module `name` at once, though it is not whole yet.

    One thread in `import torch` calls this package, another one in this package waits for
    `import torch`: Python sees the deadlock and raises in the thread that came last, which breaks
    `import torch`. What PyTorch needs of the module must stand above.
    """
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
        yield  # PyTorch calls nobody
        return
    spec: Any = sys.modules[name].__spec__
    was = getattr(spec, "_initializing", False)  # a module that is loaded again has none
    spec._initializing = False
    lock = vars(importlib)["_bootstrap"]._get_module_lock(name)
    # Python asks the flag first since 3.11; before, it takes the lock whatever the flag says.
    held = sys.version_info < (3, 11) and lock.owner == threading.get_ident()
    if held:
        lock.release()
    try:
        yield
    finally:
        if held:
            lock.acquire()
        spec._initializing = was
