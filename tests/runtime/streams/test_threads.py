# SPDX-License-Identifier: Apache-2.0
"""Streams, events and the simulator under ThreadSanitizer and AddressSanitizer; see threads.cpp."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from sanitized import build, run  # noqa: E402

OPERATIONS = 1_040_000
THREADS = 8


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_a_million_operations(tmp_path: Path, sanitizer: str) -> None:
    run(os.environ["BACKENDGEN"], "new", tmp_path / "foo")
    program = tmp_path / "threads"
    sources = [HERE / "threads.cpp", *(tmp_path / "foo" / "csrc").glob("[rs]*.cpp")]
    build(program, sanitizer, *sources, libraries=("-lc10",))
    text = run(program, str(OPERATIONS // THREADS))
    assert text == f"{OPERATIONS} operations, 0 wrong\n"
