# SPDX-License-Identifier: Apache-2.0
"""Measures examples/opencl: beside the driver itself, and beside PyTorch's CPU."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "examples" / "opencl"
Table = Callable[[str, Sequence[tuple[str, str, str]]], None]

#: Of a process with torch_opencl: a dictionary of median seconds, of all work or of what is named.
WORK = """
import json, statistics, sys, time
import torch
from torch.nn import functional as F

RUNS = 11

def median(work, device):
    synchronize = torch.ocl.synchronize if device == "ocl" else lambda: None
    times = []
    for _ in range(RUNS + 2):
        start = time.perf_counter()
        work()
        synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])

def chain(first):
    value = first
    for _ in range(1000):
        value = value + first
    return value

def step(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(32 * 16, 10)).to(device)
    images, labels = torch.randn(64, 1, 8, 8).to(device), torch.randint(10, (64,)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    def work():
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
    return work

def all_of(device, names):
    many = torch.randn(4096, 4096).to(device)
    few = torch.ones(16).to(device)
    square = torch.randn(1024, 1024).to(device)
    images = torch.randn(8, 64, 28, 28).to(device)
    weight = torch.randn(64, 64, 3, 3).to(device)
    works = {
        "chain": lambda: chain(few),
        "add": lambda: many + many,
        "strided copy": lambda: many[:, ::2].contiguous(),
        "sum": lambda: many.sum(),
        "softmax": lambda: many.softmax(1),
        "layer_norm": lambda: F.layer_norm(many, (4096,)),
        "mm of 1024": lambda: square @ square,
        "conv2d of resnet18": lambda: F.conv2d(images, weight, padding=1),
        "training step of a CNN": step(device),
    }
    times = {}
    for name in names or works:
        with torch.set_grad_enabled("step" in name):
            times[name] = median(works[name], device)
    return times

def graph():
    few = torch.ones(16).to("ocl")
    stream, made = torch.Stream(device="ocl"), torch.accelerator.Graph()
    torch.ocl.synchronize()
    with stream, made:
        chain(few)
    return median(made.replay, "ocl")

device, *names = sys.argv[1:]
times = all_of(device, names)
if device == "ocl" and not names:
    times["graph"] = graph()
print(json.dumps(times))
"""

PRODUCT = "mm of 1024"
#: The same where CLBlast computes it, which has to be asked for on a CPU.
BY_CLBLAST = f"{PRODUCT} by CLBlast"

#: The first operator of a process, with whatever compiled programs there are.
FIRST = """
import time, torch
x = torch.ones(1000).to("ocl")
torch.ocl.synchronize()
start = time.perf_counter()
(x + x).exp()
torch.ocl.synchronize()
print(time.perf_counter() - start)
"""


def bench_opencl(work: Path, table: Table, environment: Callable[..., Path]) -> None:
    """Needs a driver of OpenCL and the headers; `OPENCL_MEMORY` and others choose as always."""
    base = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    tools = os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"]
    project = work / "torch_opencl"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("build", "__pycache__"))
    python = environment(work / "environment", base, tools)
    output(python, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-index", project)
    bare = work / "bare"
    source = str(HERE / "bare_opencl.c")
    output("gcc", "-O2", "-o", str(bare), source, "-l:libOpenCL.so.1")

    # In turns, so that what disturbs the machine disturbs all.
    turns: list[dict[str, dict[str, float]]] = []
    for _ in range(3):
        lines = [line.rsplit(" ", 1) for line in output(bare).splitlines()]
        turns.append(
            {
                "bare": {name: float(value) for name, value in lines},
                "ocl": json.loads(output(python, "-c", WORK, "ocl")),
                "cpu": json.loads(output(python, "-c", WORK, "cpu")),
            }
        )
        if BY_CLBLAST in turns[-1]["bare"]:
            by_clblast = output(python, "-c", WORK, "ocl", PRODUCT, OPENCL_BLAST="clblast")
            turns[-1]["ocl"][BY_CLBLAST] = json.loads(by_clblast)[PRODUCT]
            turns[-1]["cpu"][BY_CLBLAST] = turns[-1]["cpu"][PRODUCT]

    def of(who: str) -> dict[str, float]:
        names = turns[0][who]
        return {name: statistics.median(turn[who][name] for turn in turns) for name in names}

    bare_times, ours, cpu = of("bare"), of("ocl"), of("cpu")
    per = 1e6 / 1000
    rows = [
        (
            f"{name}, an operator",
            f"{ours[name] * per:.2f} us",
            f"bare: {bare_times[name] * per:.2f} us, ratio {ours[name] / bare_times[name]:.2f}",
        )
        for name in ("chain", "graph")
        if name in bare_times
    ]
    table("A chain of 1,000 adds of 16 elements", rows)
    rows = []
    for name, seconds in ours.items():
        if name in ("chain", "graph"):
            continue
        remark = f"CPU: {cpu[name] * 1e3:.2f} ms, speed {cpu[name] / seconds:.2f}"
        if name in bare_times:
            speed = bare_times[name] / seconds
            remark += f"; bare: {bare_times[name] * 1e3:.2f} ms, speed {speed:.2f}"
        rows.append((name, f"{seconds * 1e3:.2f} ms", remark))
    table("64 MiB tensors, and others; speed: how many times as fast as that", rows)

    missed, found = [], []
    for turn in range(3):
        folder = work / f"cache-{turn}"
        kept = {"OPENCL_CACHE": str(folder), "POCL_KERNEL_CACHE": "0"}
        missed.append(float(output(python, "-c", FIRST, **kept)))
        found.append(float(output(python, "-c", FIRST, **kept)))
    miss, hit = statistics.median(missed), statistics.median(found)
    table(
        "The first operators of a process",
        [
            ("no compiled kernels", f"{miss * 1e3:.1f} ms", "median of 3"),
            ("compiled kernels on disk", f"{hit * 1e3:.1f} ms", f"{miss / hit:.0f} x"),
        ],
    )


def output(*command: str | Path, **more: str) -> str:
    """What a command prints, which must succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, env={**os.environ, **more}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words[:3])} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
