# SPDX-License-Identifier: Apache-2.0
"""The starter project with a Runtime whose functions can be told to fail: see csrc/faulty.cpp."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "csrc"
#: Collectives for the simulator, as its README adds them to a new project.
COLLECTIVES = Path(__file__).resolve().parents[3] / "examples" / "collectives"


def replace_once(file: Path, before: str, after: str) -> None:
    """Puts another text in the place of one that a file has once."""
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1, (file, before)
    file.write_text(text.replace(before, after), encoding="utf-8")


def add_collectives(project: Path) -> None:
    readme = (COLLECTIVES / "README.md").read_text(encoding="utf-8")
    include, runtime, sources = re.findall(r"```(?:cpp|cmake)\n(.*)\n```", readme)
    for file in (COLLECTIVES / "csrc").iterdir():
        shutil.copy(file, project / "csrc")
    header, simulator = project / "csrc" / "runtime.h", '#include "simulator.h"'
    replace_once(header, simulator, f"{include}\n{simulator}")
    replace_once(header, "struct Runtime {", runtime)
    replace_once(project / "CMakeLists.txt", "SOURCES", sources)


def make_faulty(project: Path) -> None:
    """Puts that Runtime into a new project; what was its Runtime is `Simulated` then."""
    csrc = project / "csrc"
    header = (csrc / "runtime.h").read_text(encoding="utf-8")
    (csrc / "simulated.h").write_text(header.replace("struct Runtime", "struct Simulated"))
    source = (csrc / "runtime.cpp").read_text(encoding="utf-8")
    source, functions = re.subn(r"\bRuntime::", "Simulated::", source)
    assert functions == 29
    (csrc / "runtime.cpp").write_text(source)
    for name in ("runtime.h", "faulty.cpp"):
        shutil.copy(SOURCES / name, csrc)
    replace_once(project / "CMakeLists.txt", "SOURCES", "SOURCES csrc/faulty.cpp")


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
    add_collectives(folder / "foo")
    make_faulty(folder / "foo")
    return install(folder / "foo", backendkit, python, f"-DCMAKE_CXX_FLAGS_RELEASE={flags}")


def install(project: Path, backendkit: Path, python: str, *options: str) -> Path:
    """Builds a project beside itself; where its Python package then is."""
    tree, site = project.parent / "build", project.parent / "site"
    given = [f"-DBackendKit_DIR={backendkit}", f"-DPython_EXECUTABLE={python}"]
    given += ["-DCMAKE_BUILD_TYPE=Release", *options]
    run("cmake", "-G", "Ninja", "-S", project, "-B", tree, *given)
    run("cmake", "--build", tree)
    run("cmake", "--install", tree, "--prefix", site, "--component", "foo")
    return site


def add_entry_point(site: Path) -> None:
    """Lets `import torch` load a package that `install` has put there."""
    metadata = site / "torch_foo-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch_foo\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text("[torch.backends]\nfoo = torch_foo:_autoload\n")
