# SPDX-License-Identifier: Apache-2.0
"""What a fault is that a backend may have.

A fault is a place of the C++ headers, of the starter project's simulator or of the Python package:
`right` is found there exactly once and stands for `faulty` where the fault is chosen. Both are
expressions, or, if `right` ends with a semicolon, statements; in Python expressions.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    name: str
    file: str  # below include/backendkit, csrc or torch_foo
    right: str
    faulty: str
    tests: tuple[str, ...]  # from tests/device on; each of them has to fail
    hangs: bool = False  # it is noticed by a test that does not end
    variables: tuple[tuple[str, str], ...] = ()  # of the environment, for the tests
