# SPDX-License-Identifier: Apache-2.0
"""Builds the starter project for aarch64 Linux with a cross compiler, and runs it under qemu-user.

The target's Python and libraries come from Debian's packages, its PyTorch and pytest from wheels.
PyTorch 2.9.1 is the newest release whose wheel for aarch64 on PyPI is built without CUDA.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

__all__ = ["CORE", "CHOICE", "PACKAGES", "run_aarch64"]

#: What ./dev has to install on the machine.
PACKAGES = ("g++-aarch64-linux-gnu", "qemu-user")
TORCH = "2.9.1"
#: What a Debian machine needs to run Python and PyTorch.
DEBIAN = (
    "libc6 libstdc++6 libgcc-s1 libgomp1 libatomic1 python3.11-minimal libpython3.11-minimal "
    "libpython3.11-stdlib zlib1g libexpat1 libssl3 libffi8 libuuid1 libbz2-1.0 liblzma5 "
    "libsqlite3-0 libncursesw6 libtinfo6 libreadline8 libdb5.3 libcrypt1"
).split()
#: Without --no-deps pip would judge requirements by the machine that it runs on.
WHEELS = (
    f"torch=={TORCH} numpy pytest pluggy iniconfig packaging pygments filelock typing_extensions "
    "sympy mpmath networkx jinja2 markupsafe fsspec"
).split()
LEVELS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
#: The part of the device suite that covers tensors, copies, streams, autograd and training. The
#: whole of it would take a day under emulation.
CORE = tuple(f"test_{part}.py" for part in ("tensors", "device", "copies", "streams", "training"))
#: An emulated process starts PyTorch in about 40 s, and these tests start many or compile.
CHOICE = "not fresh and not process and not compile"
TOOLCHAIN = """\
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
"""


def run(*command: object, folder: Path, **more: str) -> None:
    words = [str(word) for word in command]
    subprocess.run(words, cwd=folder, env={**os.environ, **more}, check=True)


def fetch_debian(folder: Path) -> Path:
    """A root with Debian's packages for arm64; apt's own settings and lists stay as they are."""
    root, lists, packages = folder / "root", folder / "lists", folder / "debs"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    packages.mkdir(exist_ok=True)
    options = ["-qq", "-oAPT::Architecture=arm64", "-oAPT::Architectures=arm64"]
    options += [f"-oDir::State::Lists={lists}", "-oAPT::Sandbox::User=root"]
    run("apt-get", *options, "update", folder=folder)
    run("apt-get", *options, "download", *DEBIAN, folder=packages)
    for package in sorted(packages.glob("*.deb")):
        run("dpkg", "-x", package, root, folder=folder)
    return root


def fetch_wheels(folder: Path) -> Path:
    """A site-packages for the target."""
    site = folder / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    command += ["--only-binary=:all:", "--python-version", "3.11", "--implementation", "cp"]
    command += [f"--platform={level}_aarch64" for level in LEVELS]
    run(*command, "--target", site, *WHEELS, folder=folder)
    return site


def make_python(folder: Path, root: Path) -> Path:
    """A script that runs the target's Python, and is its `sys.executable` too."""
    script = folder / "python"
    program = root / "usr" / "bin" / "python3.11"
    script.write_text(f'#!/bin/sh\nexec qemu-aarch64 -L "{root}" -0 "$0" "{program}" "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def build(folder: Path, torch: Path, backendgen: Path, package: Path) -> Path:
    """The wheel of a new project."""
    (folder / "aarch64.cmake").write_text(TOOLCHAIN)
    run(backendgen, "new", "foo", folder=folder)
    lists = folder / "foo" / "CMakeLists.txt"
    text = lists.read_text()
    lists.write_text(text.replace("add_torch_backend(foo ", "add_torch_backend(foo WHEEL "))
    arguments = ["--toolchain", folder / "aarch64.cmake", f"-DBACKENDKIT_TORCH={torch}"]
    arguments += [f"-DBackendKit_DIR={package}", f"-DPython_EXECUTABLE={sys.executable}"]
    run("cmake", "-G", "Ninja", "-S", "foo", "-B", "build", *arguments, folder=folder)
    run("cmake", "--build", "build", "--target", "foo_wheel", folder=folder)
    (wheel,) = (folder / "build" / "dist").glob("*.whl")
    if not wheel.name.endswith("-linux_aarch64.whl"):
        sys.exit(f"error: the wheel is named {wheel.name}")
    return wheel


def run_aarch64(folder: Path, backendgen: Path, package: Path, suite: Path) -> int:
    """Returns pytest's exit status of the core part of the device suite in `suite`."""
    root = fetch_debian(folder)
    site = fetch_wheels(folder)
    wheel = build(folder, site / "torch", backendgen, package)
    installed = folder / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    python = make_python(folder, root)
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", "--device", "foo", "-k", CHOICE]
    path = os.pathsep.join([str(site), str(installed)])
    done = subprocess.run(
        [*command, *(suite / name for name in CORE)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    return done.returncode
