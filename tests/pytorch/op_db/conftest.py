# SPDX-License-Identifier: Apache-2.0
"""Backends without kernels, built for these tests: one copies to the host, one shares memory.

The second one has autocast with one dtype, which is not PyTorch's default.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "runtime" / "faults"))
from project import replace_once

#: What makes a new project's device share memory with the host, and what it has then.
UNIFIED = (
    ("csrc/simulator.h", "kUnified = false", "kUnified = true"),
    ("backend.toml", '["float16", "bfloat16"]', '["bfloat16"]'),
)
PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session", params=["copying", "host_accessible"])
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with a new project's backend, for the device foo."""
    names = ("BACKENDGEN", "BACKENDKIT_TEST_BASE_PYTHON", "BACKENDKIT_TEST_TOOLS_PYTHON")
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        pytest.fail(f"set {', '.join(missing)}; `./dev test tests/pytorch/op_db` does")
    backendgen, base, tools = (os.environ[name] for name in names)
    folder = tmp_path_factory.mktemp(request.param)
    run(backendgen, "new", folder / "foo")
    if request.param == "host_accessible":
        for name, before, after in UNIFIED:
            replace_once(folder / "foo" / name, before, after)
    run(base, "-m", "venv", "--without-pip", folder / "environment")
    python = folder / "environment" / "bin" / "python"
    below = [run(one, "-c", PURELIB).strip() for one in (base, tools)]
    Path(run(python, "-c", PURELIB).strip(), "below.pth").write_text("\n".join(below) + "\n")
    install = ["-m", "pip", "install", "-q", "--no-build-isolation", "--no-index", "."]
    run(python, *install, cwd=folder / "foo")
    return python
