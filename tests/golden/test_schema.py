# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema and the program know the same tables, keys and defaults."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_golden import program


def backendgen(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), *words], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def schema(tmp_path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(backendgen(tmp_path, "schema").stdout)
    return loaded


def names_in(screen: str) -> set[str]:
    """The words that the first note of a screen lists."""
    note = next(line for line in screen.splitlines() if line.startswith("note: "))
    return set(re.findall("`([^`]+)`", note))


def test_same_tables(schema: dict[str, Any], tmp_path: Path) -> None:
    tmp_path.joinpath("backend.toml").write_text("[zzzzzzzz]\n", "utf-8")
    assert names_in(backendgen(tmp_path, "check").stderr) == set(schema["properties"])


@pytest.mark.parametrize("table", ["backend", "torch", "autoload", "operators", "amp"])
def test_same_keys(table: str, schema: dict[str, Any], tmp_path: Path) -> None:
    text = f"[{table}]\nzzzzzzzz = 1\n"
    if table != "backend":
        text += '[backend]\nname = "kite"\nversion = "0.1.0"\n'
    tmp_path.joinpath("backend.toml").write_text(text, "utf-8")
    screen = backendgen(tmp_path, "check").stderr
    part = screen[screen.index("unknown key `zzzzzzzz`") :]
    assert names_in(part) == set(schema["properties"][table]["properties"])


def test_defaults_are_those_of_the_program(schema: dict[str, Any], tmp_path: Path) -> None:
    """A description that states every default means the same as one that leaves them out."""
    short = '[backend]\nname = "kite"\nversion = "0.1.0"\n'
    tables = {name: table.get("properties", {}) for name, table in schema["properties"].items()}
    text = short
    for name, keys in tables.items():
        lines = [
            f"{key} = {json.dumps(rule['default'])}\n"
            for key, rule in keys.items()
            if "default" in rule
        ]
        text += "".join(lines) if name == "backend" else f"[{name}]\n" + "".join(lines)
    assert text.count("=") > short.count("=") + 5
    (tmp_path / "short.toml").write_text(short, "utf-8")
    (tmp_path / "long.toml").write_text(text, "utf-8")
    one = backendgen(tmp_path, "check", "--format", "json", "short.toml")
    two = backendgen(tmp_path, "check", "--format", "json", "long.toml")
    assert (one.returncode, one.stderr) == (0, "")
    assert (two.returncode, two.stdout, two.stderr) == (0, one.stdout, "")
