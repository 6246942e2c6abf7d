# SPDX-License-Identifier: Apache-2.0
"""The pip package backendkit."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from conftest import ROOT, run

PARTS = ("cmake-modules", "generator", "include", "python", "templates", "tests/device")


def says(tools: Path, code: str) -> str:
    return run(tools, "-c", code, cwd=tools.parent).stdout.strip()


def test_the_parts_are_there(tools: Path) -> None:
    assert Path(says(tools, "import backendkit as b; print(b.cmake_dir())")).is_dir()
    cmake = Path(says(tools, "import backendkit as b; print(b.cmake_dir())"))
    assert {path.name for path in (ROOT / "cmake-modules").glob("*.cmake")} < {
        path.name for path in cmake.iterdir()
    }
    include = Path(says(tools, "import backendkit as b; print(b.include_dir())"))
    assert {path.name for path in (include / "backendkit").iterdir()} == {
        path.name for path in (ROOT / "include" / "backendkit").iterdir()
    }
    suite = Path(says(tools, "import backendkit as b; print(b.device_tests_dir())"))
    assert {path.name for path in suite.glob("*.py")} == {
        path.name for path in (ROOT / "tests" / "device").glob("*.py")
    }
    typed = says(tools, "import backendkit as b; print(b.__path__[0])")
    assert (Path(typed) / "py.typed").is_file()


def test_the_program_on_path_is_the_program(tools: Path) -> None:
    version = says(tools, "import backendkit as b; print(b.__version__)")
    executable = says(tools, "import backendkit as b; print(b.executable())")
    for program in (executable, tools.parent / "backendgen"):
        assert run(program, "--version", cwd=tools.parent).stdout.startswith(
            f"backendgen {version}"
        )
        assert "unknown command" in run(program, "nonsense", cwd=tools.parent, status=2).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="looks into an ELF file")
def test_the_program_stands_alone(tools: Path) -> None:
    executable = says(tools, "import backendkit as b; print(b.executable())")
    text = subprocess.run(
        ["readelf", "-dW", executable], capture_output=True, text=True, check=True
    ).stdout
    needed = {line.split("[")[1].split("]")[0] for line in text.splitlines() if "(NEEDED)" in line}
    assert {name.split(".")[0] for name in needed} <= {"libc", "libm", "ld-linux-x86-64"}


def test_metadata(tools: Path) -> None:
    code = (
        "from importlib.metadata import distribution as d; b = d('backendkit'); "
        "print(b.read_text('WHEEL'), *b.requires, sep='\\n')"
    )
    text = says(tools, code)
    assert "Tag: py3-none-" in text
    assert text.splitlines()[-3:] == ["cmake>=3.22", "ninja", "setuptools>=70.1"]


def test_the_sdist_has_every_source(base: Path, tmp_path: Path) -> None:
    command = ["-m", "build", "--sdist", "--no-isolation", "-o", tmp_path, ROOT]
    run(base, *command, cwd=tmp_path)
    (path,) = tmp_path.glob("backendkit-*.tar.gz")
    with tarfile.open(path) as archive:
        packed = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *PARTS]
    listed = run(*words, cwd=ROOT).stdout.split("\0")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    wanted |= {"CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml"}
    assert wanted - packed == set()
