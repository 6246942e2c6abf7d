# SPDX-License-Identifier: Apache-2.0
"""The site, built once for these tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "site"))  # the scripts that write pages and pictures


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Builds the site of a tree as `./dev site` does."""
    return subprocess.run(
        [sys.executable, str(source / "site" / "build.py"), str(target)],
        cwd=source,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def artifacts() -> Path:
    folder = Path(os.environ.get("BACKENDKIT_CACHE") or ROOT / "build") / "artifacts"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
