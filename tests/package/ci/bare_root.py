# SPDX-License-Identifier: Apache-2.0
"""A bare Debian for the steps of CI files, and what stands in there for what a machine lacks.

It has a compiler, git, make and Python, and nothing else, so that a package that a step uses and
does not install is missing there, as in the container of a CI. Each job begins with it as it was.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PACKAGES = "ca-certificates,g++,git,make,python3,python3-venv"
PYTHONS = range(10, 15)
SYSTEM = ["/proc", "/dev", "/dev/pts", "/sys"]
HOME = "/home/ci"
NIGHTLY = Path(__file__).resolve().parents[3] / "templates" / "ci" / "github-nightly.yml"

DNF = """#!/bin/sh
# `dnf install -y NAME`: Debian has ccache under the same name, and no EPEL.
set -e
[ "$1 $2" = "install -y" ] || { echo "dnf: unexpected: $*" >&2; exit 2; }
[ "$3" != epel-release ] || exit 0
apt-get update -q && apt-get install -q -y --no-install-recommends "$3"
"""


class Failed(Exception):
    """What went wrong, for people."""


def copy(source: Path, target: Path) -> None:
    """Copies a file or a folder, into the folder that may be there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


@dataclass
class Root:
    """A bare Debian, and containers that begin with it."""

    folder: Path
    shared: list[Path]  # folders of this machine that it sees, at the same place

    @property
    def base(self) -> Path:
        return self.folder / "root"

    def make(self) -> None:
        own, outer = (os.readlink(f"/proc/{one}/ns/mnt") for one in ("self", os.getppid()))
        if own == outer:
            # What is mounted would outlive a run that is killed, and `rm -rf` would follow it.
            raise Failed(
                "these mounts need a namespace: `unshare --mount`, as `./dev ci-steps` does"
            )
        if not (self.base / "opt" / "python").is_dir():
            shutil.rmtree(self.base, ignore_errors=True)
            command = ["mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm"]
            subprocess.run([*command, str(self.base)], check=True, stdout=subprocess.DEVNULL)
            for number in PYTHONS:
                bin = self.base / "opt" / "python" / f"cp3{number}-cp3{number}" / "bin"
                bin.mkdir(parents=True)
                (bin / "python").symlink_to("/usr/bin/python3")
            dnf = self.base / "usr" / "bin" / "dnf"
            dnf.write_text(DNF)
            dnf.chmod(0o755)
        for name in ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
            if Path(name).is_file():
                shutil.copy(name, self.base / name.lstrip("/"))
        (self.folder / "downloads").mkdir(exist_ok=True)

    def python(self) -> str:
        """The release of its Python: 3.11."""
        names = sorted(path.name for path in (self.base / "usr" / "lib").glob("python3.*"))
        return names[0].removeprefix("python")

    @contextmanager
    def container(self) -> Iterator[Path]:
        """A container for one job: what the job changes is gone afterwards, but downloads."""
        mounted: list[Path] = []

        def mount(*words: object) -> None:
            subprocess.run(["mount", *map(str, words)], check=True)
            mounted.append(Path(str(words[-1])))

        place = self.folder / "container"
        shutil.rmtree(place, ignore_errors=True)
        upper, work, merged = place / "upper", place / "work", place / "merged"
        for path in (upper, work, merged):
            path.mkdir(parents=True)
        layers = f"lowerdir={self.base},upperdir={upper},workdir={work}"
        try:
            mount("-t", "overlay", "overlay", "-o", layers, merged)
            pairs = [(path, path) for path in [*map(Path, SYSTEM), *self.shared]]
            pairs.append((self.folder / "downloads", Path(HOME, ".cache")))
            for source, target in pairs:
                inside = merged / str(target).lstrip("/")
                inside.mkdir(parents=True, exist_ok=True)
                mount("--bind", source, inside)
            yield merged
        finally:
            while mounted:
                subprocess.run(["umount", str(mounted.pop())], check=True)
            shutil.rmtree(place, ignore_errors=True)


