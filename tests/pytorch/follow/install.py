# SPDX-License-Identifier: Apache-2.0
"""Gets a release to read, and builds and tests with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from follow.releases import Release
from follow.report import BROKEN, Row

STEP = "build"
#: Nothing reads these; they are most of a wheel.
NOT_READ = ("libtorch_cuda", "libtorch_nvshmem", "libc10_cuda")
MATRIX = Path(__file__).resolve().parents[1] / "matrix" / "matrix.py"


class Failed(Exception):
    """Why there is no such release here."""


def unpacked(version: str, folder: Path) -> Release:
    """The release's wheel, as pip finds it, in `folder/torch-VERSION`; kept for the next time."""
    place = folder / f"torch-{version}"
    if not place.is_dir():
        wheels = folder / f"wheel-{version}"
        shutil.rmtree(wheels, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
        done = subprocess.run(
            [*command, "--dest", wheels, f"torch=={version}"], capture_output=True, text=True
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise Failed(f"pip cannot download PyTorch {version}: {last}")
        beside = folder / f"torch-{version}.new"
        shutil.rmtree(beside, ignore_errors=True)
        (wheel,) = wheels.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            archive.extractall(
                beside, [one for one in names if not Path(one).name.startswith(NOT_READ)]
            )
        shutil.rmtree(wheels)
        os.replace(beside, place)
    return Release(place)


def glue(backendgen: str, release: Release, folder: Path) -> tuple[dict[str, str], Path]:
    """The C++ that a new project's build generates for the release, and the project's own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for command in (
        ["-C", folder, "new", "foo"],
        ["-C", folder / "foo", "generate", "--torch", release.torch, "--out", "glue"],
    ):
        done = subprocess.run([backendgen, *command], capture_output=True, text=True)
        if done.returncode:
            raise Failed(done.stderr.strip().removeprefix("error: "))
    files = sorted((folder / "foo" / "glue").glob("*.cpp"))
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    return texts, folder / "foo"


def build(
    version: str, folder: Path, suites: str | None, python: Path | None, write: bool
) -> tuple[list[Row], Path | None]:
    """Runs the matrix for the release; the wheel that it built, if it could."""
    command = [sys.executable, MATRIX, version, "--folder", folder]
    command += [] if suites is None else ["--suites", suites]
    command += [] if python is None else ["--with", python]
    command += [] if write else ["--dry"]
    done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(done.stderr)
    wheels = list((folder / version / "dist").glob("*.whl"))
    rows = []
    if done.returncode:
        change = "the matrix fails"
        rows.append(Row(STEP, BROKEN, f"PyTorch {version}", change, "", done.stderr.strip()))
    return rows, wheels[0] if wheels else None


def library_of(wheel: Path, folder: Path) -> Path:
    """The backend's library in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".so") and "/lib/" in one)
        return Path(archive.extract(name, folder))
