# SPDX-License-Identifier: Apache-2.0
"""Tries what release.py has made, for `./dev release --check`."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

from installs import (
    bare_environments,
    debian,
    emulated,
    expect,
    run,
    same_programs,
    whole_path,
)

__all__ = ["check", "digests"]

LIMIT = 3 << 20
HERE = os.uname().machine
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
LINTIAN = ("--fail-on", "error,warning", "--tag-display-limit", "0", "--allow-root")


def check(out: Path, work: Path, machines: list[str]) -> None:
    """Ends the program with an error if something is wrong with the results in `out`."""
    scratch = work / "check"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    (sdist,) = (path for path in out.glob("*.tar.gz") if "-linux-" not in path.name)
    run("twine", "check", "--strict", sdist, *out.glob("*.whl"), cwd=scratch)
    for machine in machines:
        (wheel,) = out.glob(f"*_{machine}.whl")
        check_wheel(wheel, machine, scratch / wheel.stem)
        same_programs(out, machine, scratch / f"programs-{machine}")
        done("the program of the Debian package and of the archive", wheel)
    for package in sorted(out.glob("*.deb")):
        run("lintian", *LINTIAN, package, cwd=scratch)
        done("lintian", package)
    for package in out.glob(f"*_{DEBIAN.get(HERE)}.deb"):
        debian(package, scratch / "debian")
        done("installed and used on a bare Debian", package)
    if HERE in machines:
        (wheel,) = out.glob(f"*_{HERE}.whl")
        whole_path(wheel, scratch)
        done("a project, from new to a tensor on its device, with pip and with uv", wheel)
    check_sdist(sdist, scratch / "sdist")


def digests(out: Path) -> dict[str, str]:
    """A hash of each result, by name."""
    files = sorted(path for path in out.iterdir() if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def check_wheel(wheel: Path, machine: str, scratch: Path) -> None:
    """Size, contents and tag; then the program runs, under qemu if it is for another machine."""
    size = wheel.stat().st_size
    expect(size < LIMIT, f"{wheel.name} is larger than 3 MB: {size} bytes")
    # LICENSE is there twice: for pip, and for the wheels of backends.
    run("check-wheel-contents", "--ignore", "W002", wheel, cwd=wheel.parent)
    shown = run("auditwheel", "show", wheel, cwd=wheel.parent)
    tag = f"manylinux_2_17_{machine}"
    expect(f'consistent with the following platform tag: "{tag}"' in " ".join(shown.split()), shown)
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        packed.extractall(scratch / "unpacked")
    for part in ("fmt.txt", "libyaml.txt", "libc++.txt", "NOTICE.txt"):
        expect(any(name.endswith(f"licenses/third_party/{part}") for name in names), part)
    done(f"{size / 1024:.0f} KiB, {tag}", wheel)
    if machine == HERE:
        bare_environments(wheel, scratch)
        done("installed and run without a compiler, with pip and with uv", wheel)
    else:
        (program,) = (scratch / "unpacked").glob("*.data/scripts/backendgen")
        program.chmod(0o755)
        emulated(program, machine, scratch)
        done("run under qemu", wheel)


def check_sdist(sdist: Path, scratch: Path) -> None:
    """Builds it without a network and without the libraries that are installed here."""
    scratch.mkdir()
    with tarfile.open(sdist) as packed:
        packed.extractall(scratch, filter="data")
    (source,) = scratch.iterdir()
    settings = (
        "-DCMAKE_IGNORE_PREFIX_PATH='/usr;/usr/local;/' -DFETCHCONTENT_FULLY_DISCONNECTED=ON "
        "-DCMAKE_CXX_FLAGS_RELEASE=-O0"  # half the time
    )
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", scratch, source]
    environment = {
        **os.environ,
        "CMAKE_ARGS": settings,
        "SKBUILD_BUILD_DIR": str(scratch / "build"),
    }
    run("unshare", "--map-root-user", "--net", *command, cwd=scratch, environment=environment)
    done("built without a network", sdist)


def done(what: str, path: Path) -> None:
    print(f"{'Checked':>12} {path.name}: {what}", flush=True)
