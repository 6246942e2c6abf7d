# SPDX-License-Identifier: Apache-2.0
"""examples/opencl, built and installed once for all tests of it, and drivers that go wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "opencl"
PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"
#: Two devices of PoCL, which computes on the CPU.
DRIVER = {"POCL_DEVICES": "pthread pthread"}


def run(
    *command: str | Path, cwd: Path | None = None, status: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **DRIVER, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with torch_opencl, as pip installs it."""
    base = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    tools = os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"]
    folder = tmp_path_factory.mktemp("opencl")
    ignore = shutil.ignore_patterns("build", "__pycache__")
    shutil.copytree(EXAMPLE, folder / "torch_opencl", ignore=ignore)
    run(base, "-m", "venv", "--without-pip", folder / "environment")
    made = folder / "environment" / "bin" / "python"
    below = [run(one, "-c", PURELIB).stdout.strip() for one in (base, tools)]
    site = run(made, "-c", PURELIB).stdout.strip()
    Path(site, "below.pth").write_text("\n".join(below) + "\n")
    install = ["-m", "pip", "install", "-q", "--no-build-isolation", "--no-index", "."]
    run(made, *install, cwd=folder / "torch_opencl")
    return made


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for compiled kernels that tests share."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="session")
def cache(compiled: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """Variables by which tests share compiled kernels: PoCL keeps the kernels, not torch_opencl.

    Where torch_opencl keeps a program, PoCL compiles every kernel of that program for any size of a
    group besides, which takes most of the time. With `--every-test`, torch_opencl keeps them.
    """
    if request.config.getoption("--every-test"):
        return {"OPENCL_CACHE": str(compiled)}
    return {"OPENCL_CACHE": "off", "POCL_CACHE_DIR": str(compiled)}


@pytest.fixture(params=["svm", pytest.param("buffer", marks=pytest.mark.long)])
def memory(request: pytest.FixtureRequest) -> str:
    return request.param
