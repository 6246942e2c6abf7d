# SPDX-License-Identifier: Apache-2.0
"""The symbols that a built backend takes from PyTorch's libraries."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from elftools.elf.elffile import ELFFile

from follow.releases import Release
from follow.report import BROKEN, Row

STEP = "symbols"
#: Mangled names that only PyTorch defines: those in its namespaces.
_THEIRS = re.compile(r"_Z(?:\w*?N?K?(?:2at|3c10|5torch|6caffe2|4c10d|9libkineto)\d)")


def undefined(library: Path) -> set[str]:
    """What a library cannot be loaded without: a weak symbol may be missing."""
    return {name for name, binding in dynamic(library, defined=False)
            if binding != "STB_WEAK" and _THEIRS.match(name)}  # fmt: skip


def exported(release: Release) -> set[str]:
    return {name for one in release.libraries for name, _ in dynamic(one, defined=True)}


def dynamic(library: Path, *, defined: bool) -> list[tuple[str, str]]:
    """The dynamic symbols that a library defines, or that it needs, with their bindings."""
    with open(library, "rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        if table is None:
            return []
        return [
            (one.name, one["st_info"]["bind"])
            for one in table.iter_symbols()
            if (one["st_shndx"] != "SHN_UNDEF") is defined
        ]


def demangled(names: list[str]) -> list[str]:
    done = subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def places(root: Path, name: str) -> tuple[str, ...]:
    """The lines of our headers that have the last word of a demangled name, if it is telling."""
    words = re.findall(r"\w+", name.split("(")[0])
    last = next((one for one in reversed(words) if one not in ("call", "redispatch")), "")
    if len(last) < 4:
        return ()
    found = []
    for path in sorted((root / "include").rglob("*.h")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(rf"\b{last}\b", line):
                found.append(f"{path.relative_to(root)}:{number}")
    return tuple(found[:8])


def compare(root: Path, after: Release, library: Path) -> list[Row]:
    """Those that no library of the release has; a library of the release before shows more."""
    gone = sorted(undefined(library) - exported(after))
    return [
        Row(STEP, BROKEN, name, f"not exported; {library.name} needs it", mangled, "",
            places(root, name))
        for mangled, name in zip(gone, demangled(gone))
    ]  # fmt: skip
