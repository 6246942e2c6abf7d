# SPDX-License-Identifier: Apache-2.0
"""What the tests of operators need: the build, a PyTorch, a C++ compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

ASK_PYTORCH = """
import json, torch
print(json.dumps({"version": torch.__version__, "folder": torch.__path__[0],
                  "abi": int(torch._C._GLIBCXX_USE_CXX11_ABI)}))
"""


@dataclass(frozen=True)
class Operator:
    """A line of dump_signatures: what backendgen knows about an operator."""

    name: str
    schema: str
    symbolic: str
    numbers: str
    device_order: str
    structured: str


@dataclass(frozen=True)
class PyTorch:
    python: str
    version: str
    folder: Path
    compile_flags: list[str]
    link_flags: list[str]

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs this PyTorch's Python, without any backend that may be installed there."""
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        return subprocess.run(
            [self.python, *map(str, arguments)], capture_output=True, text=True, env=environment
        )


@dataclass(frozen=True)
class Compiler:
    """Runs the C++ compiler in a folder, with the flags that every backend is built with."""

    flags: list[str]

    def __call__(self, folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [os.environ.get("CXX", "c++"), *self.flags, *map(str, words)],
            cwd=folder,
            capture_output=True,
            text=True,
        )


def from_environment(name: str) -> Path:
    value = os.environ.get(name)
    if not value:
        pytest.fail(f"set {name}; `./dev test tests/pytorch/operators` does")
    return Path(value)


@pytest.fixture(scope="session")
def backendgen() -> Path:
    return from_environment("BACKENDGEN")


@pytest.fixture(scope="session")
def pytorch() -> PyTorch:
    python = os.environ.get("BACKENDKIT_TEST_BASE_PYTHON", sys.executable)
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    answer = subprocess.run(
        [python, "-c", ASK_PYTORCH], capture_output=True, text=True, check=True, env=environment
    )
    found = json.loads(answer.stdout)
    folder = Path(found["folder"])
    include = folder / "include"
    api = include / "torch" / "csrc" / "api" / "include"
    return PyTorch(
        python=python,
        version=found["version"],
        folder=folder,
        compile_flags=[
            f"-D_GLIBCXX_USE_CXX11_ABI={found['abi']}",
            f"-isystem{include}",
            f"-isystem{api}",
        ],
        link_flags=[f"-L{folder / 'lib'}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{folder / 'lib'}"],
    )


@pytest.fixture(scope="session")
def compiler(pytorch: PyTorch) -> Compiler:
    # As for a vendor's sources: a function that kernels.h does not declare is an error.
    strict = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror=missing-declarations"]
    return Compiler(
        ["-std=c++20", "-fPIC", *strict, f"-I{ROOT / 'include'}", *pytorch.compile_flags]
    )


@pytest.fixture(scope="session")
def operators(pytorch: PyTorch) -> list[Operator]:
    build = from_environment("BACKENDKIT_BUILD")
    program = build / "tests" / "pytorch" / "operators" / "dump_signatures"
    dump = subprocess.run([program, pytorch.folder], capture_output=True, text=True, check=True)
    return [Operator(*line.split("\t")) for line in dump.stdout.splitlines()]


@pytest.fixture
def generate(
    backendgen: Path, pytorch: PyTorch, tmp_path: Path
) -> Callable[[dict[str, str]], Path]:
    """Generates the glue of a backend with kernels (operator: function); returns its folder."""

    def run(kernels: dict[str, str]) -> Path:
        lines = ["[backend]", 'name = "foo"', 'version = "0.1.0"', "[operators.kernels]"]
        lines += [f'"{name}" = "{function}"' for name, function in kernels.items()]
        (tmp_path / "backend.toml").write_text("\n".join(lines) + "\n")
        out = tmp_path / "glue"
        subprocess.run(
            [backendgen, "generate", "backend.toml", "--out", out, "--torch", pytorch.folder],
            cwd=tmp_path,
            check=True,
        )
        return out

    return run
