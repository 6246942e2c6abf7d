# SPDX-License-Identifier: Apache-2.0
"""Tries what release.py has made, for `./dev release --check`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

__all__ = ["check", "digests"]

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 3 << 20
TORCH = ROOT / "tests" / "generator" / "golden" / "fake_torch" / "torch"


def check(out: Path, work: Path) -> None:
    """Ends the program with an error if something is wrong with the results in `out`."""
    scratch = work / "check"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    (sdist,) = (path for path in out.glob("*.tar.gz") if "-linux-" not in path.name)
    run("twine", "check", "--strict", sdist, *out.glob("*.whl"), cwd=scratch)
    for wheel in sorted(out.glob("*.whl")):
        check_wheel(wheel, scratch / wheel.stem)
    for package in sorted(out.glob("*.deb")):
        run("lintian", "--fail-on", "error,warning", "--allow-root", package, cwd=scratch)
        done("lintian", package)
    check_sdist(sdist, scratch / "sdist")


def digests(out: Path) -> dict[str, str]:
    """A hash of each result, by name."""
    files = sorted(path for path in out.iterdir() if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def check_wheel(wheel: Path, scratch: Path) -> None:
    """Size, contents and tag; then the program runs, under qemu if it is for another machine."""
    machine = wheel.stem.rpartition("manylinux_2_17_")[2]
    expect(wheel.stat().st_size < LIMIT, f"{wheel.name} is larger than 3 MB")
    run("check-wheel-contents", wheel, cwd=wheel.parent)
    shown = run("auditwheel", "show", wheel, cwd=wheel.parent)
    expect(f"manylinux_2_17_{machine}" in shown, shown)
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        packed.extractall(scratch)
    for part in ("fmt.txt", "libyaml.txt", "libc++.txt", "NOTICE.txt"):
        expect(any(name.endswith(f"licenses/third_party/{part}") for name in names), part)
    (program,) = scratch.glob("*.data/scripts/backendgen")
    program.chmod(0o755)
    start: list[str | Path] = [program]
    if machine != os.uname().machine:
        start = [f"qemu-{machine}", "-L", f"/usr/{machine}-linux-gnu", program]
    version = run(*start, "--version", cwd=scratch)
    expect(version.startswith("backendgen "), version)
    run(*start, "new", "foo", cwd=scratch)
    # A project without kernels needs nothing of PyTorch.
    description = scratch / "foo" / "backend.toml"
    lines = description.read_text(encoding="utf-8").partition("[operators.kernels]")[0]
    description.write_text(lines, encoding="utf-8")
    run(*start, "check", "--torch", TORCH, cwd=scratch / "foo")
    run(*start, "ops", "--torch", TORCH, cwd=scratch)
    done("audited and run", wheel)


def check_sdist(sdist: Path, scratch: Path) -> None:
    """Builds it without a network and without the libraries that are installed here."""
    scratch.mkdir()
    with tarfile.open(sdist) as packed:
        packed.extractall(scratch, filter="data")
    (source,) = scratch.iterdir()
    settings = "-DCMAKE_IGNORE_PREFIX_PATH='/usr;/usr/local;/' -DFETCHCONTENT_FULLY_DISCONNECTED=ON"
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", scratch, source]
    environment = {**os.environ, "CMAKE_ARGS": settings}
    run("unshare", "--map-root-user", "--net", *command, cwd=scratch, environment=environment)
    done("built without a network", sdist)


def run(
    *command: str | Path,
    cwd: Path,
    environment: dict[str, str] | None = None,
) -> str:
    """What a program prints; an error if it fails."""
    words = [str(word) for word in command]
    finished = subprocess.run(
        words,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    text = f"`{' '.join(words)}` ended with status {finished.returncode}:\n{finished.stdout}"
    expect(finished.returncode == 0, text)
    return finished.stdout


def expect(holds: bool, text: str) -> None:
    if not holds:
        raise SystemExit(f"error: {text}")


def done(what: str, path: Path) -> None:
    print(f"{'Checked':>12} {path.name}: {what}", flush=True)
