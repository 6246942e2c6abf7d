# SPDX-License-Identifier: Apache-2.0
"""A file that is named as a wheel and is none."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from made_wheels import make

make("a", "2.9")
Path("b").mkdir()
Path("b/torch_foo-0.1.0-py3-none-linux_x86_64.whl").write_text("a text")
