# SPDX-License-Identifier: Apache-2.0
"""Builds the starter project for releases of PyTorch and joins the wheels; `./dev wheels`.

A build needs only PyTorch's headers, its libraries libtorch_cpu and libc10, and torchgen: these are
taken out of the wheel that pip downloads, and the rest is deleted (0.6 GB stay for a release; the
next run uses them again). The tests need a whole PyTorch with what it depends on (5 to 8 GB): with
`--test`, one release after another is installed, tested and removed.
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

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "pytorch" / "matrix"))
from results import RELEASES  # noqa: E402

LIMIT = 4_000_000  # bytes of a wheel for eleven releases
PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"
LIBRARIES = ("libtorch_cpu.", "libtorch.", "libc10.", "libtorch_global_deps.", "libgomp")


def say(verb: str, text: str) -> None:
    print(f"{verb:>12} {text}", flush=True)


def run(log: Path, *command: object, cwd: Path = ROOT, **variables: str) -> None:
    """Runs a command with its output in a log. Raises SystemExit with its end if it fails."""
    with open(log, "w", encoding="utf-8") as file:
        words = [str(word) for word in command]
        done = subprocess.run(
            words, cwd=cwd, env={**os.environ, **variables}, stdout=file, stderr=subprocess.STDOUT
        )
    if done.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        shown = "\n".join(f"  {line}" for line in lines)
        raise SystemExit(
            f"error: `{' '.join(words[:6])}` failed with status {done.returncode}\n"
            f"note: the last lines of {log}:\n{shown}"
        )


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


def build(version: str, arguments: argparse.Namespace, torch: Path, tools: str) -> Path:
    """The wheel of the starter project for one release."""
    started = time.monotonic()
    folder = arguments.folder
    out = folder / "dist" / version
    base = subprocess.check_output([sys.executable, "-c", PURELIB], text=True).strip()
    python = environment(Path(sys.executable), folder / "environments" / version, str(torch),
                         tools, base)  # fmt: skip
    shutil.rmtree(out, ignore_errors=True)
    pip = [python, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps"]
    run(folder / "logs" / f"build-{version}.log", *pip, "--wheel-dir", out, folder / "foo",
        PATH=os.pathsep.join([str(arguments.tools / "bin"), os.environ["PATH"]]))  # fmt: skip
    (wheel,) = out.glob("*.whl")
    say("Built", f"{version}: {wheel.stat().st_size} bytes in {time.monotonic() - started:.0f} s")
    return wheel


def merge(wheels: list[Path], arguments: argparse.Namespace) -> Path:
    """The joined wheel, made twice from wheels in opposite order: the same bytes."""
    made = []
    for name, order in (("merged", wheels), ("merged-reversed", wheels[::-1])):
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


def test(version: str, python: Path, wheel: Path, folder: Path) -> None:
    """Installs PyTorch and the wheel for one Python, and runs the starter's tests."""
    where = folder / "test"
    shutil.rmtree(where, ignore_errors=True)
    try:
        subprocess.run([python, "-m", "venv", where], check=True)
        pip = [where / "bin" / "python", "-m", "pip", "install", "--no-cache-dir"]
        label = f"{version}-{python.name}"
        logs = folder / "logs"
        # The wheel's own requirement of PyTorch is judged by pip.
        run(logs / f"install-{label}.log", *pip, f"torch=={version}", "numpy", "pytest", wheel,
            TMPDIR=str(where))  # fmt: skip
        run(logs / f"test-{label}.log", where / "bin" / "python", "-m", "pytest", "-q",
            "-p", "no:cacheprovider", cwd=folder / "foo", PYTHONDONTWRITEBYTECODE="1")  # fmt: skip
        lines = (logs / f"test-{label}.log").read_text(encoding="utf-8").splitlines()
        say("Tested", f"PyTorch {version}, {python.name}: {lines[-1].strip('= ')}")
    finally:
        shutil.rmtree(where, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev wheels", description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", default=RELEASES, metavar="VERSION")
    parser.add_argument("--folder", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--tools", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument(
        "--test",
        default="",
        metavar="PYTHON[,...]",
        help="test each release with these Pythons, such as python3.10,python3.13",
    )
    arguments = parser.parse_args()
    folder = arguments.folder = arguments.folder.resolve()
    for name in ("torch", "logs", "dist", "environments"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    pythons = []
    for name in filter(None, arguments.test.split(",")):
        found = shutil.which(name)
        if found is None:
            raise SystemExit(f"error: found no `{name}`")
        pythons.append(Path(found))
    program = arguments.tools / "bin" / "backendgen"
    # The folder stays the same, so that ccache and CMake's folders serve the next run.
    if not (folder / "foo" / "setup.py").is_file():
        run(folder / "logs" / "new.log", program, "new", "foo", cwd=folder)
    asked = [arguments.tools / "bin" / "python", "-c", PURELIB]
    tools = subprocess.check_output(asked, text=True).strip()
    wheels = [
        build(version, arguments, get(version, folder / "torch", folder / "logs"), tools)
        for version in arguments.versions
    ]
    wheel = merge(wheels, arguments)
    for version in arguments.versions if pythons else ():
        for python in pythons:
            test(version, python, wheel, folder)


if __name__ == "__main__":
    main()
