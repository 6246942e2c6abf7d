# SPDX-License-Identifier: Apache-2.0
"""Process groups under ThreadSanitizer and AddressSanitizer; see groups.cpp."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests" / "runtime" / "faults"))
from project import run  # noqa: E402

OPERATIONS = 100_000
THREADS = 4
ASK_PYTORCH = """
import json, torch
print(json.dumps([torch.__path__[0], int(torch._C._GLIBCXX_USE_CXX11_ABI)]))
"""
#: PyTorch's libraries have no instrumentation: what they order by atomics seems a race.
SUPPRESSIONS = """
race:libtorch_cpu.so
race:libc10.so
race:libgomp.so.1
"""


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_a_hundred_thousand_collectives(tmp_path: Path, sanitizer: str) -> None:
    run(os.environ["BACKENDGEN"], "new", tmp_path / "foo")
    python = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    torch, abi = json.loads(run(python, "-c", ASK_PYTORCH, TORCH_DEVICE_BACKEND_AUTOLOAD="0"))
    sanitize = f"-fsanitize={sanitizer}"
    tree, site = tmp_path / "build", tmp_path / "site"
    options = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={python}"]
    options += [f"-DBackendKit_DIR={os.environ['BACKENDKIT_BUILD']}"]
    options += [f"-DCMAKE_CXX_FLAGS_RELEASE=-g -O1 {sanitize}"]
    run("cmake", "-G", "Ninja", "-S", tmp_path / "foo", "-B", tree, *options)
    run("cmake", "--build", tree)
    run("cmake", "--install", tree, "--prefix", site, "--component", "foo")
    (library,) = site.rglob("libtorch_foo.so")
    program = tmp_path / "groups"
    flags = ["-std=c++20", "-g", "-O1", "-Wall", "-Wextra", sanitize]
    flags += [f"-D_GLIBCXX_USE_CXX11_ABI={abi}"]
    flags += ["-isystem", f"{torch}/include", "-isystem", f"{torch}/include/torch/csrc/api/include"]
    flags += [f"-L{torch}/lib", f"-Wl,-rpath,{torch}/lib", f"-Wl,-rpath,{library.parent}"]
    compiler = os.environ.get("CXX", "c++")
    libraries = ["-Wl,--no-as-needed", library, "-ltorch_cpu", "-ltorch", "-lc10", "-pthread"]
    run(compiler, *flags, Path(__file__).with_name("groups.cpp"), "-o", program, *libraries)
    (tmp_path / "suppressions").write_text(SUPPRESSIONS)
    environment = {
        "TSAN_OPTIONS": f"suppressions={tmp_path / 'suppressions'}",
        "ASAN_OPTIONS": "detect_leaks=0",  # streams and groups live as long as the process
        "OMP_NUM_THREADS": "1",
    }
    text = run(program, str(OPERATIONS // THREADS), **environment)
    assert text == f"{OPERATIONS} operations, 0 wrong\n"
