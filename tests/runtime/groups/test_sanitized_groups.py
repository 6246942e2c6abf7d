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
from project import add_collectives  # noqa: E402

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
    tree, site = tmp_path / "build", tmp_path / "site"
    options = ["-DCMAKE_BUILD_TYPE=Release"]
    options += [f"-DPython_EXECUTABLE={os.environ['BACKENDKIT_TEST_BASE_PYTHON']}"]
    options += [f"-DBackendKit_DIR={os.environ['BACKENDKIT_BUILD']}"]
    options += [f"-DCMAKE_CXX_FLAGS_RELEASE=-g -O1 -fsanitize={sanitizer}"]
    run("cmake", "-G", "Ninja", "-S", tmp_path / "foo", "-B", tree, *options)
    run("cmake", "--build", tree)
    run("cmake", "--install", tree, "--prefix", site, "--component", "foo")
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
