# SPDX-License-Identifier: Apache-2.0
"""Builds the starter project for releases of PyTorch and joins the wheels; `./dev wheels`.

A build needs only PyTorch's headers, its libraries libtorch_cpu and libc10, and torchgen: these are
taken out of the wheel that pip downloads, and the rest is deleted (0.6 GB stay for a release; the
next run uses them again). The tests need a whole PyTorch with what it depends on: with `--test`,
one release after another is installed, tested and removed (10 GB while one is there).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from steps import ROOT, run, say
from trial import Python, Trial

sys.path.insert(0, str(ROOT / "tests" / "pytorch" / "matrix"))
from results import RELEASES

LIMIT = 4_000_000  # bytes of a wheel for eleven releases
PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"
LIBRARIES = ("libtorch_cpu.", "libtorch.", "libc10.", "libtorch_global_deps.", "libgomp")


def needed(name: str) -> bool:
    """Whether a build reads this file of PyTorch's wheel."""
    if name.startswith("torch/lib/"):
        return name.split("/")[2].startswith(LIBRARIES)
    return name.startswith(("torch/include/", "torch/share/", "torchgen/")) or name.endswith(".py")


def get(version: str, folder: Path, logs: Path) -> Path:
    """The parts of a release that a build needs, in a folder."""
    place = folder / version
    if place.is_dir():
        return place
    say("Downloading", f"PyTorch {version}")
    partial, downloads = folder / f".{version}", folder / ".downloads"
    for path in (partial, downloads):
        shutil.rmtree(path, ignore_errors=True)
    try:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
        run(logs / f"download-{version}.log", *pip, "-d", downloads, f"torch=={version}")
        (wheel,) = downloads.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(partial, [name for name in archive.namelist() if needed(name)])
        partial.rename(place)
    finally:
        shutil.rmtree(downloads, ignore_errors=True)
        shutil.rmtree(partial, ignore_errors=True)
    return place


def environment(python: Path, folder: Path, *seen: str) -> Path:
    """A virtual environment of `python` without pip that sees, but cannot change, the folders."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    made = folder / "bin" / "python"
    own = subprocess.check_output([made, "-c", PURELIB], text=True).strip()
    Path(own, "seen.pth").write_text("".join(f"{path}\n" for path in seen), encoding="utf-8")
    return made


def build(
    version: str, project: Path, out: Path, arguments: argparse.Namespace, tools: str
) -> Path:
    """The wheel of the starter project for one release."""
    folder = arguments.folder
    torch = get(version, folder / "torch", folder / "logs")
    started = time.monotonic()
    base = subprocess.check_output([sys.executable, "-c", PURELIB], text=True).strip()
    python = environment(Path(sys.executable), folder / "environments" / version, str(torch),
                         tools, base)  # fmt: skip
    shutil.rmtree(out, ignore_errors=True)
    pip = [python, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps"]
    log = folder / "logs" / f"build-{out.parent.name}-{version}.log"
    run(log, *pip, "--wheel-dir", out, project,
        PATH=os.pathsep.join([str(arguments.tools / "bin"), os.environ["PATH"]]))  # fmt: skip
    (wheel,) = out.glob("*.whl")
    place = project.relative_to(folder)
    took = f"{time.monotonic() - started:.0f} s"
    say("Built", f"{version}: {wheel.stat().st_size} bytes, in {place} in {took}")
    return wheel


def build_all(project: Path, out: Path, arguments: argparse.Namespace, tools: str) -> list[Path]:
    """The wheels for all releases, built in the folder of a project, which is made if needed."""
    program = arguments.tools / "bin" / "backendgen"
    if not (project / "setup.py").is_file():
        project.parent.mkdir(parents=True, exist_ok=True)
        run(arguments.folder / "logs" / "new.log", program, "new", project.name, cwd=project.parent)
    return [
        build(version, project, out / version, arguments, tools) for version in arguments.versions
    ]


def compare(wheels: list[Path], again: list[Path]) -> None:
    """Two builds of each release, in two folders, are equal."""
    for first, second in zip(wheels, again):
        if first.name != second.name or first.read_bytes() != second.read_bytes():
            raise SystemExit(f"error: {first} and {second} differ")
    say("Compared", f"{len(wheels)} wheels with those of the other folder: the same bytes")


def merge(wheels: list[Path], again: list[Path], arguments: argparse.Namespace) -> Path:
    """The joined wheel, made twice from wheels in opposite order: the same bytes."""
    made = []
    for name, order in (("merged", wheels), ("merged-reversed", again[::-1])):
        out = arguments.folder / name
        shutil.rmtree(out, ignore_errors=True)
        program = arguments.tools / "bin" / "backendgen"
        python = ["--python", sys.executable]
        run(arguments.folder / "logs" / f"{name}.log", program, "merge", *order, "--out", out,
            *python, cwd=arguments.folder)  # fmt: skip
        (wheel,) = out.glob("*.whl")
        made.append(wheel)
    first, second = (path.read_bytes() for path in made)
    if first != second or made[0].name != made[1].name:
        raise SystemExit("error: the order of the wheels changes the result")
    digest = hashlib.sha256(first).hexdigest()
    say("Merged", f"{made[0].name}: {len(first)} bytes, sha256 {digest}, in both orders")
    if len(wheels) == len(RELEASES) and len(first) >= LIMIT:
        raise SystemExit(f"error: the wheel has {len(first)} bytes, expected fewer than {LIMIT}")
    return made[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev wheels", description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", default=RELEASES, metavar="VERSION")
    parser.add_argument("--folder", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--tools", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument(
        "--test",
        default="",
        metavar="PYTHON[,...]",
        help="test each release with these Pythons, names or paths, as in python3.10,python3.13",
    )
    parser.add_argument(
        "--twice",
        action="store_true",
        help="build each wheel again in another folder, where the results are thrown away before",
    )
    arguments = parser.parse_args()
    folder = arguments.folder = arguments.folder.resolve()
    for name in ("torch", "logs", "dist", "environments"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    pythons = [Python.find(name) for name in arguments.test.split(",") if name]
    asked = [arguments.tools / "bin" / "python", "-c", PURELIB]
    tools = subprocess.check_output(asked, text=True).strip()
    # The folder stays the same, so that ccache and CMake's folders serve the next run.
    wheels = again = build_all(folder / "foo", folder / "dist", arguments, tools)
    if arguments.twice:
        shutil.rmtree(folder / "again", ignore_errors=True)
        again = build_all(folder / "again" / "foo", folder / "again" / "dist", arguments, tools)
        compare(wheels, again)
    wheel = merge(wheels, again, arguments)
    trial = Trial(wheel, folder)
    for version, alone in zip(arguments.versions, wheels) if pythons else ():
        trial.release(version, pythons, alone if version == arguments.versions[-1] else None)


if __name__ == "__main__":
    main()
