# SPDX-License-Identifier: Apache-2.0
"""An empty folder."""

from pathlib import Path

Path("kite").mkdir()
