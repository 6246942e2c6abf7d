# SPDX-License-Identifier: Apache-2.0
"""A portable wheel and one that is not."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from made_wheels import make

make("a", "2.9")
make("b", "2.10", platform="manylinux_2_28_x86_64")
