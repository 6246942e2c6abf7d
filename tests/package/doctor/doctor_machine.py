# SPDX-License-Identifier: Apache-2.0
"""A small machine: programs, a Python, a PyTorch of three tiny libraries, a backend."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

BACKENDGEN = os.environ["BACKENDGEN"]
GCC = shutil.which("gcc") or "gcc"
# Modes of files count for root too without these.
WITHOUT = "-dac_override,-dac_read_search"
AS_A_USER = [f"{shutil.which('setpriv')}", f"--bounding-set={WITHOUT}"] if os.geteuid() == 0 else []
NAME = f"python{sys.version_info[0]}.{sys.version_info[1]}"


def compile_library(path: Path, source: str, *options: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    code = path.with_suffix(".c")
    code.write_text(source)
    command = [GCC, "-shared", "-fPIC", "-o", str(path), str(code), f"-Wl,-soname,{path.name}"]
    subprocess.run([*command, *options], check=True)
    code.unlink()
    return path


def make_torch(site: Path) -> None:
    """A PyTorch as doctor sees it."""
    lib = site / "torch" / "lib"
    c10 = compile_library(lib / "libc10.so", "int c10_error(void) { return 1; }")
    own = compile_library(
        lib / "libtorch_cpu.so",
        "int at_add(void) { return 2; }",
        str(c10),
        "-Wl,--no-as-needed",
        "-Wl,-rpath,$ORIGIN",
    )
    compile_library(lib / "libtorch.so", "int torch(void) { return 3; }", str(own))
    (site / "torch" / "__init__.py").write_text("")
    (site / "torch" / "version.py").write_text("__version__ = '2.13.0+cpu'\ncuda = None\n")
    operators = site / "torchgen/packaged/ATen/native/native_functions.yaml"
    operators.parent.mkdir(parents=True)
    operators.write_text("- func: abs(Tensor self) -> Tensor\n")
    install(site, "torch", "2.13.0+cpu", ["torch", "torchgen"])


def install(site: Path, name: str, version: str, parts: list[str], entry: str = "") -> Path:
    """Writes the `.dist-info` of files that are there."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "INSTALLER").write_text("pip\n")
    if entry:
        (info / "entry_points.txt").write_text(f"[torch.backends]\n{entry}\n")
    rows = []
    for part in parts:
        for path in sorted((site / part).rglob("*")):
            if path.is_file():
                digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest())
                size = path.stat().st_size
                text = digest.rstrip(b"=").decode()
                rows.append(f"{path.relative_to(site)},sha256={text},{size}")
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,", ""]))
    return info


class Machine:
    """One of them in a folder. `environment`, `arguments` and `here` are of each run."""

    def __init__(self, folder: Path, torch: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.venv = folder / "venv"
        self.site = self.venv / "lib" / NAME / "site-packages"
        self.here = folder / "here"
        self.arguments: list[str] = []
        for made in (self.bin, self.site, self.venv / "bin", self.here):
            made.mkdir(parents=True)
        real = Path(sys.executable).resolve()
        self.python = self.venv / "bin" / "python"
        self.python.symlink_to(real)
        (self.venv / "pyvenv.cfg").write_text(
            f"home = {real.parent}\ninclude-system-site-packages = false\n"
        )
        self.program("cmake", "echo cmake version 3.25.1")
        self.program("ninja", "echo 1.11.1")
        (self.bin / "c++").symlink_to(shutil.which("g++") or "g++")
        self.environment = {"PATH": str(self.bin), "LC_ALL": "C", "VIRTUAL_ENV": str(self.venv)}
        shutil.copytree(torch, self.site, dirs_exist_ok=True)
        install(self.site, "pip", "24.0", [])
        install(self.site, "setuptools", "75.0.0", [])
        self.backend()

    def program(self, name: str, text: str) -> None:
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def backend(self, name: str = "foo", **changes: Any) -> None:
        """Installs, or installs again, the package torch_NAME, whole."""
        package = self.site / f"torch_{name}"
        shutil.rmtree(package, ignore_errors=True)
        minor = changes.pop("minor", "2.13")
        self.library(
            package / "lib" / minor / f"libtorch_{name}.so",
            *changes.pop("options", []),
            source=changes.pop("source", ""),
        )
        (package / "__init__.py").write_text("def _autoload():\n    pass\n")
        facts = {"DEVICE": name, "PACKAGE": f"torch_{name}", "VERSION": "0.1.0", **changes}
        text = "".join(f"{key} = {value!r}\n" for key, value in facts.items())
        (package / "_build.py").write_text(text)
        self.record(name)

    def record(self, name: str = "foo") -> Path:
        entry = f"torch_{name} = torch_{name}:_autoload"
        return install(self.site, f"torch_{name}", "0.1.0", [f"torch_{name}"], entry)

    def library(self, path: Path, *options: str, source: str = "") -> Path:
        torch = self.site / "torch" / "lib"
        code = source or "int at_add(void); int foo(void) { return at_add(); }"
        return compile_library(
            path,
            code,
            str(torch / "libtorch_cpu.so"),
            f"-Wl,-rpath-link,{torch}",
            "-Wl,--no-as-needed",
            *options,
        )

    @property
    def own_library(self) -> Path:
        return self.site / "torch_foo" / "lib" / "2.13" / "libtorch_foo.so"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*AS_A_USER, BACKENDGEN, "doctor", *arguments, *self.arguments],
            cwd=self.here,
            env=self.environment,
            capture_output=True,
            text=True,
            errors="replace",
        )

    def rows(self) -> list[dict[str, Any]]:
        done = self.run("--format", "json")
        result = json.loads(done.stdout)
        bad = [row for row in result["rows"] if row["status"] == "fail"]
        assert done.returncode == (1 if bad else 0), done.stderr
        assert result["ok"] is not bool(bad)
        rows: list[dict[str, Any]] = result["rows"]
        for row in rows:
            assert (row["help"] == "") == (row["status"] == "ok"), row
        return rows
