# SPDX-License-Identifier: Apache-2.0
"""The releases of PyTorch that a wheel is for: the folders `<package>/lib/2.13/`."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["after", "listed", "missing_between", "order", "releases_among", "row"]

_LIBRARY = re.compile(r"[^/]+/lib/(\d+\.\d+)/.")


def order(minor: str) -> tuple[int, int]:
    major, _, number = minor.partition(".")
    return int(major), int(number)


def after(minor: str) -> str:
    major, number = order(minor)
    return f"{major}.{number + 1}"


def missing_between(one: str, next_: str, tested: list[str]) -> str:
    """The first release that is left out between two, or "".

    It is the next tested one, else the next minor one. After a tested release may come the next
    major one: of a release in between that is not tested nothing is known.
    """
    between = [minor for minor in tested if order(one) < order(minor) < order(next_)]
    major = order(one)[0]
    expected = after(one) if major == order(next_)[0] else f"{major + 1}.0"
    expected = min([*between, expected], key=order)
    return expected if order(expected) < order(next_) else ""


def row(minors: list[str], tested: list[str]) -> list[str]:
    """The releases, oldest first, and those that they leave out."""
    whole: list[str] = []
    for minor in sorted(set(minors), key=order):
        while whole and (missing := missing_between(whole[-1], minor, tested)):
            whole.append(missing)
        whole.append(minor)
    return whole


def releases_among(names: Iterable[str]) -> list[str]:
    """The releases, oldest first, that the files of a wheel are for."""
    return sorted({match[1] for match in map(_LIBRARY.match, names) if match}, key=order)


def listed(minors: list[str]) -> str:
    """Releases for people: "2.5 to 2.15", or "2.5, 2.7 and 2.8"."""
    whole = all(after(one) == next_ for one, next_ in zip(minors, minors[1:]))
    if whole and len(minors) > 2:
        return f"{minors[0]} to {minors[-1]}"
    return " and ".join(filter(None, [", ".join(minors[:-1]), minors[-1]]))
