# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Versions and what is required of them, as PEP 440 defines both.

This is here because nothing that PyTorch needs brings the package `packaging` along.
"""

import re

_VERSION = re.compile(
    r"v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|rc)(\d+))?(?:\.post(\d+))?(?:\.dev(\d+))?(?:\+.*)?"
)
_CLAUSE = re.compile(r"(>=|<=|==|!=|>|<)(.+)")
_PHASES = {"a": 1, "b": 2, "rc": 3}
_NO_PHASE = 4
_NO_DEV = float("inf")

#: Epoch, release, phase, its number, post-release, development release.
_Key = tuple[int, list[int], int, int, int, float]


def _key(version: str) -> _Key:
    """What orders versions. Raises ValueError if it is none in its normal form."""
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise ValueError(version)
    epoch, digits, phase, number, post, dev = match.groups()
    release = [int(part) for part in digits.split(".")]
    while release and release[-1] == 0:
        release.pop()
    kind = _PHASES.get(phase, _NO_PHASE)
    if dev and not phase and not post:
        kind = 0
    return (
        int(epoch or 0),
        release,
        kind,
        int(number or 0),
        int(post) if post else -1,
        int(dev) if dev else _NO_DEV,
    )


def _admits(operator: str, ours: _Key, bound: _Key) -> bool:
    if operator in ("==", "!="):
        return (ours == bound) is (operator == "==")
    if operator in (">=", "<="):
        return ours >= bound if operator == ">=" else ours <= bound
    if operator == ">":  # post-releases of the bound are not after it
        return ours > bound and not (ours[:4] == bound[:4] and ours[4] >= 0 > bound[4])
    # Nor is what leads to the bound before it: 5rc1 is not before 5.
    leads = ours[:2] == bound[:2] if bound[4] < 0 else ours[:5] == bound[:5]
    return ours < bound and not (leads and not _is_before(bound))


def _is_before(key: _Key) -> bool:
    return key[2] != _NO_PHASE or key[5] != _NO_DEV


def admits(requirement: str, version: str) -> bool:
    """Whether clauses such as `>=4.2,<5` admit a version; one that cannot be read is none."""
    try:
        ours = _key(version)
        clauses = [_CLAUSE.fullmatch(clause) for clause in requirement.split(",")]
        return all(clause and _admits(clause[1], ours, _key(clause[2])) for clause in clauses)
    except ValueError:
        return False
