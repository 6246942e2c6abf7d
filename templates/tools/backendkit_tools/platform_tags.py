# SPDX-License-Identifier: Apache-2.0
"""The platform tag of a wheel that is joined from several."""

from __future__ import annotations

import re

__all__ = ["TagsDiffer", "strictest"]

_OLD = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_VERSIONED = re.compile(r"(manylinux|musllinux|macosx)_(\d+)_(\d+)_(.+)")
_PLAIN = re.compile(r"(manylinux1|manylinux2010|manylinux2014|linux|win)_?(.*)")


class TagsDiffer(Exception):
    """Why no wheel can serve the platforms of all; `help` says what to do."""

    def __init__(self, text: str, help_: str) -> None:
        super().__init__(text)
        self.help = help_


def _parse(tag: str) -> tuple[str, str, tuple[int, int]]:
    """The family, the architecture, and the version of the system that a tag asks for."""
    match = _VERSIONED.fullmatch(tag)
    if match:
        return match[1], match[4], (int(match[2]), int(match[3]))
    match = _PLAIN.fullmatch(tag)
    if match:
        old = _OLD.get(match[1])
        return ("manylinux", match[2], old) if old else (match[1], match[2], (0, 0))
    return tag, "", (0, 0)


def strictest(platforms: dict[str, str]) -> str:
    """The platform that every system with it serves all wheels. The keys are their names.

    A wheel with several tags, such as manylinux2014_x86_64.manylinux_2_17_x86_64, asks for the
    weakest of them; all of them ask for the strictest of these.
    """
    asked = {}
    for name, platform in platforms.items():
        tags = [_parse(tag) for tag in platform.split(".")]
        family, machine, _ = tags[0]
        if any(tag[:2] != (family, machine) for tag in tags):
            raise TagsDiffer(f"{name} is for several platforms: {platform}", "name other wheels")
        asked[name] = (family, machine, min(tag[2] for tag in tags))
    (first, one), *rest = asked.items()
    for name, other in rest:
        if other[1] != one[1]:
            raise TagsDiffer(
                f"{first} is for {platforms[first]} and {name} is for {platforms[name]}",
                "merge the wheels of each architecture into one of their own",
            )
        if other[0] != one[0]:
            plain = first if one[0] == "linux" else name
            raise TagsDiffer(
                f"{first} is for {platforms[first]} and {name} is for {platforms[name]}",
                f"give {plain} a portable tag with auditwheel"
                if "linux" in (one[0], other[0])
                else "merge the wheels of each platform into one of their own",
            )
    most = max(version for _, _, version in asked.values())
    chosen = [platforms[name] for name, parts in asked.items() if parts[2] == most]
    return ".".join(sorted({tag for platform in chosen for tag in platform.split(".")}))
