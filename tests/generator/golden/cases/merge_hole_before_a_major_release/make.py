# SPDX-License-Identifier: Apache-2.0
"""A wheel for 2.13 and one for 3.0: 2.14 is known to be between them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from made_wheels import make

make("a", "2.13")
make("b", "3.0")
