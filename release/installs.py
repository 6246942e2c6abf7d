# SPDX-License-Identifier: Apache-2.0
"""Installs what release.py has made as users do, with pip, with uv and on Debian, and uses it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

__all__ = [
    "bare_environments",
    "debian",
    "emulated",
    "expect",
    "run",
    "same_programs",
    "whole_path",
]

ROOT = Path(__file__).resolve().parents[1]
# The list of operators that a PyTorch has, and no more of it.
TORCH = ROOT / "tests" / "generator" / "golden" / "fake_torch" / "torch"
INSTALLERS = ("pip", "uv")
USE = "import torch; print(torch.ones(2, device='foo') + 1)"

FINDS = """
cmake_minimum_required(VERSION 3.22...4.0)
project(finds LANGUAGES CXX)
find_package(BackendKit REQUIRED)
add_library(finds STATIC finds.cpp)
target_compile_features(finds PRIVATE cxx_std_20)
target_link_libraries(finds PRIVATE BackendKit::runtime)
"""
HEADERS = '#if !__has_include(<backendkit/runtime.h>)\n#error "no headers"\n#endif\n'
# First nothing but the package; then what it recommends as well, so that CMake finds it.
ON_DEBIAN = """#!/bin/sh
set -eux
export DEBIAN_FRONTEND=noninteractive
cd /tried
dpkg --install ./*.deb
backendgen --version
backendgen new foo
(cd foo && backendgen check --torch /tried/torch/torch)
backendgen ops --torch /tried/torch/torch
dpkg --purge backendkit
test ! -e /usr/bin/backendgen
apt-get install -q -y --install-recommends ./*.deb >/dev/null
backendgen doctor || test $? = 1
cmake -G Ninja -S finds -B build
cmake --build build
"""


def bare_environments(wheel: Path, scratch: Path) -> None:
    """Without a compiler, CMake and PyTorch, all but building works."""
    for installer in INSTALLERS:
        python = environment(installer, scratch / installer)
        options = ["--no-index", "--no-deps", wheel]
        install(installer, python, *options, cwd=scratch)
        alone = {**os.environ, "PATH": str(python.parent)}
        try_program([python.parent / "backendgen"], scratch / f"{installer}-tried", alone)


def emulated(program: Path, machine: str, scratch: Path) -> None:
    """The program of another machine, under qemu."""
    qemu = shutil.which(f"qemu-{machine}")
    expect(qemu is not None, f"found no qemu-{machine}")
    python = environment("pip", scratch / "python")
    alone = {**os.environ, "PATH": str(python.parent)}
    start = [str(qemu), "-L", f"/usr/{machine}-linux-gnu", program]
    try_program(start, scratch / "tried", alone)


def try_program(start: Sequence[str | Path], folder: Path, environment: dict[str, str]) -> None:
    """What backendgen does without a compiler; `doctor` is to say what is missing."""
    folder.mkdir()
    shown = run(*start, "--version", cwd=folder, environment=environment)
    expect(shown.startswith("backendgen "), shown)
    run(*start, "new", "foo", cwd=folder, environment=environment)
    torch = ["--torch", TORCH]
    shown = run(*start, "check", *torch, cwd=folder / "foo", environment=environment)
    expect("Checked backend.toml: foo" in shown, shown)
    shown = run(*start, "ops", *torch, cwd=folder, environment=environment)
    expect("mm" in shown.split(), shown)
    shown = run(*start, "doctor", cwd=folder, environment=environment, status=1)
    for row in ("ok    python", "warn  compiler", "warn  cmake", "fail  torch"):
        expect(row in shown, shown)


def whole_path(wheel: Path, scratch: Path) -> None:
    """A project from its start to a tensor on its device, in environments with PyTorch."""
    torch = f"torch=={version('torch').partition('+')[0]}"
    own = Path(sys.executable).parent
    outside = [place for place in os.environ["PATH"].split(os.pathsep) if Path(place) != own]
    for installer in INSTALLERS:
        python = environment(installer, scratch / installer)
        path = os.pathsep.join([str(python.parent), *outside])
        variables = {**os.environ, "PATH": path, "UV_CACHE_DIR": str(scratch / "uv-cache")}
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
        run(*pip, torch, cwd=scratch)
        install(installer, python, wheel, cwd=scratch, environment=variables)
        folder = scratch / f"{installer}-project"
        folder.mkdir()
        run("backendgen", "new", "foo", cwd=folder, environment=variables)
        build: list[str | Path] = [python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir"]
        if installer == "uv":
            build = [own / "uv", "build", "--wheel", "--python", python, "--out-dir"]
        build += [folder / "dist", "--no-build-isolation", folder / "foo"]
        run(*build, cwd=folder, environment=variables)
        (built,) = (folder / "dist").glob("*.whl")
        install(installer, python, built, cwd=folder, environment=variables)
        shown = run(python, "-c", USE, cwd=folder, environment=variables)
        expect("tensor([2., 2.], device='foo:0')" in shown, shown)
        shutil.rmtree(scratch / installer)  # 700 MB


def environment(installer: str, folder: Path) -> Path:
    """A new virtual environment; returns its Python."""
    if installer == "uv":
        uv = Path(sys.executable).parent / "uv"
        run(uv, "venv", "--quiet", "--python", sys.executable, folder, cwd=folder.parent)
    else:
        run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    return folder / "bin" / "python"


def install(
    installer: str,
    python: Path,
    *words: str | Path,
    cwd: Path,
    environment: dict[str, str] | None = None,
) -> None:
    command: list[str | Path] = [python, "-m", "pip", "install"]
    if installer == "uv":
        uv = Path(sys.executable).parent / "uv"
        command = [uv, "pip", "install", "--python", python]
    run(*command, "--quiet", *words, cwd=cwd, environment=environment)


def debian(package: Path, scratch: Path) -> None:
    """Installs the package into a bare Debian, which is thrown away."""
    tried = scratch / "tried"
    (tried / "finds").mkdir(parents=True)
    shutil.copy(package, tried)
    shutil.copytree(TORCH.parent, tried / "torch")
    (tried / "finds" / "CMakeLists.txt").write_text(FINDS, encoding="utf-8")
    (tried / "finds" / "finds.cpp").write_text(HEADERS, encoding="utf-8")
    (tried / "try.sh").write_text(ON_DEBIAN, encoding="utf-8")
    hooks = [f"--customize-hook=copy-in {tried} /"]
    hooks += ["--chrooted-customize-hook=sh /tried/try.sh"]
    run("mmdebstrap", "--variant=minbase", "--format=null", *hooks, "bookworm", "-", cwd=scratch)


def same_programs(out: Path, machine: str, scratch: Path) -> None:
    """The Debian package and the archive have the program of the wheel, which was run."""
    scratch.mkdir()
    (wheel,) = out.glob(f"*_{machine}.whl")
    (archive,) = out.glob(f"*-linux-{machine}.tar.gz")
    (package,) = out.glob(f"*_{'arm64' if machine == 'aarch64' else 'amd64'}.deb")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(scratch / "wheel")
    with tarfile.open(archive) as packed_too:
        packed_too.extractall(scratch / "archive", filter="data")
    run("dpkg-deb", "--extract", package, scratch / "package", cwd=scratch)
    found = [path for path in scratch.rglob("backendgen") if path.parent.name in ("scripts", "bin")]
    expect(len(found) == 3, f"not three programs: {found}")
    hashes = {hashlib.sha256(path.read_bytes()).hexdigest() for path in found}
    expect(len(hashes) == 1, f"not the same program: {found}")


def run(
    *command: str | Path,
    cwd: Path,
    environment: dict[str, str] | None = None,
    status: int = 0,
) -> str:
    """What a program prints; an error if it ends with another status."""
    words = [str(word) for word in command]
    finished = subprocess.run(
        words,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    text = f"`{' '.join(words)}` ended with status {finished.returncode}:\n{finished.stdout}"
    expect(finished.returncode == status, text)
    return finished.stdout


def expect(holds: bool, text: str) -> None:
    if not holds:
        raise SystemExit(f"error: {text}")
