# SPDX-License-Identifier: Apache-2.0
"""Streams, events and the simulator under ThreadSanitizer and AddressSanitizer; see threads.cpp."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OPERATIONS = 1_040_000
THREADS = 8
ASK_PYTORCH = """
import json, torch
print(json.dumps([torch.__path__[0], int(torch._C._GLIBCXX_USE_CXX11_ABI)]))
"""


def run(*command: str | Path, **environment: str) -> str:
    """What a program prints; fails the test when it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_a_million_operations(tmp_path: Path, sanitizer: str) -> None:
    run(os.environ["BACKENDGEN"], "new", tmp_path / "foo")
    source = tmp_path / "foo" / "csrc"
    python = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    torch, abi = json.loads(run(python, "-c", ASK_PYTORCH, TORCH_DEVICE_BACKEND_AUTOLOAD="0"))
    program = tmp_path / "threads"
    flags = ["-std=c++20", "-g", "-O1", "-Wall", "-Wextra", f"-fsanitize={sanitizer}"]
    flags += [f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-I{ROOT / 'include'}", f"-I{source}"]
    flags += ["-isystem", f"{torch}/include", "-isystem", f"{torch}/include/torch/csrc/api/include"]
    flags += [f"-L{torch}/lib", f"-Wl,-rpath,{torch}/lib"]
    sources = [Path(__file__).with_name("threads.cpp"), *source.glob("[rs]*.cpp")]
    compiler = os.environ.get("CXX", "c++")
    run(compiler, *flags, *sources, "-o", program, "-lc10", "-pthread")
    text = run(program, str(OPERATIONS // THREADS))
    assert text == f"{OPERATIONS} operations, 0 wrong\n"
