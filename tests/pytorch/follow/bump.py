# SPDX-License-Identifier: Apache-2.0
"""What a newly tested release changes in this tree, in one place.

The matrix writes the results and docs/compatibility.md. Here are the lists of releases: the newest
tested one of the generator, and the matrix's own.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

NEWEST = Path("generator/torch/install.cpp")
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
    newest = key(releases[-1])
    code = (root / NEWEST).read_text(encoding="utf-8")
    constant = f"kNewestTested{{{newest[0]}, {newest[1]}, 0}}"
    texts[NEWEST] = replaced(NEWEST, code, r"kNewestTested\{\d+, \d+, 0\}", constant)
    old = {RELEASES: known_text, NEWEST: code}
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
