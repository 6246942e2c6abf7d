# SPDX-License-Identifier: Apache-2.0
"""The times of kernels in `fallback_report`, of kernels that take a known time."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from conftest import build, run

HERE = Path(__file__).parent
EXAMPLE = '# "add.out" = "foo::add"\n'


def test_times(tmp_path: Path) -> None:
    project = tmp_path / "foo"
    done = run(os.environ["BACKENDGEN"], "new", project)
    assert done.returncode == 0, done.stdout
    description = project / "backend.toml"
    text = description.read_text(encoding="utf-8")
    assert text.count(EXAMPLE) == 1
    kernels = (HERE / "times" / "operators.toml").read_text(encoding="utf-8")
    description.write_text(text.replace(EXAMPLE, kernels), encoding="utf-8")
    shutil.copy(HERE / "times" / "kernels.cpp", project / "csrc")
    site = build(project, tmp_path)
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / "check_times.py"]
    done = run(sys.executable, *command, PYTHONPATH=str(site))
    assert done.returncode == 0, done.stdout[-8000:]
    assert re.search(r"^\d+ passed", done.stdout, re.M), done.stdout
