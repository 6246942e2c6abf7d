# SPDX-License-Identifier: Apache-2.0
"""What the number of kernels costs: to generate, to build, in the library and to load it."""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import time
from pathlib import Path
from typing import IO

COUNTS = (0, 10, 100, 1000, 10**9)  # the last one: all there are
RUNS = 9
LOAD = """
import os, sys, time
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
start = time.perf_counter()
torch.ops.load_library(sys.argv[1])
print(time.perf_counter() - start)
"""


def run(*command: object, cwd: Path | None = None, stdin: IO[str] | None = None) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def operator_names(torch: str) -> list[str]:
    program = Path(os.environ["BACKENDKIT_BUILD"], "tests/pytorch/operators/dump_signatures")
    return [line.split("\t")[0] for line in run(program, torch).splitlines()]


def define_all(header: Path) -> str:
    """C++ that defines each function that kernels.h declares."""
    text = re.sub(r"^(#.*|//.*)\n", "", header.read_text(), flags=re.MULTILINE)
    return '#include "kernels.h"\n\n#include <stdexcept>\n' + text.replace(
        ");", ') { throw std::runtime_error("not to be called"); }'
    )


def measure(project: Path, names: list[str], torch: str, python: str) -> tuple[str, ...]:
    """A row: kernels, generate, build, size of the library, time to load it."""
    lines = "".join(f'"{name}" = "foo::kernel_{i}"\n' for i, name in enumerate(names))
    (project / "backend.toml").write_text(
        f'[backend]\nname = "foo"\nversion = "0.1.0"\n\n[operators.kernels]\n{lines}'
    )
    generate = [os.environ["BACKENDGEN"], "generate", "--torch", torch, "--out"]
    times = []
    for turn in range(RUNS):
        started = time.perf_counter()
        run(*generate, f"glue-{turn}", cwd=project)
        times.append(time.perf_counter() - started)
    (project / "csrc" / "kernels.cpp").write_text(define_all(project / "glue-0" / "kernels.h"))
    for turn in range(RUNS):
        shutil.rmtree(project / f"glue-{turn}")
    build = project / "build"
    configure = ["cmake", "-S", project, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    package = os.environ["BACKENDKIT_BUILD"]
    run(*configure, f"-DBackendKit_DIR={package}", f"-DPython_EXECUTABLE={python}")
    started = time.perf_counter()
    run("cmake", "--build", build)
    built = time.perf_counter() - started
    library = build / "libtorch_foo.so"
    loads = [float(run(python, "-c", LOAD, library)) for _ in range(RUNS)]
    return (
        str(len(names)),
        f"{statistics.median(times) * 1000:.1f} ms",
        f"{built:.0f} s",
        f"{library.stat().st_size / 1024:.0f} KiB",
        f"{statistics.median(loads) * 1000:.1f} ms",
    )


def bench_scale(work: Path) -> None:
    """Kernels from none to every operator, spread evenly; compiled without ccache."""
    python = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    torch = run(python, "-c", "import os, torch; print(os.path.dirname(torch.__file__))").strip()
    os.environ["CCACHE_DISABLE"] = "1"
    names = operator_names(torch)
    heads = ("kernels", "generate", "build", "library", "load")
    print(f"\nNumber of kernels, {os.cpu_count()} cores; generate and load: median of {RUNS}")
    print("  " + "".join(f"{head:>12}" for head in heads))
    for count in COUNTS:
        project = work / f"scale-{count}"
        run(os.environ["BACKENDGEN"], "new", project, "--name", "foo")
        step = max(1, len(names) // max(1, count))
        chosen = names[::step][:count]
        row = measure(project, chosen, torch, python)
        print("  " + "".join(f"{cell:>12}" for cell in row), flush=True)
        shutil.rmtree(project)
    del os.environ["CCACHE_DISABLE"]
