# SPDX-License-Identifier: Apache-2.0
"""A thousand unknown keys."""

from pathlib import Path

keys = "".join(f"key{number} = {number}\n" for number in range(1000))
Path("backend.toml").write_text('[backend]\nname = "kite"\nversion = "0.1.0"\n' + keys, "utf-8")
