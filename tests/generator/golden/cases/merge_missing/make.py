# SPDX-License-Identifier: Apache-2.0
"""A wheel that is not there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from made_wheels import make

make("a", "2.9")
