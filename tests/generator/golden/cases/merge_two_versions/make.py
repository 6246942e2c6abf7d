# SPDX-License-Identifier: Apache-2.0
"""Wheels of two versions."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from made_wheels import make

make("a", "2.9")
make("b", "2.10", version="0.2.0")
