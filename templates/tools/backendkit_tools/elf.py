# SPDX-License-Identifier: Apache-2.0
"""What the shared libraries of a wheel need and define, read with the programs of binutils."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from backendkit_tools.screen import fail

__all__ = ["Library", "TORCH", "is_elf", "libraries_below", "locate", "matches", "read_library"]

#: The libraries of PyTorch, which a process that loads a backend has loaded already.
TORCH = ("libtorch.so*", "libtorch_*.so*", "libc10.so*", "libc10_*.so*")

_FIELD = re.compile(r"\((NEEDED|SONAME|RPATH|RUNPATH)\)[^\[]*\[(.*)\]")
_NEED = re.compile(r"File: (\S+)|Name: (\S+) +Flags")


@dataclass
class Library:
    """The dynamic section of a library."""

    path: Path
    soname: str = ""
    needed: list[str] = field(default_factory=list)
    run_paths: list[str] = field(default_factory=list)
    #: The versions of symbols that it needs, by library: {"libc.so.6": {"GLIBC_2.34"}}.
    versions: dict[str, set[str]] = field(default_factory=dict)


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def is_elf(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def libraries_below(folder: Path) -> list[Path]:
    """The ELF files below a folder, sorted."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and is_elf(path))


def tool_output(name: str, *arguments: str | Path) -> str:
    """What a program of binutils prints."""
    if shutil.which(name) is None:
        fail(f"found no `{name}`, which is needed to inspect libraries", "apt-get install binutils")
    words = [name, *(str(word) for word in arguments)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
    )
    if done.returncode != 0:
        fail(f"`{name}` cannot read {arguments[-1]}: {done.stderr.strip()}")
    return done.stdout


def read_library(path: Path) -> Library:
    library = Library(path)
    text = tool_output("readelf", "-dVW", path)
    for kind, value in _FIELD.findall(text):
        if kind == "NEEDED":
            library.needed.append(value)
        elif kind == "SONAME":
            library.soname = value
        else:
            library.run_paths += value.split(":")
    file = ""
    _, _, needs = text.partition("Version needs section")
    for named, version in _NEED.findall(needs):
        if named:
            file = named
        else:
            library.versions.setdefault(file, set()).add(version)
    return library


def _system_folders() -> Iterator[str]:
    for place in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if place:
            yield place
    text = subprocess.run(
        ["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False
    ).stdout
    yield from dict.fromkeys(os.path.dirname(line.split("=> ")[1]) for line in text.splitlines()
                             if "=> " in line)  # fmt: skip


_found_folders: list[str] = []


def locate(soname: str, machine_of: Path) -> Path | None:
    """The library as the system's loader finds it, for the machine of another library."""
    if not _found_folders:
        _found_folders.extend(_system_folders())
    head = machine_of.read_bytes()[:20]
    for folder in _found_folders:
        path = Path(folder, soname)
        if path.is_file() and path.read_bytes()[:20][18:] == head[18:] and is_elf(path):
            return path
    return None
