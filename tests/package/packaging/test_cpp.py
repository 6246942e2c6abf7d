# SPDX-License-Identifier: Apache-2.0
"""Programs in C++: what links the library with `find_package`, and what opens it.

BACKENDKIT_TEST_PYTHON is a Python with the starter project's backend.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Callable

import pytest
from conftest import ROOT, Environment, for_release, from_environment, run

PROGRAMS = Path(__file__).parent / "cpp"
PREFIX = "import torch_foo; print(torch_foo.cmake_prefix_path)"
ONE_BACKEND = "PyTorch supports one PrivateUse1 backend per process, and"
Program = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="module")
def installed() -> Path:
    """The folder of CMake packages in the backend's Python package."""
    python = from_environment("BACKENDKIT_TEST_PYTHON")
    return Path(run(python, "-c", PREFIX, cwd=python.parent).stdout.strip())


@pytest.fixture(scope="module")
def package(installed: Path) -> Path:
    return installed.parents[1]


@pytest.fixture(scope="module")
def library(package: Path, minor: str) -> Path:
    return package / "lib" / minor / "libtorch_foo.so"


@pytest.fixture(scope="module")
def build(installed: Path, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    options = [f"-DCMAKE_PREFIX_PATH={installed}", f"-DPython_EXECUTABLE={base}"]
    options += ["-DCMAKE_BUILD_TYPE=Release", "-G", "Ninja"]
    run(base.parent / "cmake", "-S", PROGRAMS, "-B", folder, *options, cwd=folder)
    run(base.parent / "cmake", "--build", folder, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def program(build: Path) -> Program:
    def start(*words: str | Path, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(build / words[0]), *map(str, words[1:])],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **environment},
        )

    return start


STEPS = {
    "compute": "device foo:1, hooks for 2 devices\non foo:1, right\n",
    "seed": "manual_seed truetrue\ngenerator foo:0 true\n",
    "pin": "pinned truefalse true\n",
    "streams": "current true\ndefault again true, sum 101, idle true\n",
    "threads": "right 8\n",
    "train": "gradient 12\n",
}


@pytest.mark.parametrize("step", STEPS)
def test_a_program_that_links_the_library(program: Program, step: str, torch_folder: Path) -> None:
    done = program("linked", step)
    expected = STEPS[step]
    seeds = (torch_folder / "include" / "ATen" / "Context.h").read_text()
    if step == "seed" and "getAccelerator()" not in seeds.partition("void manual_seed(")[2]:
        expected = expected.replace("manual_seed truetrue", "manual_seed falsefalse")
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_files_go_from_cpp_to_python_and_back(
    program: Program, build: Path, tmp_path: Path
) -> None:
    done = program("linked", "save", tmp_path / "cpp.pt")
    expected = "loaded ones on foo:0 true\nloaded count on foo:1 true\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")
    code = """
import sys, torch
for name, tensor in torch.load("cpp.pt", weights_only=False).items():
    print(name, tensor.device, tensor.sum().item())
torch.save({"twos": torch.full((2,), 2.0, device="foo:1")}, "python.pt")
"""
    python = from_environment("BACKENDKIT_TEST_PYTHON")
    shown = run(python, "-c", code, cwd=tmp_path).stdout
    assert shown == "ones foo:0 6.0\ncount foo:1 3\n"
    done = program("linked", "load", tmp_path / "python.pt")
    assert (done.returncode, done.stdout) == (0, "twos on foo:1 sum 4\n"), done.stderr


@pytest.mark.parametrize("way", ["return", "exit", "thread"])
def test_a_program_ends_while_streams_work(program: Program, way: str) -> None:
    for _ in range(5):
        done = program("linked", "leave", way, FOO_SIMULATOR_DELAY="20000")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_the_library_there_is_no_device(program: Program) -> None:
    done = program("opened", "compute")
    assert done.returncode == 1
    assert "device type at start of device string: foo" in done.stderr


def test_a_program_that_opens_the_library(program: Program, library: Path) -> None:
    done = program("opened", "open", library)
    expected = "problem none\ndevice nothing\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


@pytest.mark.parametrize("order", ["name-before", "name-after"])
def test_a_program_may_register_the_name_itself(
    program: Program, library: Path, order: str
) -> None:
    done = program("opened", order, "foo", library)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("problem none\ndevice nothing\n")
    assert done.stdout.endswith("named nothing\n") is (order == "name-after")


def test_a_device_of_another_name_stays(program: Program, library: Path) -> None:
    done = program("opened", "name-before", "bar", library)
    why = f"{ONE_BACKEND} device `bar` is already registered"
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == f"problem {why}"
    assert "at start of device string: foo" in done.stdout.splitlines()[1]
    assert done.stderr.count(f"device `foo` is not available: {why}") == 1


def test_a_backend_without_a_name_stays(program: Program, library: Path) -> None:
    done = program("opened", "guard-before", library)
    assert done.returncode == 0
    assert done.stdout.startswith(
        f"problem {ONE_BACKEND} another library has already registered one"
    )


