# SPDX-License-Identifier: Apache-2.0
"""A wheel under another name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from made_wheels import make

make("a", "2.9").rename("wheel.zip")
