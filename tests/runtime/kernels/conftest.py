# SPDX-License-Identifier: Apache-2.0
"""The two backends of examples/kernels, built once for all tests of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MODES = ("dense", "strided")


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program; stdout and stderr are one text."""
    return subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def build(source: Path, folder: Path) -> Path:
    """Builds the project in `source` below `folder`; where its Python package then is."""
    commands = [
        ["cmake", "-S", source, "-B", folder / "build", "-G", "Ninja"]
        + ["-DCMAKE_BUILD_TYPE=Release", f"-DBackendKit_DIR={os.environ['BACKENDKIT_BUILD']}"]
        + [f"-DPython_EXECUTABLE={sys.executable}"],
        ["cmake", "--build", folder / "build"],
        ["cmake", "--install", folder / "build", "--prefix", folder / "site", "--component", "foo"],
    ]
    for command in commands:
        done = run(*command)
        assert done.returncode == 0, done.stdout[-8000:]
    return folder / "site"


@pytest.fixture(scope="session", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where the packages are that have been built, by mode."""
    return {}


@pytest.fixture(scope="session")
def site(mode: str, sites: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    if mode not in sites:
        folder = tmp_path_factory.mktemp(mode)
        sites[mode] = build(ROOT / "examples" / "kernels" / mode, folder)
    return sites[mode]
