# SPDX-License-Identifier: Apache-2.0
"""A Python file that differs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from made_wheels import make

make("a", "2.9", files={"torch_foo/extras.py": "X = 1\nY = 2\n"})
make("b", "2.10", files={"torch_foo/extras.py": "X = 1\nY = 3\n"})
