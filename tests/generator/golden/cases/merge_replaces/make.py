# SPDX-License-Identifier: Apache-2.0
"""A wheel for a release that the new one is not for."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from made_wheels import make

make("dist", "2.9")
make("a", "2.12")
