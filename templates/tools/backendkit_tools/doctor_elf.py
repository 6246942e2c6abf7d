# SPDX-License-Identifier: Apache-2.0
"""Libraries, judged by their heads and by the system's own loader, which runs no code of theirs."""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path

from backendkit_tools.doctor_report import run

__all__ = ["Loaded", "damage", "list_libraries", "loader", "other_machine"]

_LIMIT = 20.0
_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64"}


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def damage(path: Path) -> str:
    """Why a file is not a whole ELF file; "" if it is one."""
    try:
        head = _head(path)
        size = path.stat().st_size
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if head[:4] != b"\x7fELF":
        return "is not a library"
    if len(head) < 64:
        return "is truncated"
    if head[4] != 2:
        return ""  # of 32 bits: `other_machine` says so
    order = "<" if head[5] == 1 else ">"
    (sections,) = struct.unpack_from(order + "Q", head, 40)
    entry, count = struct.unpack_from(order + "HH", head, 58)
    return "is truncated" if size < sections + entry * count else ""


def _machine(path: Path) -> str:
    head = _head(path)
    order = "<" if head[5] == 1 else ">"
    (number,) = struct.unpack_from(order + "H", head, 18)
    return _MACHINES.get(number, f"machine {number}")


def other_machine(path: Path) -> str:
    """The machine that a library is for, if it is not the one that runs this Python; else ""."""
    theirs, ours = _machine(path), _machine(Path("/proc/self/exe"))
    return "" if theirs == ours else theirs


def loader() -> str | None:
    """The loader that runs this Python; None if it is not glibc's, whose answers are known here."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"(/\S*/ld-linux[^/\s]*\.so\.\d+|/\S*/ld-\d[^/\s]*\.so)$", maps, re.M)
    return found[1] if found else None


@dataclass
class Loaded:
    """What the loader says of a library and of everything that it needs."""

    paths: dict[str, str] = field(default_factory=dict)  # by name, where it is
    missing: dict[str, str] = field(default_factory=dict)  # by name, the path of who needs it
    versions: list[tuple[str, str, str]] = field(default_factory=list)  # version, library, who
    undefined: list[tuple[str, str]] = field(default_factory=list)  # symbol, who
    places: list[tuple[str, str]] = field(default_factory=list)  # a folder of an RPATH, whose
    not_preloaded: list[str] = field(default_factory=list)
    trouble: str = ""  # why the loader gave no answer


def list_libraries(path: str, folders: list[str], preload: tuple[str, ...] = ()) -> Loaded:
    """Asks the loader about a library, with `folders` before those of LD_LIBRARY_PATH."""
    program = loader()
    result = Loaded()
    if program is None:
        result.trouble = "this is not glibc"
        return result
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("LD_", "LC_"))
    }
    search = [*folders, *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))]
    environment.update(
        LC_ALL="C",
        LD_LIBRARY_PATH=":".join(search),
        LD_TRACE_LOADED_OBJECTS="1",
        LD_WARN="yes",
        LD_BIND_NOW="yes",
        LD_DEBUG="files,libs",
    )
    if preload:
        environment["LD_PRELOAD"] = ":".join(preload)
    ended = run([program, path], _LIMIT, environment)
    _read(ended.out, ended.err, result)
    if not result.paths and not result.missing and not result.versions:
        result.trouble = ended.last_line or f"the loader ended with status {ended.status}"
    return result


def _read(out: str, err: str, result: Loaded) -> None:
    wanted_by: dict[str, str] = {}
    for line in err.splitlines():
        plain = re.sub(r"^\s+\d+:\t", "", line)
        if found := re.match(r"file=(\S+) \[\d+\];\s+needed by (.*) \[\d+\]", plain):
            wanted_by.setdefault(found[1], found[2])
        elif found := re.match(r" search path=(.*?)\t\t\(R(?:UN)?PATH from file (.*)\)", plain):
            places = found[1].split(":")
            # The loader also names folders below each, for kinds of processors.
            tops = [p for p in places if not any(p.startswith(q.rstrip("/") + "/") for q in places)]
            result.places += [(place, found[2]) for place in tops]
        elif found := re.search(r"object '(.*)' from LD_PRELOAD cannot be preloaded", plain):
            result.not_preloaded.append(found[1])
    for line in (out + "\n" + err).splitlines():
        if found := re.match(r"\t(\S+) => not found", line):
            result.missing[found[1]] = wanted_by.get(found[1], "")
        elif found := re.match(r"\t(\S+) => (/.*) \(0x", line):
            result.paths[found[1]] = found[2]
        elif found := re.match(r"\t(/\S+) \(0x", line):
            result.paths[os.path.basename(found[1])] = found[1]
        elif found := re.search(r"(\S+): version `(\S+)' not found \(required by (.*)\)", line):
            result.versions.append((found[2], os.path.basename(found[1].rstrip(":")), found[3]))
        elif found := re.match(r"undefined symbol: (\S+?)(?:, version \S+)?\s+\((.*)\)", line):
            result.undefined.append((found[1], found[2]))
