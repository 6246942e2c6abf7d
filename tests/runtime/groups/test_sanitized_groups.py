# SPDX-License-Identifier: Apache-2.0
"""Process groups under ThreadSanitizer and AddressSanitizer; see groups.cpp."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from sanitized import build, run  # noqa: E402

sys.path.append(str(HERE.parent / "faults"))
from project import add_collectives, install  # noqa: E402

OPERATIONS = 100_000
THREADS = 4
#: PyTorch's libraries have no instrumentation: what they order by atomics seems a race.
SUPPRESSIONS = """
race:libtorch_cpu.so
race:libc10.so
race:libgomp.so.1
"""


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_a_hundred_thousand_collectives(tmp_path: Path, sanitizer: str) -> None:
    """Staged ones, and the driver's."""
    run(os.environ["BACKENDGEN"], "new", tmp_path / "foo")
    add_collectives(tmp_path / "foo")
    package, python = os.environ["BACKENDKIT_BUILD"], os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    flags = f"-DCMAKE_CXX_FLAGS_RELEASE=-g -O1 -fsanitize={sanitizer}"
    site = install(tmp_path / "foo", Path(package), python, flags)
    (library,) = site.rglob("libtorch_foo.so")
    program = tmp_path / "groups"
    libraries = (library, f"-Wl,-rpath,{library.parent}", "-ltorch_cpu", "-ltorch", "-lc10")
    build(program, sanitizer, HERE / "groups.cpp", libraries=libraries)
    (tmp_path / "suppressions").write_text(SUPPRESSIONS)
    environment = {
        "TSAN_OPTIONS": f"suppressions={tmp_path / 'suppressions'}",
        "ASAN_OPTIONS": "detect_leaks=0",  # streams and groups live as long as the process
        "OMP_NUM_THREADS": "1",
    }
    for driver in ("0", "1"):
        environment["FOO_SIMULATOR_COLLECTIVES"] = driver
        text = run(program, str(OPERATIONS // THREADS), **environment)
        assert text == f"{OPERATIONS} operations, 0 wrong\n"