def test_two_copies_of_the_library(program: Program, library: Path, tmp_path: Path) -> None:
    done = program("opened", "open", library, shutil.copy(library, tmp_path))
    assert done.returncode == 0
    first, second, device = done.stdout.splitlines()
    assert (first, device) == ("problem none", "device nothing")
    assert second.startswith(f"problem {ONE_BACKEND} another library has already registered one")


# The CMake package.

ASKS = """
cmake_minimum_required(VERSION 3.22...4.0)
project(asks LANGUAGES CXX)
set(CMAKE_FIND_PACKAGE_PREFER_CONFIG ON)
{before}
find_package(torch_foo {wanted})
find_package(torch_foo {wanted})
if(NOT torch_foo_FOUND)
  message(FATAL_ERROR "${{torch_foo_NOT_FOUND_MESSAGE}}")
endif()
get_target_property(place torch_foo::library IMPORTED_LOCATION)
file(WRITE ${{CMAKE_BINARY_DIR}}/answer "${{torch_foo_VERSION}}\\n${{torch_foo_TORCH_VERSION}}\\n"
     "${{torch_foo_TORCH_DIR}}\\n${{place}}\\n${{torch_foo_LIBRARY}}\\n")
"""


@pytest.fixture
def ask(base: Path, installed: Path, tmp_path: Path):
    """Configures a project that asks for the package: what it answers, or CMake's error."""

    def configure(
        *options: str, wanted: str = "", before: str = "", prefix: Path = installed
    ) -> list[str]:
        source = tmp_path / "asks"
        source.mkdir(exist_ok=True)
        (source / "CMakeLists.txt").write_text(ASKS.format(wanted=wanted, before=before))
        words = ["cmake", "-S", source, "-B", tmp_path / "asked", "-G", "Ninja", "--fresh"]
        words += [f"-DCMAKE_PREFIX_PATH={prefix}", *options]
        path = f"{base.parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [*map(str, words)], capture_output=True, text=True, env={**os.environ, "PATH": path}
        )
        if done.returncode != 0:
            return [re.sub(r"\s+", " ", done.stderr)]
        return (tmp_path / "asked" / "answer").read_text().splitlines()

    return configure


def a_torch(folder: Path, version: str, config: bool = False) -> Path:
    """A folder that is a PyTorch as far as its version goes."""
    folder.mkdir(parents=True)
    (folder / "version.py").write_text(f"__version__ = '{version}+cpu'\n")
    if config:
        (folder / "share" / "cmake" / "Torch").mkdir(parents=True)
        (folder / "share" / "cmake" / "Torch" / "TorchConfig.cmake").write_text("")
    return folder


def test_the_package_names_its_library_and_pytorch(
    ask, base: Path, library: Path, torch_folder: Path, minor: str
) -> None:
    version, release, torch, place, opened = ask(f"-DPython_EXECUTABLE={base}", wanted="0.1")
    assert version == "0.1.0"
    assert release.startswith(f"{minor}.")
    assert Path(torch) == torch_folder
    assert Path(place) == Path(opened) == library


def test_where_pytorch_is_looked_for(ask, package: Path, tmp_path: Path, minor: str) -> None:
    """Moved elsewhere, beside the PyTorch of that place; nearer ones first."""
    moved = tmp_path / "site with blanks" / "torch_foo"
    for part in ("lib", "share"):
        shutil.copytree(package / part, moved / part)
    prefix = moved / "share" / "cmake"
    beside = a_torch(moved.parent / "torch", f"{minor}.1")
    listed = a_torch(tmp_path / "listed", f"{minor}.2", config=True)
    found = a_torch(tmp_path / "found", f"{minor}.3", config=True)
    named = a_torch(tmp_path / "named", f"{minor}.4")

    answer = ask(prefix=prefix)
    assert answer[1:4] == [f"{minor}.1", str(beside), f"{moved}/lib/{minor}/libtorch_foo.so"]
    both = f"{prefix};{listed}"
    assert ask(prefix=both)[1:3] == [f"{minor}.2", str(listed)]
    assert ask(prefix=f"{prefix};{listed}/share/cmake")[2] == str(listed)
    before = f"list(APPEND CMAKE_PREFIX_PATH [[{found}]])\nfind_package(Torch REQUIRED)"
    assert ask(before=before, prefix=prefix)[1:3] == [f"{minor}.3", str(found)]
    assert ask(f"-Dtorch_foo_TORCH_DIR={named}", prefix=both)[1:3] == [f"{minor}.4", str(named)]


def test_an_unpacked_libtorch_has_its_version_elsewhere(ask, tmp_path: Path, minor: str) -> None:
    folder = tmp_path / "libtorch"
    folder.mkdir()
    (folder / "build-version").write_text(f"{minor}.7+cpu\n")
    assert ask(f"-Dtorch_foo_TORCH_DIR={folder}")[1] == f"{minor}.7"


