# SPDX-License-Identifier: Apache-2.0
"""Runs suites of tests against several releases of PyTorch; `./dev matrix [VERSION...]`.

Each release gets a virtual environment of its own, with the CUDA packages that its wheel asks for
(about 5 GB, removed afterwards), and there: the comparison of every operator with torchgen, the
starter project built to a wheel and installed, the project's own tests and the device tests.
Prints a row for each release and writes it to a file beside the environments.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASES = (
    "2.5.1 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0 2.14.1 2.15.0".split()
)  # the last patch release of each minor one


@dataclass
class Release:
    version: str
    folder: Path
    cells: dict[str, str] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        return self.folder / "environment" / "bin" / "python"

    def run(self, log: str, *command: object, cwd: Path = ROOT, **variables: str) -> str | None:
        """The output of a command, which is kept in a log; None when it fails."""
        environment = {**os.environ, **variables, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        environment["PATH"] = f"{self.python.parent}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            [str(word) for word in command],
            cwd=cwd,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        (self.folder / f"{log}.log").write_text(done.stdout)
        return done.stdout if done.returncode == 0 else None

    def suite(self, name: str, *arguments: object, cwd: Path = ROOT, **variables: str) -> None:
        """Runs pytest and keeps the counts of its closing line."""
        output = self.run(name, self.python, "-m", "pytest", "-q", *arguments, cwd=cwd, **variables)
        text = output or (self.folder / f"{name}.log").read_text()
        counts = re.findall(r"(\d+) (passed|failed|skipped|errors?)\b", text.splitlines()[-1])
        words = [f"{number} {word}" for number, word in counts]
        self.cells[name] = ", ".join(words) if words else "did not run"
        self.good &= output is not None

    good: bool = True


def install(release: Release) -> bool:
    """PyTorch, what building and testing need, and BackendKit."""
    wanted = [
        line
        for line in (ROOT / "tests" / "requirements.txt").read_text().splitlines()
        if line and not line.startswith(("#", "torch=="))
    ]
    if release.run("venv", sys.executable, "-m", "venv", release.folder / "environment") is None:
        return False
    pip = [release.python, "-m", "pip", "install"]
    return (
        release.run("install", *pip, f"torch=={release.version}", *wanted) is not None
        and release.run(
            "backendkit", *pip, "--no-deps", "--no-build-isolation", ROOT,
            SKBUILD_BUILD_DIR=str(release.folder / "pip"),
        ) is not None
    )  # fmt: skip


def build_starter(release: Release) -> bool:
    """A new project's wheel, built with this PyTorch and installed beside it."""
    started = time.monotonic()
    backendgen = release.python.parent / "backendgen"
    built = (
        release.run("new", backendgen, "new", "foo", cwd=release.folder) is not None
        and release.run(
            "wheel", release.python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps",
            "--wheel-dir", "dist", "./foo", cwd=release.folder,
        ) is not None
    )  # fmt: skip
    if built:
        release.cells["build"] = f"{time.monotonic() - started:.0f} s"
        wheel = next((release.folder / "dist").glob("*.whl"))
        built = release.run("wheel-install", release.python, "-m", "pip", "install", "--no-deps",
                            wheel) is not None  # fmt: skip
    return built


def judge(release: Release) -> bool:
    shutil.rmtree(release.folder, ignore_errors=True)
    release.folder.mkdir(parents=True)
    if not install(release):
        release.cells["operators"] = "no environment"
        return False
    variables = {
        "BACKENDKIT_TEST_BASE_PYTHON": str(release.python),
        "BACKENDGEN": str(release.python.parent / "backendgen"),
    }
    release.suite("operators", "tests/operators/test_signatures.py", **variables)
    if not build_starter(release):
        release.cells["build"] = "failed"
        return False
    release.suite("starter", "-p", "no:cacheprovider", cwd=release.folder / "foo")
    release.suite("device", "tests/device", "--deselect", "tests/device/test_transformers.py")
    return release.good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="such as 2.6.0; else all")
    parser.add_argument("--folder", type=Path, required=True, help="where environments go")
    parser.add_argument("--keep", action="store_true", help="leave the environments there")
    options = parser.parse_args()
    versions = options.versions or RELEASES
    unknown = [version for version in versions if not re.fullmatch(r"\d+\.\d+\.\d+", version)]
    if unknown:
        parser.error(f"not a release such as 2.6.0: {', '.join(unknown)}")
    columns = ("operators", "build", "starter", "device")
    lines = ["| PyTorch | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    print("\n".join(lines), flush=True)
    failed = []
    for version in versions:
        release = Release(version, options.folder / version)
        if not judge(release):
            failed.append(version)
        cells = [release.cells.get(column, "-") for column in columns]
        lines.append(f"| {version} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
        (options.folder / "table.md").write_text("\n".join(lines) + "\n")
        if not options.keep:
            for name in ("environment", "pip", "foo"):
                shutil.rmtree(release.folder / name, ignore_errors=True)
    if failed:
        sys.exit(f"error: failed: {', '.join(failed)}\nnote: the logs are in {options.folder}")


if __name__ == "__main__":
    main()
