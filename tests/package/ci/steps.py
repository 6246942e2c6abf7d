# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of CI files, each to its end; `./dev ci-steps`.

The files are those of `backendgen ci` for a new project, and for one with [wheel.runtime]. What
the machine cannot do is said first. Needs root, because the steps run in containers of their own.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import driver_project
from bare_root import Failed, Root, StandIns, stand_ins
from github_steps import Run
from gitlab_steps import Pipeline

ROOT = Path(__file__).resolve().parents[3]
PYTHON = [sys.executable, "-m"]


@dataclass
class Runner:
    """Projects, files and what jobs keep, below one folder."""

    folder: Path
    root: Root
    given: StandIns

    def project(self, name: str) -> Path:
        """A new project, or one with a driver in a package of its own."""
        project = self.folder / name / "foo"
        shutil.rmtree(project.parent, ignore_errors=True)
        project.parent.mkdir()
        if name == "driver":
            driver_project.make(project)
        else:
            subprocess.run([*PYTHON, "backendkit", "new", project], check=True)
        return project

    def file(self, project: Path, *words: str) -> Path:
        """What `backendgen ci` prints, in a file beside the project."""
        command = [*PYTHON, "backendkit", "-C", project, "ci", *words]
        path = project.parent / f"{'-'.join(words).replace('---', '-')}.yml"
        path.write_bytes(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        return path

    def store(self, project: Path, service: str, empty: bool) -> Path:
        """A folder for artifacts; the compiler's cache of an earlier call stays."""
        store = self.folder / "stores" / f"{project.parent.name}-{service}"
        if empty:
            shutil.rmtree(store / "artifacts", ignore_errors=True)
        for name in ("artifacts", "cache"):
            (store / name).mkdir(parents=True, exist_ok=True)
        return store

    def run(self, project: Path, *words: str, **options: Any) -> Path:
        """Runs a file of `backendgen ci WORD...`; the folder of its artifacts."""
        service = words[0]
        kind = Run if service == "github" else Pipeline
        store = self.store(project, service, empty="only" not in options)
        file = self.file(project, *words)
        given = [f"{key} {value}" for key, value in options.items() if key != "instead"]
        print("\n===", file.relative_to(self.folder), ", ".join(given), flush=True)
        kind(file, project, self.root, store, self.given.variables, **options).execute()
        return store / "artifacts"

    def releases(self) -> list[str]:
        return ["--torch", self.given.torch]

    # The cases, by the names that the command line takes.

    def wheels(self) -> None:
        self.run(self.project("starter"), "github", *self.releases())

    def nightly(self) -> None:
        self.run(self.project("starter"), "github", "--nightly")

    def crcr(self) -> None:
        self.run(self.project("starter"), "github", "--crcr", instead=self.without_pytorch())

    def without_pytorch(self) -> dict[str, str]:
        """A released PyTorch in the place of the one that a pull request would build for hours."""
        download = "pip download --no-deps --dest .wheels"
        script = f'"$RUNNER_TEMP/tools/bin/python" -m {download} torch=={self.given.torch}'
        return {"Build PyTorch without CUDA": script}

    def gitlab(self) -> None:
        project = self.project("starter")
        self.run(project, "gitlab", "--nightly", *self.releases())
        self.run(project, "gitlab", "--nightly", *self.releases(), schedule=True)

    def runtime(self) -> None:
        """A tag whose driver is new, and one whose driver is on the index, by another commit."""
        project = self.project("driver")
        for service, place in (("github", "runtime-*"), ("gitlab", "runtime/runtime/*")):
            made = self.run(project, service, *self.releases(), tag="v0.1.0")
            (wheel,) = made.glob(f"{place}/new/foo_runtime-*.whl")
            published = Path(shutil.copy(wheel, self.given.wheels))
            driver_project.change_driver(project)
            try:
                again = {"tag": "v0.1.0", "only": ("runtime", "package")}
                made = self.run(project, service, *self.releases(), **again)
                (wheel,) = made.glob(f"{place}/published/foo_runtime-*.whl")
                if wheel.read_bytes() != published.read_bytes() or [*made.glob(f"{place}/new")]:
                    raise Failed(f"{wheel} is not what the index has")
            finally:
                published.unlink()
            project = self.project("driver")
        self.run(project, "github", "--nightly")
        self.run(project, "github", "--crcr", instead=self.without_pytorch())
        self.run(project, "gitlab", "--nightly", *self.releases(), schedule=True)


CASES = ("wheels", "nightly", "crcr", "gitlab", "runtime")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder in which everything is made")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"all, or of {', '.join(CASES)}")
    options = parser.parse_args()
    if unknown := set(options.cases) - set(CASES):
        parser.error(f"unknown cases: {', '.join(sorted(unknown))}")
    folder = options.folder.resolve()
    wheels = folder / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    build = [*PYTHON, "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", wheels, ROOT], check=True)
    given = stand_ins(wheels)
    root = Root(folder, given.shared)
    try:
        root.make()
    except Failed as error:
        parser.exit(1, f"error: {error}\n")
    python = root.python()
    given.notes.append(f"Python {python} stands in for each Python of the container")
    given.notes.append(f"PyTorch {given.torch} stands in for that of a pull request: `--crcr`")
    for note in given.notes:
        print(f"note: {note}", flush=True)
    runner = Runner(folder, root, given)
    for case in options.cases or CASES:
        started = time.monotonic()
        try:
            getattr(runner, case)()
        except Failed as error:
            print(f"error: {case}: {error}", file=sys.stderr)
            return 1
        print(f"\n=== {case}: done in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
