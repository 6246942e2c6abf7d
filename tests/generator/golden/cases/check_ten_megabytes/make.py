# SPDX-License-Identifier: Apache-2.0
"""A description of 10 MB."""

from pathlib import Path

Path("backend.toml").write_text('[backend]\nname = "kite"\n' + "# much\n" * 1_500_000, "utf-8")
