# SPDX-License-Identifier: Apache-2.0
"""What memory costs: the allocator beside the simulator's driver, and copies beside memcpy."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from pathlib import Path

from scale import run

HERE = Path(__file__).resolve().parent
RUNS = 5
NEW_TENSORS = """
import time, torch
def seconds(place):
    begun = time.perf_counter()
    for _ in range(100_000):
        torch.empty(1000, device=place)
    return (time.perf_counter() - begun) / 100_000
seconds("foo"), seconds("cpu")
print(seconds("foo"), seconds("cpu"))
"""
Table = Callable[[str, list[tuple[str, str, str]]], None]


def bench_allocator(work: Path, table: Table) -> None:
    """A hit beside a call of the driver, and fragmentation on what a training did."""
    source = work / "allocator" / "foo"
    run(os.environ["BACKENDGEN"], "new", source)
    program = source.parent / "allocator"
    flags = ["-O2", "-std=c++20", "-pthread", "-I", HERE.parents[1] / "include"]
    sources = [HERE / "allocator.cpp", source / "csrc" / "simulator.cpp"]
    compiler = os.environ.get("CXX", "c++")
    run(compiler, *flags, "-I", source / "csrc", *sources, "-o", program)
    runs = [[float(word) for word in run(program, "cost").split()] for _ in range(RUNS)]
    hit, free, allocate, deallocate = (statistics.median(each) for each in zip(*runs))
    remark = f"median of {RUNS} processes"
    rows = [
        ("a hit of the caching allocator", f"{hit:.0f} ns", f"goal: at most 200, {remark}"),
        ("its free", f"{free:.0f} ns", remark),
        ("the simulator's allocate", f"{allocate:.0f} ns", remark),
        ("its deallocate", f"{deallocate:.0f} ns", remark),
        ("ratio, a hit and an allocate", f"{allocate / hit:.0f} x", "goal: at least 20"),
    ]
    python = os.environ["BACKENDKIT_TEST_PYTHON"]
    runs = [[float(word) for word in run(python, "-c", NEW_TENSORS).split()] for _ in range(RUNS)]
    for place, taken in zip(("the device", "the CPU"), zip(*runs)):
        row = f"torch.empty(1000) on {place}, used again each time"
        rows.append((row, f"{statistics.median(taken) * 1e9:.0f} ns", remark))
    for kind in ("fixed", "varying"):
        trace = source.parent / f"{kind}.txt"
        trace.write_text(run(python, "-W", "ignore", HERE / "trace.py", kind))
        with trace.open() as file:
            words = run(program, "replay", stdin=file).split()
        requested, blocks, reserved = (int(word) for word in words)
        sizes = f"{requested >> 20} MiB asked for of {reserved >> 20} reserved, at its peak"
        for name, used, note in (
            (
                f"fragmentation, a transformer of {kind} length",
                requested,
                f"goal: below 10; {sizes}",
            ),
            ("the same of blocks, rounded, in place of requests", blocks, ""),
        ):
            rows.append((name, f"{100 * (1 - used / reserved):.1f} %", note))
    table("Memory of the device, one thread", rows)


def bench_copies(work: Path, table: Table) -> None:
    """Copies of four sizes, and of 256 MB as a part of what memcpy does."""
    python = os.environ["BACKENDKIT_TEST_PYTHON"]
    runs = [run(python, HERE / "copies.py", cwd=work).splitlines() for _ in range(RUNS)]
    rows = []
    for lines in zip(*runs):
        figures = [[float(word) for word in line.split()] for line in lines]
        size, memcpy, *ours = (statistics.median(each) for each in zip(*figures))
        title = f"{int(size):,} bytes"
        rows.append((f"{title}, memcpy", f"{memcpy * 1e6:.1f} us", f"median of {RUNS} processes"))
        for name, taken in zip(("to the device", "back", "pinned, to the device"), ours):
            if size >= 1 << 28:
                note = f"{memcpy / taken:.2f} of memcpy's speed, goal: 0.95"
            else:
                note = f"{(taken - memcpy) * 1e6:.1f} us over memcpy"
            rows.append((f"{title}, {name}", f"{taken * 1e6:.1f} us", note))
    table("Copies, in turns with memcpy, one thread", rows)