def run_script(container: Path, script: str, folder: str, environment: dict[str, str]) -> None:
    """Runs a text with bash in a folder of the container; Failed if it fails.

    A variable with an empty value is unset.
    """
    file = container / "script.sh"
    file.write_text(script)
    inside = 'cd "$1" && exec bash --noprofile --norc -eo pipefail "$0"'
    command = ["chroot", container, "bash", "-c", inside, "/script.sh", folder]
    own = {"HOME": HOME, "LANG": "C.UTF-8", "PIP_ROOT_USER_ACTION": "ignore"}
    variables = {key: value for key, value in {**own, **environment}.items() if value}
    if status := subprocess.run(command, env=variables, check=False).returncode:
        raise Failed(f"exit status {status}")


@dataclass
class StandIns:
    """Where packages come from: variables for pip and uv, folders, and notes that say so."""

    variables: dict[str, str]
    shared: list[Path]
    notes: list[str]
    torch: str  # the release of PyTorch of this Python, which the steps get
    wheels: Path  # BackendKit's, and what else an index has


def configured(key: str) -> list[str]:
    """The values of a key of pip's configuration on this machine."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(rf"(?m)^(?:global|install|:env:)\.{key}='(.*)'$", listed)
    return list(dict.fromkeys(word for value in found for word in value.split()))


def reaches_pytorch() -> bool:
    """Whether the index of PyTorch's builds, which the files name, can be reached."""
    (url,) = re.findall(r"(?m)^ +TORCH_INDEX: (\S+)$", NIGHTLY.read_text(encoding="utf-8"))
    try:
        with urllib.request.urlopen(f"{url}/torch/", timeout=15):
            return True
    except (urllib.error.URLError, OSError):
        return False


def stand_ins(wheels: Path) -> StandIns:
    """What this machine has, with the folder of BackendKit's wheel."""
    links = [str(wheels), *configured("find-links")]
    indexes = configured("extra-index-url")
    torch = importlib.metadata.version("torch").partition("+")[0]
    variables = {
        "PIP_FIND_LINKS": " ".join(links),
        "UV_FIND_LINKS": ",".join(links),
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_SYSTEM_CERTS": "1",
        "UV_NATIVE_TLS": "1",
        "UV_LINK_MODE": "copy",
    }
    if indexes:
        variables |= {"PIP_EXTRA_INDEX_URL": " ".join(indexes)}
        variables |= {"UV_EXTRA_INDEX_URL": " ".join(indexes)}
    notes = [
        f"BackendKit is {next(wheels.glob('*.whl')).name}, made from this tree",
        "Debian's bookworm stands in for the container: libraries are newer than in AlmaLinux 8",
        "actions that check out, cache, upload and download copy folders of this machine",
        f"of the releases of PyTorch, only {torch} is built and tested",
    ]
    if not reaches_pytorch():
        constraint = wheels / "constraint.txt"
        constraint.write_text(f"torch=={torch}\n")
        variables |= {"UV_CONSTRAINT": str(constraint), "PIP_CONSTRAINT": str(constraint)}
        variables |= {"UV_TORCH_BACKEND": "", "TORCH_INDEX": (indexes or links)[0]}
        notes.append(
            f"PyTorch's own index cannot be reached: PyTorch {torch} comes from where pip finds it "
            "here, and stands in for the nightly build"
        )
    if "PIP_CERT" in os.environ:
        variables["PIP_CERT"] = os.environ["PIP_CERT"]
    local = [Path(one.removeprefix("file://")) for one in [*links, *indexes]]
    # An index's files lie beside its pages.
    local = [path.parent if path.name == "simple" else path for path in local]
    shared = list(dict.fromkeys(path for path in local if path.is_dir()))
    return StandIns(variables, shared, notes, torch, wheels)
