# SPDX-License-Identifier: Apache-2.0
"""Opens a backend's wheel and verifies it.

The arguments are WHEEL DEVICE PACKAGE MINOR PROJECT SMOKE RUNTIME, the last as runtime_wheel.py has
it: the wheel is verified together with the driver's own, which is made of the project's files.

What it prints is for `backendgen wheel` to show, see screen.py.
"""

import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from backendkit_tools.runtime_wheel import Facts, lay_out, make_wheel
from backendkit_tools.screen import fail, say
from backendkit_tools.symbols import check_symbols
from backendkit_tools.wheelfile import WheelError, read_wheel


def check_entry_point(archive, name, device, package):
    wanted = f"{package}:_autoload"
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str
    for member in archive.namelist():
        if member.endswith(".dist-info/entry_points.txt"):
            parser.read_string(archive.read(member).decode())
    found = parser["torch.backends"] if parser.has_section("torch.backends") else {}
    if wanted not in found.values():
        fail(
            f"{name} has no `torch.backends` entry point",
            f'setup.py needs `entry_points={{"torch.backends": ["{package} = {wanted}"]}}`',
        )


def dynamic_section(path):
    text = subprocess.run(
        ["readelf", "-dW", path], capture_output=True, text=True, check=True
    ).stdout
    needed, run_paths = [], []
    for line in text.splitlines():
        value = line.partition("[")[2].rpartition("]")[0]
        if "(NEEDED)" in line:
            needed.append(value)
        if "(RPATH)" in line or "(RUNPATH)" in line:
            run_paths += value.split(":")
    return needed, run_paths


def check_library(member, folder):
    base = os.path.basename(member)
    if re.match(r"lib(torch(_cpu|_cuda|_python|_global_deps)?|c10(_cuda)?)\.", base):
        fail(f"{member} is a library of PyTorch and must not be in the wheel")
    if not base.endswith(".so"):
        return
    if shutil.which("readelf") is None:
        fail("found no `readelf`, which is needed to inspect libraries", "apt-get install binutils")
    needed, run_paths = dynamic_section(os.path.join(folder, member))
    for library in needed:
        if library.startswith(("libpython", "libtorch_python")):
            fail(
                f"{member} needs {library}, so the wheel works with only one version of Python",
                "include no header of torch/csrc/autograd/python or pybind11",
            )
    for path in run_paths:
        if not path.startswith("$ORIGIN"):
            fail(f"{member} looks for libraries in {path}", "set the RPATH to `$ORIGIN`")


def check_paths(archive, project):
    for member in archive.namelist():
        if os.fsencode(project) + b"/" in archive.read(member):
            fail(
                f"{member} contains the path of this project's folder",
                "build with `-ffile-prefix-map`, as add_torch_backend() does",
            )


def smoke(folder, device, runtime):
    code = f'import torch; torch.ones(2, device="{device}")'
    path = os.pathsep.join([folder, runtime])
    environment = dict(os.environ, PYTHONPATH=path, TORCH_DEVICE_BACKEND_AUTOLOAD="1")
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )
    if run.returncode != 0:
        for line in run.stderr.strip().splitlines()[-8:]:
            say("note", line)
        fail(f"`{code}` failed with the wheel installed")
    say("Tested", code)


def main():
    wheel, device, package, minor, project, wish, facts = sys.argv[1:]
    name = os.path.basename(wheel)
    try:
        read_wheel(Path(wheel))
    except WheelError as error:
        fail(str(error))
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as scratch:
        folder, runtime = os.path.join(scratch, "wheel"), os.path.join(scratch, "runtime")
        os.mkdir(runtime)
        if facts:
            lay_out(make_wheel(Facts.read(facts)), Path(runtime))
        check_entry_point(archive, name, device, package)
        archive.extractall(folder)
        libraries = [m for m in archive.namelist() if m.endswith((".so", ".dylib", ".dll"))]
        own = [m for m in libraries if m.startswith(f"{package}/lib/{minor}/")]
        if not own:
            fail(f"{name} has no library in {package}/lib/{minor}/")
        config = f"{package}/share/cmake/{package}/{package}Config.cmake"
        if config not in archive.namelist():
            fail(
                f"{name} has no {config}, with which C++ programs find the backend",
                "install the backend with the rules of add_torch_backend()",
            )
        for member in libraries:
            check_library(member, folder)
        check_paths(archive, project)
        for member in own:
            if member.endswith(".so"):
                check_symbols(member, Path(folder), Path(runtime))
        count = "1 library" if len(libraries) == 1 else f"{len(libraries)} libraries"
        say("Verified", f"entry point, {count}, RECORD, symbols, no path outside the wheel")
        if wish == "smoke":
            smoke(folder, device, runtime)


if __name__ == "__main__":
    main()
