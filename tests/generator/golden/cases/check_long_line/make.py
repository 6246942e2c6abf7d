# SPDX-License-Identifier: Apache-2.0
"""An error in the middle of a line of 200,000 characters, and one behind it."""

from pathlib import Path

items = [f'"torch_kite.a{number}"' for number in range(10_000)]
before, after = ", ".join(items[:5000]), ", ".join(items[5000:] + items[:1])
Path("backend.toml").write_text(
    '[backend]\nname = "kite"\nversion = "0.1.0"\n[autoload]\n'
    f'imports = [{before}, "wrong module", {after}]\nsummary = "{"x" * 5000}"\n',
    "utf-8",
)
