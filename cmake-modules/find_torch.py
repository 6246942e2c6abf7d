# SPDX-License-Identifier: Apache-2.0
"""Prints `torch is in FOLDER`, where `import torch` would find PyTorch, or nothing.

Nothing of PyTorch is imported. CMake and backendgen run this text with `python -c`, which puts the
working folder first on Python's path as an empty entry: a folder there may happen to be called
torch. The path is written as bytes, because it need not be UTF-8, and after words to find it by,
because other code that Python runs when it starts may print as well.
"""

import sys

sys.path[:] = [entry for entry in sys.path if entry]

import importlib.util  # noqa: E402
import os  # noqa: E402

spec = importlib.util.find_spec("torch")
if spec is not None and spec.origin is not None:
    sys.stdout.flush()
    line = b"torch is in " + os.fsencode(os.path.dirname(spec.origin)) + b"\n"
    sys.stdout.buffer.write(line)
