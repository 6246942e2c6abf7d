# SPDX-License-Identifier: Apache-2.0
"""A wheel for a tested release and one for 3.1: 3.0 comes before it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from made_wheels import make

make("a", "2.15")
make("b", "3.1")
