# SPDX-License-Identifier: Apache-2.0
"""The starter project with a Runtime whose functions can be told to fail: see csrc/faulty.cpp."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "csrc"


def make_faulty(project: Path) -> None:
    """Puts that Runtime into a new project; what was its Runtime is `Simulated` then."""
    csrc = project / "csrc"
    header = (csrc / "runtime.h").read_text(encoding="utf-8")
    (csrc / "simulated.h").write_text(header.replace("struct Runtime", "struct Simulated"))
    source = (csrc / "runtime.cpp").read_text(encoding="utf-8")
    source, functions = re.subn(r"\bRuntime::", "Simulated::", source)
    assert functions == 42
    (csrc / "runtime.cpp").write_text(source)
    for name in ("runtime.h", "faulty.cpp"):
        shutil.copy(SOURCES / name, csrc)
    lists = project / "CMakeLists.txt"
    text = lists.read_text(encoding="utf-8")
    assert text.count("SOURCES") == 1
    lists.write_text(text.replace("SOURCES", "SOURCES csrc/faulty.cpp"))


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """What a program prints; fails the test when it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


def build(backendgen: str, backendkit: Path, python: str, folder: Path, flags: str) -> Path:
    """Builds it in a folder; where its Python package then is."""
    run(backendgen, "new", folder / "foo")
    make_faulty(folder / "foo")
    tree, site = folder / "build", folder / "site"
    options = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={python}"]
    options += [f"-DBackendKit_DIR={backendkit}", f"-DCMAKE_CXX_FLAGS_RELEASE={flags}"]
    run("cmake", "-G", "Ninja", "-S", folder / "foo", "-B", tree, *options)
    run("cmake", "--build", tree)
    run("cmake", "--install", tree, "--prefix", site, "--component", "foo")
    return site
