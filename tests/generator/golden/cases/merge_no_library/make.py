# SPDX-License-Identifier: Apache-2.0
"""A wheel without a library."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from made_wheels import make

make("a", "2.9")
make("b", "2.9", package="six", library=False)
