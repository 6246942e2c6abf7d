# SPDX-License-Identifier: Apache-2.0
"""A backend with operators of its own: built as a wheel, installed, used; see project/."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent / "project"
PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


def from_environment(name: str) -> Path:
    value = os.environ.get(name, "")
    if not value:
        raise pytest.UsageError(f"{name} is not set: run these tests with ./dev test")
    return Path(value)


def run(*command: str | Path, cwd: Path) -> str:
    """What a program prints; fails the test when it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the backend installed from its wheel."""
    folder = tmp_path_factory.mktemp("custom")
    run(from_environment("BACKENDGEN"), "-C", folder, "new", "foo", cwd=folder)
    foo = folder / "foo"
    with (foo / "backend.toml").open("a", encoding="utf-8") as file:
        file.write((PROJECT / "operators.toml").read_text(encoding="utf-8"))
    shutil.copy(PROJECT / "custom.cpp", foo / "csrc")
    shutil.copy(PROJECT / "custom.py", foo / "torch_foo")
    cmake = foo / "CMakeLists.txt"
    text = cmake.read_text(encoding="utf-8")
    cmake.write_text(text.replace("SOURCES", "SOURCES csrc/custom.cpp"), encoding="utf-8")
    flags = ("--no-build-isolation", "--no-deps", "--wheel-dir", "dist")
    tools = from_environment("BACKENDKIT_TEST_TOOLS_PYTHON")
    run(tools, "-m", "pip", "wheel", *flags, "./foo", cwd=folder)
    base = from_environment("BACKENDKIT_TEST_BASE_PYTHON")
    run(base, "-m", "venv", "--without-pip", "environment", cwd=folder)
    python = folder / "environment" / "bin" / "python"
    site = Path(run(python, "-c", PURELIB, cwd=folder).strip())
    (site / "base.pth").write_text(run(base, "-c", PURELIB, cwd=folder))
    (wheel,) = (folder / "dist").glob("*.whl")
    run(python, "-m", "pip", "install", "--no-index", "--no-deps", wheel, cwd=folder)
    return python


def test_operators(python: Path, tmp_path: Path) -> None:
    shutil.copy(PROJECT / "check_custom.py", tmp_path)
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "check_custom.py"]
    print(run(python, *words, cwd=tmp_path))


def test_stubs_are_for_type_checkers(python: Path) -> None:
    site = Path(run(python, "-c", PURELIB, cwd=python.parent).strip())
    stubs = (site / "torch_foo" / "ops.pyi").read_text(encoding="utf-8")
    compile(stubs, "ops.pyi", "exec")
    assert (
        "def first_and_last(x: torch.Tensor, *, reverse: bool = False) -> "
        "tuple[torch.Tensor, torch.Tensor]: ...\n"
    ) in stubs
    assert "def scale_(x: torch.Tensor, factor: float) -> None: ...\n" in stubs


MYPY = """
import torch
from torch_foo import ops

x = torch.ones(2, 2)
reveal_type(ops.first_and_last(x))
ops.fused_rms_norm(x, x, "wrong")
ops.scale_(x)
"""


def test_mypy(python: Path, tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(MYPY)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", str(python), "use.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "tuple[torch._tensor.Tensor, torch._tensor.Tensor]" in done.stdout
    assert 'Argument 3 to "fused_rms_norm" has incompatible type "str"' in done.stdout
    assert 'Missing positional argument "factor"' in done.stdout
