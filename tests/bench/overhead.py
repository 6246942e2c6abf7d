# SPDX-License-Identifier: Apache-2.0
"""What a call of an operator costs on the simulated device, beside the CPU."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from pathlib import Path

from scale import run

KERNELS = Path(__file__).resolve().parents[2] / "examples" / "kernels"
RUNS = 5
MODES = ("dense", "strided")
# Microseconds for a call, on the CPU and the device in turns.
CALLS = """
import statistics, time, torch, torch_foo
torch.set_num_threads(1)
small, square = torch.ones(4), torch.ones(64, 64)
cases = ((torch.add, small, 1000), (torch.mm, square, 20))
for op, tensor, count in cases:
    taken = {"cpu": [], "foo": []}
    with torch.no_grad():
        for turn in range(60):
            for device, times in taken.items():
                one = tensor.to(device)
                start = time.perf_counter()
                for _ in range(count):
                    op(one, one)
                times.append((time.perf_counter() - start) / count * 1e6)
    print(*(statistics.median(times[10:]) for times in taken.values()))
"""


def build(mode: str, work: Path) -> Path:
    """Where the package of an example is, built in `work`."""
    folder = work / f"kernels-{mode}"
    package = f"-DBackendKit_DIR={os.environ['BACKENDKIT_BUILD']}"
    python = f"-DPython_EXECUTABLE={os.environ['BACKENDKIT_TEST_BASE_PYTHON']}"
    options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", package, python]
    run("cmake", "-S", KERNELS / mode, "-B", folder / "build", *options)
    run("cmake", "--build", folder / "build")
    site = folder / "site"
    run("cmake", "--install", folder / "build", "--prefix", site, "--component", "foo")
    return site


def bench_operators(work: Path, table: Callable[[str, list[tuple[str, str, str]]], None]) -> None:
    """torch.add of two tensors with 4 elements, and a product of matrices."""
    python = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    rows = []
    for mode in MODES:
        site = build(mode, work)
        command = ["env", f"PYTHONPATH={site}", python, "-c", CALLS]
        runs = [[float(word) for word in run(*command).split()] for _ in range(RUNS)]
        here, there, mm_here, mm_there = (statistics.median(each) for each in zip(*runs))
        remark = f"median of {RUNS}, in turns"
        rows += [
            (f"{mode}: torch.add of 4 elements, CPU", f"{here:.2f} us", remark),
            (f"{mode}: the same on the device", f"{there:.2f} us", remark),
            (f"{mode}: ratio", f"{there / here:.2f} x", "goal: at most 1.3"),
            (f"{mode}: torch.mm of 64x64, CPU", f"{mm_here:.1f} us", remark),
            (f"{mode}: the same on the device", f"{mm_there:.1f} us", "a plain triple loop"),
        ]
    table("Calls of operators, one thread", rows)
