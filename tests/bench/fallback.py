# SPDX-License-Identifier: Apache-2.0
"""What the fallback to the CPU costs: a call, much memory, a step of training."""

from __future__ import annotations

import os
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

from scale import run

RUNS = 5
MODES = ("copying", "host_accessible")
NATIVE = Path(__file__).with_name("native_fallback")

# Microseconds for a call, on the CPU and on the device in turns; sys.argv has a library to load.
CALLS = """
import statistics, sys, time, torch
torch.set_num_threads(1)
for library in sys.argv[1:]:
    torch.ops.load_library(library)
tensors = {device: torch.ones(4, device=device) for device in ("cpu", "foo")}
taken = {device: [] for device in tensors}
with torch.no_grad():
    for turn in range(60):
        for device, one in tensors.items():
            start = time.perf_counter()
            for _ in range(300):
                torch.atan(one)
            taken[device].append((time.perf_counter() - start) / 300 * 1e6)
print(*(statistics.median(times[10:]) for times in taken.values()))
"""

ELEMENTWISE = """
import statistics, time, torch
x, y = (torch.ones(16 << 20).to("foo") for _ in range(2))
for run in (lambda: torch.atan(x), lambda: x.add_(y)):
    times = []
    for turn in range(8):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    print(statistics.median(times[1:]))
"""

# Milliseconds for a step, on the CPU and on the device in turns. The losses have to be the same.
TRAINING = """
import statistics, time, torch, warnings
from torch import nn
warnings.simplefilter("ignore")
torch.set_num_threads(1)
WIDTH, HEADS, LAYERS, LENGTH, BATCH, WORDS = 128, 4, 2, 64, 8, 100

def training(device):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
    model = nn.Sequential(
        nn.Embedding(WORDS, WIDTH), nn.TransformerEncoder(layer, LAYERS), nn.Linear(WIDTH, WORDS)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    words, wanted = (torch.randint(0, WORDS, (BATCH, LENGTH)).to(device) for _ in range(2))

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), wanted.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step

steps = {device: training(device) for device in ("cpu", "foo")}
taken = {device: [] for device in steps}
for turn in range(40):
    losses = []
    for device, step in steps.items():
        start = time.perf_counter()
        losses.append(step())
        taken[device].append((time.perf_counter() - start) * 1e3)
    assert abs(losses[0] - losses[1]) < 1e-3, losses
print(*(statistics.median(times[10:]) for times in taken.values()))
"""


def bench_fallback(
    work: Path,
    table: Callable[[str, list[tuple[str, str, str]]], None],
    environment: Callable[..., Path],
) -> None:
    """Operators without a kernel, with copies to the host and without, beside the CPU."""
    pythons = {mode: _backend(work / mode, mode, environment) for mode in MODES}
    calls = _in_turns(pythons, CALLS, work)
    native = _in_turns(pythons, CALLS, work, _native(work))
    memory = _in_turns(pythons, ELEMENTWISE, work)
    steps = _in_turns(pythons, TRAINING, work)
    remark = f"median of {RUNS}, in turns"
    rows = []
    for mode in MODES:
        (here, there), (_, theirs) = calls[mode], native[mode]
        rows += [
            (f"{mode}: torch.atan of 4 elements, CPU", f"{here:.2f} us", remark),
            (f"{mode}: the same on the device", f"{there:.2f} us", remark),
            (f"{mode}: by PyTorch's boxed fallback", f"{theirs:.2f} us", remark),
            (f"{mode}: ratio to that", f"{there / theirs:.2f} x", "goal: at most 1.0"),
        ]
        if mode == "host_accessible":
            rows.append((f"{mode}: added to the CPU", f"{there - here:.2f} us", "goal: at most 3"))
    table("Calls of operators that fall back, one thread", rows)
    rows = []
    for mode in MODES:
        here, there = steps[mode]
        goal = "goal: at most 1.5" if mode == "host_accessible" else ""
        rows += [
            (f"{mode}: a step of a small transformer, CPU", f"{here:.1f} ms", remark),
            (f"{mode}: the same on the device", f"{there:.1f} ms", remark),
            (f"{mode}: ratio", f"{there / here:.2f} x", goal),
        ]
    table("Training in which all operators fall back, one thread", rows)
    rows = []
    for index, name in enumerate(("torch.atan(x)", "x.add_(y)")):
        copying, shared = (memory[mode][index] for mode in MODES)
        rows.append((f"{name}, copying", f"{copying * 1000:.1f} ms", remark))
        rows.append((f"{name}, host_accessible", f"{shared * 1000:.1f} ms", remark))
        rows.append((f"{name}, ratio", f"{copying / shared:.1f} x", ""))
    table("Fallback to the CPU, 64 MB of float32", rows)


def _backend(folder: Path, mode: str, environment: Callable[..., Path]) -> Path:
    """The Python of an environment with a new project's backend."""
    tools = os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"]
    python = environment(folder / "environment", os.environ["BACKENDKIT_TEST_BASE_PYTHON"], tools)
    run(os.environ["BACKENDGEN"], "new", folder / "foo")
    if mode == "host_accessible":
        header = folder / "foo" / "csrc" / "simulator.h"
        header.write_text(header.read_text().replace("kUnified = false", "kUnified = true"))
    install = ["-m", "pip", "install", "-q", "--no-build-isolation", "--no-index", "."]
    subprocess.run([python, *install], cwd=folder / "foo", check=True)
    return python


def _native(work: Path) -> Path:
    """A library that has PyTorch's fallback answer for torch.atan."""
    base = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    prefix = run(base, "-c", "import torch; print(torch.utils.cmake_prefix_path)").strip()
    options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={prefix}"]
    run("cmake", "-S", NATIVE, "-B", work / "native", *options)
    run("cmake", "--build", work / "native")
    return next((work / "native").glob("*native_fallback*.so"))


def _in_turns(
    pythons: dict[str, Path], program: str, work: Path, *arguments: Path
) -> dict[str, list[float]]:
    """The medians of what a program prints, by mode; it runs for the modes in turns."""
    found: dict[str, list[list[float]]] = {mode: [] for mode in pythons}
    for _ in range(RUNS):
        for mode, python in pythons.items():
            done = subprocess.run(
                [python, "-c", program, *arguments],
                cwd=work,
                capture_output=True,
                text=True,
                check=True,
            )
            found[mode].append([float(word) for word in done.stdout.split()])
    return {mode: [statistics.median(each) for each in zip(*runs)] for mode, runs in found.items()}
