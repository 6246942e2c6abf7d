# SPDX-License-Identifier: Apache-2.0
"""Tries a merged wheel with whole releases of PyTorch, each in an environment that is then removed.

uv fetches the 3 GB that a release depends on, once for all Pythons.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from steps import ROOT, run, say

PROGRAMS = ROOT / "tests" / "package" / "packaging" / "cpp"
PROGRAM_SAYS = "device foo:1, hooks for 2 devices\non foo:1, right\n"
PREFIX = "import torch_foo; print(torch_foo.cmake_prefix_path)"
TABLE = ROOT / "generator" / "torch" / "releases.cpp"
IMPORTS = 15  # of each kind, one after the other, for a median


@dataclass(frozen=True)
class Python:
    """An interpreter to test with."""

    program: Path
    version: str  # "3.10"

    @property
    def label(self) -> str:
        return f"Python {self.version}"

    def has(self, release: str) -> bool:
        """Whether the generator's table of releases says that this Python has a wheel of it."""
        major, minor, _ = release.split(".")
        row = rf"\{{\{{{major}, {minor}, \d+\}}, (\d+), (\d+)\}}"
        match = re.search(row, TABLE.read_text(encoding="utf-8"))
        own = int(self.version.partition(".")[2])
        return match is None or int(match[1]) <= own <= int(match[2])

    @staticmethod
    def find(name: str) -> Python:
        """The interpreter that a name of PATH or a path means. Raises SystemExit."""
        found = shutil.which(os.path.expanduser(name))
        if found is None:
            raise SystemExit(f"error: found no `{name}`\nhelp: name the path of a Python")
        ask = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
        done = subprocess.run([found, "-c", ask], capture_output=True, text=True, check=False)
        if done.returncode != 0:  # such as a shim of pyenv, whose Python is not switched on
            raise SystemExit(
                f"error: `{found}` is no Python that runs\nnote: {done.stderr.strip()}\n"
                "help: name the path of the Python itself"
            )
        version, program = done.stdout.split()
        return Python(Path(program), version)


class Trial:
    """The merged wheel, and the folder in which releases come and go."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        self.wheel = wheel
        self.folder = folder
        self.logs = folder / "logs"
        self.where = folder / "test"
        self.uv = [sys.executable, "-m", "uv", "--no-progress", "--cache-dir", self.where / "cache"]

    def release(self, version: str, pythons: list[Python], alone: Path | None) -> None:
        """Tests one release with each Python that has it. `alone`, the wheel for this release only,
        is compared in how long `import torch` takes."""
        tested = 0
        shutil.rmtree(self.where, ignore_errors=True)
        try:
            for python in pythons:
                if not python.has(version):
                    say("Skipped", f"PyTorch {version} is not for {python.label}")
                    continue
                self._install(version, python)
                self._starter(version, python)
                if not tested:
                    self._programs(version, python)
                if alone and not tested:
                    self._imports(version, python, alone)
                tested += 1
        finally:
            shutil.rmtree(self.where, ignore_errors=True)
        if not tested:
            names = " or ".join(python.label for python in pythons)
            raise SystemExit(f"error: PyTorch {version} has no wheel for {names}")

    def _log(self, step: str, version: str, python: Python) -> Path:
        return self.logs / f"{step}-{version}-{python.version}.log"

    def _environment(self, python: Python) -> Path:
        return self.where / python.version / "bin" / "python"

    def _install(self, version: str, python: Python) -> None:
        made = self._environment(python)
        log = self._log("install", version, python)
        run(log, *self.uv, "venv", "--python", python.program, made.parents[1])
        words = [*self.uv, "pip", "install", "--python", made]
        # What the wheel requires is judged together with the release.
        run(log, *words, "--compile-bytecode", f"torch=={version}", "numpy", "pytest", self.wheel)

    def _starter(self, version: str, python: Python) -> None:
        log = self._log("test", version, python)
        run(log, self._environment(python), "-m", "pytest", "-q", "-p", "no:cacheprovider",
            cwd=self.folder / "foo", PYTHONDONTWRITEBYTECODE="1")  # fmt: skip
        lines = log.read_text(encoding="utf-8").splitlines()
        say("Tested", f"PyTorch {version}, {python.label}: {lines[-1].strip('= ')}")

    def _programs(self, version: str, python: Python) -> None:
        """A program in C++ finds the library for this release in the wheel, and runs with it."""
        made = self._environment(python)
        asked = [made, "-c", PREFIX]
        prefix = subprocess.check_output(asked, text=True, cwd=self.where).strip()
        build = self.folder / "programs" / version
        shutil.rmtree(build, ignore_errors=True)
        build.mkdir(parents=True)
        cmake = Path(sys.executable).parent / "cmake"
        log = self._log("programs", version, python)
        run(log, cmake, "-S", PROGRAMS, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_PREFIX_PATH={prefix}", f"-DPython_EXECUTABLE={made}")  # fmt: skip
        minor = ".".join(version.split(".")[:2])
        chosen = f"library {Path(prefix).parents[1]}/lib/{minor}/libtorch_foo.so\n"
        if chosen not in log.read_text(encoding="utf-8"):
            raise SystemExit(f"error: find_package chose another library, see {log}")
        run(log, cmake, "--build", build, "--target", "linked")
        run(log, build / "linked", "compute")
        if log.read_text(encoding="utf-8") != PROGRAM_SAYS:
            raise SystemExit(f"error: the program in C++ says something else, see {log}")
        say("Ran", f"PyTorch {version}: a program in C++, with lib/{minor}/libtorch_foo.so")

    def _imports(self, version: str, python: Python, alone: Path) -> None:
        """How long `import torch` takes with the merged wheel, with that for one, with none."""
        made = self._environment(python)
        run(self._log("remove", version, python), *self.uv, "pip", "uninstall", "--python", made,
            "torch_foo")  # fmt: skip
        kinds = {"no backend": "", "a wheel for one": alone, "the merged wheel": self.wheel}
        for name, wheel in kinds.items():
            if not wheel:
                continue
            place = self.where / name.replace(" ", "-")
            run(self._log("place", version, python), *self.uv, "pip", "install", "--python", made,
                "--no-deps", "--compile-bytecode", "--target", place, wheel)  # fmt: skip
            kinds[name] = place
        took: dict[str, list[float]] = {name: [] for name in kinds}
        for turn in range(IMPORTS + 1):  # the first reads files from disk
            for name, place in kinds.items():
                variables = {**os.environ, "PYTHONPATH": str(place)}
                started = time.perf_counter()
                subprocess.run(
                    [made, "-c", "import torch"], cwd=self.where, env=variables, check=True
                )
                if turn:
                    took[name].append(time.perf_counter() - started)
        medians = {name: statistics.median(times) * 1000 for name, times in took.items()}
        shown = ", ".join(f"{median:.0f} ms with {name}" for name, median in medians.items())
        say("Measured", f"`import torch` {version}, {python.label}, medians of {IMPORTS}: {shown}")
