# SPDX-License-Identifier: Apache-2.0
"""A report card that a run of two device tests makes; the tests share it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# At the end: the modules of the suite must not hide others.
sys.path.append(str(Path(__file__).resolve().parents[2] / "device"))

PYTHON = os.environ["BACKENDKIT_TEST_PYTHON"]
TOOLS = os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"]
FEW = "test_each_group_has_functions or test_what_comes_of_the_description"


def environment(**variables: str) -> dict[str, str]:
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    tools = subprocess.check_output([TOOLS, "-c", ask], text=True).strip()
    return {**os.environ, "SOURCE_DATE_EPOCH": "0", "PYTHONPATH": tools, **variables}


def run(folder: Path, *words: str | Path, status: int = 0, **variables: str) -> str:
    """Runs device tests of the installed suite in `folder`; what they print."""
    command = [PYTHON, "-m", "backendkit.device_tests", "--device", "foo", *map(str, words)]
    done = subprocess.run(
        command, cwd=folder, env=environment(**variables), capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page and JSON of two tests, made by xdist's processes."""
    folder = tmp_path_factory.mktemp("made")
    reports = ["--report", "card.html", "--report", "card.json"]
    run(folder, "test_capabilities.py", "-k", FEW, "-n", "2", *reports)
    assert sorted(path.name for path in folder.iterdir()) == ["card.html", "card.json"]
    return folder


@pytest.fixture(scope="session")
def card(made: Path) -> dict[str, Any]:
    return json.loads((made / "card.json").read_text())
