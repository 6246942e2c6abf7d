# SPDX-License-Identifier: Apache-2.0
"""The starter project's simulated device does what a real one does: it keeps the host away."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

PYTHON = os.environ["BACKENDKIT_TEST_PYTHON"]
PRELUDE = """
import ctypes, torch
tensor = torch.ones(4, device="foo")
address = tensor.data_ptr()
"""


def run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [PYTHON, "-X", "faulthandler", "-c", PRELUDE + code]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.parametrize(
    "touch",
    [
        "ctypes.string_at(address, 4)",
        "ctypes.memset(address, 0, 4)",
        "ctypes.memmove(ctypes.create_string_buffer(4), address, 4)",
    ],
)
def test_the_host_cannot_touch_the_device_s_memory(touch: str, tmp_path: Path) -> None:
    done = run(f"{touch}\nprint('survived')", tmp_path)
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "")


def test_the_device_s_memory_is_limited(tmp_path: Path) -> None:
    done = run(
        "print(torch.foo.mem_get_info()[1])\n"
        "try:\n"
        "    torch.empty(64 << 20, dtype=torch.uint8, device='foo')\n"
        "except torch.OutOfMemoryError as error:\n"
        "    print(str(error).partition('. ')[0])\n",
        tmp_path,
        FOO_SIMULATOR_MEMORY=str(32 << 20),
    )
    assert done.stdout.splitlines() == [str(32 << 20), "foo out of memory"], done.stderr


def test_work_begins_late_when_asked(tmp_path: Path) -> None:
    code = (
        "import time\n"
        "def taken(times):\n"
        "    start = time.perf_counter()\n"
        "    for _ in range(times): tensor.cpu()\n"
        "    return time.perf_counter() - start\n"
        "print(taken(50))\n"
    )
    quick, late = (
        float(run(code, tmp_path, FOO_SIMULATOR_DELAY=delay).stdout) for delay in ("0", "20000")
    )
    # Each copy is 10 ms late on average; 50 of them are hardly less than 250 ms in all.
    assert late > quick
    assert late > 0.25
