# SPDX-License-Identifier: Apache-2.0
"""A wheel that requires more of PyTorch than its library does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from made_wheels import make

make("a", "2.9", requirement="torch>=2.9,<2.10,!=2.9.0")
make("b", "2.10")
