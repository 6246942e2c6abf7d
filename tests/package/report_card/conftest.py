# SPDX-License-Identifier: Apache-2.0
"""Lets the tests import the report card from the device tests' folder."""

import sys
from pathlib import Path

# At the end: the modules of the suite must not hide others.
sys.path.append(str(Path(__file__).resolve().parents[2] / "device"))
