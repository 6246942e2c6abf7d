# SPDX-License-Identifier: Apache-2.0
"""How evenly threads are served that train at once, on the device and on the CPU."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from pathlib import Path

from overhead import build
from scale import run

PROGRAM = Path(__file__).with_name("training_threads.py")
THREADS = 8
RUNS = 3
Table = Callable[[str, list[tuple[str, str, str]]], None]


def bench_threads(work: Path, table: Table, seconds: float) -> None:
    """Steps of the slowest and the fastest of eight threads, each with a stream of its own.

    `seconds` for the device, and as many for the CPU, of each kind of work.
    """
    backend = os.environ["BACKENDKIT_TEST_PYTHON"]
    base = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    kernels = ["env", f"PYTHONPATH={build('dense', work)}", base, PROGRAM]
    cases = {
        "training": [backend, PROGRAM],
        "training, kernels without streams": kernels,
        "without gradients": [backend, PROGRAM, "--no-gradients"],
    }
    rows = []
    for name, command in cases.items():
        options = [f"--threads={THREADS}", f"--seconds={seconds / RUNS}"]
        steps: dict[str, list[list[int]]] = {"cpu": [], "foo": []}
        for _ in range(RUNS):
            for device, runs in steps.items():
                text = run(*command, *options, f"--device={device}", cwd=work)
                runs.append(sorted(int(word) for word in text.split()))
        for device, title in (("cpu", "the CPU"), ("foo", "the device")):
            slowest = statistics.median(one[0] for one in steps[device])
            fastest = statistics.median(one[-1] for one in steps[device])
            ratio = statistics.median(one[-1] / one[0] for one in steps[device])
            remark = f"fastest over slowest, median of {RUNS} processes, in turns"
            goal = "" if device == "cpu" else "; goal: at most 1.5"
            figures = f"{slowest:.0f} to {fastest:.0f} steps"
            rows.append((f"{name}, {title}: {figures}", f"{ratio:.2f} x", remark + goal))
    table(f"{THREADS} threads with a stream each, {os.cpu_count()} cores", rows)