def test_a_release_that_is_not_served(ask, tmp_path: Path, minor: str) -> None:
    other = a_torch(tmp_path / "torch", "2.4.1")
    (text,) = ask(f"-Dtorch_foo_TORCH_DIR={other}", wanted="REQUIRED")
    expected = (
        f"torch_foo 0.1.0 was built for PyTorch {minor}, but the PyTorch in {other} is 2.4.1."
    )
    assert f"{expected} Install that " in text
    assert f'python -m pip install "torch=={minor}.*"' in text


def test_a_merged_wheel_has_the_library_of_each_release(
    ask, base: Path, tools: Path, torch_folder: Path, tmp_path: Path, minor: str
) -> None:
    wheel = from_environment("BACKENDKIT_TEST_WHEEL")
    major, number = minor.split(".")
    older, newer = (f"{major}.{int(number) + step}" for step in (-1, 1))
    wheels = [for_release(wheel, other, tmp_path / other) for other in (older, newer)]
    run(tools.parent / "backendgen", "merge", *wheels, wheel, "--python", base, cwd=tmp_path)
    (merged,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(merged) as archive:
        archive.extractall(tmp_path / "site")
    package = tmp_path / "site" / "torch_foo"
    prefix = package / "share" / "cmake"
    for other in (older, newer):
        torch = a_torch(tmp_path / f"torch-{other}", f"{other}.1")
        answer = ask(f"-Dtorch_foo_TORCH_DIR={torch}", prefix=prefix)
        assert answer[3] == f"{package}/lib/{other}/libtorch_foo.so"
    torch = a_torch(tmp_path / "torch-2.4", "2.4.1")
    (text,) = ask(f"-Dtorch_foo_TORCH_DIR={torch}", prefix=prefix)
    assert f"was built for PyTorch {older} to {newer}, but the PyTorch in" in text

    build = tmp_path / "build"
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-Dtorch_foo_TORCH_DIR={torch_folder}"]
    options += ["-DCMAKE_BUILD_TYPE=Release", "-G", "Ninja"]
    said = run(base.parent / "cmake", "-S", PROGRAMS, "-B", build, *options, cwd=tmp_path).stdout
    assert f"library {package}/lib/{minor}/libtorch_foo.so" in said
    run(base.parent / "cmake", "--build", build, "--target", "linked", cwd=tmp_path)
    assert run(build / "linked", "compute", cwd=tmp_path).stdout == STEPS["compute"]


def test_no_pytorch(ask, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    (text,) = ask(f"-DPython_EXECUTABLE={python}", wanted="REQUIRED")
    assert "It found no PyTorch. Pass -Dtorch_foo_TORCH_DIR=<folder>" in text
    (tmp_path / "empty").mkdir()
    (text,) = ask(f"-Dtorch_foo_TORCH_DIR={tmp_path / 'empty'}", wanted="REQUIRED")
    assert "there is no version.py" in text


def test_a_newer_package_is_wanted(ask) -> None:
    (text,) = ask(wanted="9.0 REQUIRED")
    assert "0.1.0" in text and "9.0" in text


# The example.


@pytest.fixture(scope="module")
def example(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Environment, str]:
    """examples/cpp_inference after the commands of its README, with what they printed."""
    folder = tmp_path_factory.mktemp("example") / "cpp_inference"
    shutil.copytree(ROOT / "examples" / "cpp_inference", folder)
    environment = Environment(
        folder.parent / "environment", base, from_environment("BACKENDKIT_TEST_PYTHON")
    )
    (script,) = re.findall(r"^```sh\n(.*?)^```$", (folder / "README.md").read_text(), re.M | re.S)
    path = f"{environment.programs}:{base.parent}:/usr/bin:/bin"
    return folder, environment, run("bash", "-euc", script, cwd=folder, PATH=path).stdout


def test_the_example_computes_what_the_cpu_and_python_compute(
    example: tuple[Path, Environment, str],
) -> None:
    folder, _, text = example
    line, differences = text.splitlines()[-2:]
    (shown,) = re.findall(r"^```text\n(.*?)^```$", (folder / "README.md").read_text(), re.M | re.S)
    assert line == shown.splitlines()[0]
    numbers = re.fullmatch(r"the CPU's result differs by (\S+), Python's by (\S+)", differences)
    assert max(map(float, numbers.groups())) < 1e-5
    cpu = run(folder / "build" / "inference", "weights.pt", "cpu", cwd=folder).stdout
    assert cpu.splitlines()[0] == line.replace("foo:0", "cpu")


def test_the_example_says_what_is_wrong(example: tuple[Path, Environment, str]) -> None:
    folder, _, _ = example
    inference = folder / "build" / "inference"
    assert run(inference, "no.pt", cwd=folder, status=1).stdout == "error: cannot read no.pt\n"
    text = run(inference, "weights.pt", "bar", cwd=folder, status=1).stdout
    assert "device type at start of device string: bar" in text
    assert run(inference, cwd=folder, status=2).stdout == "usage: inference FILE [DEVICE]\n"
