# SPDX-License-Identifier: Apache-2.0
"""What a newly tested release changes in this tree, in one place.

The matrix writes the results and docs/compatibility.md. Here are the lists of releases: that of
the generator, which also has the Pythons of each, and the matrix's own.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

TABLE = Path("generator/torch/releases.cpp")
RELEASES = Path("tests/pytorch/matrix/results.py")


class NotFound(Exception):
    """A place that should name a release does not."""


def key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def replaced(path: Path, text: str, pattern: str, new: str) -> str:
    made, count = re.subn(pattern, lambda _: new, text)
    if count != 1:
        raise NotFound(f"{path}: expected `{pattern}` once, found it {count} times")
    return made


def with_rows(code: str, releases: list[str]) -> str:
    """The generator's table with a row for each release; a new one has the Pythons of the last."""
    found = list(re.finditer(r"( *)\{\{(\d+), (\d+), \d+\}, (\d+, \d+)\},\n", code))
    if not found:
        raise NotFound(f"{TABLE}: no rows of releases")
    pythons = {(int(row[2]), int(row[3])): row[4] for row in found}
    rows = ""
    for release in releases:
        numbers = key(release)
        row = ", ".join(map(str, numbers))
        rows += f"{found[0][1]}{{{{{row}}}, {pythons.get(numbers[:2], found[-1][4])}}},\n"
    return code[: found[0].start()] + rows + code[found[-1].end() :]


def plan(root: Path, version: str) -> dict[Path, str]:
    """The files that change, whole; nothing for a release that is known already."""
    known_text = (root / RELEASES).read_text(encoding="utf-8")
    known = re.search(r'RELEASES = "([\d. ]+)"\.split\(\)', known_text)
    if known is None:
        raise NotFound(f"{RELEASES}: no RELEASES")
    minor = key(version)[:2]
    others = [one for one in known[1].split() if key(one)[:2] != minor]
    older = [one for one in known[1].split() if key(one)[:2] == minor]
    releases = sorted([*others, max([version, *older], key=key)], key=key)
    line = f'RELEASES = "{" ".join(releases)}".split()'
    texts = {RELEASES: replaced(RELEASES, known_text, re.escape(known[0]), line)}
    code = (root / TABLE).read_text(encoding="utf-8")
    texts[TABLE] = with_rows(code, releases)
    old = {RELEASES: known_text, TABLE: code}
    return {path: text for path, text in texts.items() if text != old[path]}


def write(root: Path, version: str) -> list[Path]:
    texts = plan(root, version)
    for path, text in texts.items():
        beside = root / path.with_suffix(path.suffix + ".new")
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, root / path)
    return list(texts)


def newest(root: Path) -> str:
    """The newest release that the matrix knows."""
    known = re.search(r'RELEASES = "([\d. ]+)"', (root / RELEASES).read_text(encoding="utf-8"))
    if known is None:
        raise NotFound(f"{RELEASES}: no RELEASES")
    return known[1].split()[-1]
