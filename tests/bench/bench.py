# SPDX-License-Identifier: Apache-2.0
"""Measures what BackendKit promises and prints it as tables; `./dev bench` sets it up.

Every figure is a median of whole processes, taken in turns where two things are compared.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fallback import bench_fallback
from memory import bench_allocator, bench_copies
from opencl import bench_opencl
from overhead import bench_operators
from parallel_training import bench_ranks
from reductions import bench_distributed
from scale import bench_scale
from threads import bench_threads

RUNS = 5
#: Parts that take minutes, or need more packages: only when they are asked for.
LONG = ("endurance", "ranks", "opencl")
IMPORT_RUNS = 41

# Operators that torchgen's generator of backend stubs accepts as kernels.
OPERATORS = """
    abs.out add.out addmm.out bmm.out cat.out ceil.out clamp.out cos.out cumsum.out div.out
    eq.Tensor_out exp.out gather.out ge.Tensor_out gelu.out index_select.out le.Tensor_out
    log.out log_softmax.int_out lt.Tensor_out max_pool2d_with_indices.out mean.out mm.out
    mul.out ne.Tensor_out neg.out native_dropout native_layer_norm nonzero pow.Tensor_Tensor_out
    reciprocal.out relu relu_ rsqrt.out sigmoid.out silu.out sin.out sqrt.out sub.out
    sum.IntList_out tanh.out topk.values where.self_out
""".split()

PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"
IMPORT_TORCH = "import torch"
FIRST_TENSOR = "import torch; torch.empty(2, device='foo')"
FIRST_USE = "import torch; print(torch.ones(2, device='foo') + 1)"


def run(command: Sequence[str | Path], **options: object) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


def cost(command: Sequence[str | Path], **options: object) -> tuple[float, float]:
    """How long a command takes as a process of its own, and its CPU time, also of the system."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run(command, **options)
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ended - started, used


def seconds(command: Sequence[str | Path], **options: object) -> float:
    return cost(command, **options)[0]


def cpu_seconds(command: Sequence[str | Path], **options: object) -> float:
    return cost(command, **options)[1]


def environment(folder: Path, *below: str) -> Path:
    """The Python of a new virtual environment that also sees what the Pythons `below` see."""
    run([below[0], "-m", "venv", "--without-pip", folder])
    python = folder / "bin" / "python"
    folders = [run([one, "-c", PURELIB]).strip() for one in below]
    Path(run([python, "-c", PURELIB]).strip(), "below.pth").write_text("\n".join(folders) + "\n")
    return python


def without_groups(folder: Path) -> Path:
    """A new project for the device foo, without process groups."""
    run([os.environ["BACKENDGEN"], "new", folder, "--name", "foo"])
    with (folder / "backend.toml").open("a", encoding="utf-8") as description:
        description.write("\n[distributed]\nenabled = false\n")
    return folder


def table(title: str, rows: Sequence[tuple[str, str, str]]) -> None:
    print(f"\n{title}")
    for name, figure, remark in rows:
        print(f"  {name:<52} {figure:>12}  {remark}".rstrip())


def milliseconds(value: float) -> str:
    return f"{value * 1000:.1f} ms"


def bench_generate(work: Path) -> None:
    """`backendgen generate` into a fresh folder, beside torchgen on the same operators."""
    base = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    where = "import os, torch; print(os.path.dirname(torch.__file__))"
    torch = run([base, "-c", where]).strip()
    project = work / "generate"
    project.mkdir()
    kernels = "".join(f'"{name}" = "foo::{name.replace(".", "_")}"\n' for name in OPERATORS)
    (project / "backend.toml").write_text(
        f'[backend]\nname = "foo"\nversion = "0.1.0"\n\n[operators.kernels]\n{kernels}'
    )
    supported = "".join(f"- {name}\n" for name in OPERATORS)
    stubs = project / "stubs.yaml"
    stubs.write_text(f"backend: PrivateUse1\ncpp_namespace: foo\nsupported:\n{supported}")

    ours, theirs = [], []
    for turn in range(RUNS):
        for part in range(4):
            out = project / f"glue-{turn}-{part}"
            command = [os.environ["BACKENDGEN"], "generate", "--out", out, "--torch", torch]
            ours.append(seconds(command, cwd=project))
        out = project / f"stubs-{turn}"
        out.mkdir()
        command = [base, "-m", "torchgen.gen_backend_stubs", "--source_yaml", stubs]
        theirs.append(seconds([*command, "--output_dir", out]))
    mine, other = statistics.median(ours), statistics.median(theirs)
    table(
        f"Code for {len(OPERATORS)} operators, whole processes",
        [
            ("backendgen generate", milliseconds(mine), f"median of {len(ours)}"),
            ("python -m torchgen.gen_backend_stubs", milliseconds(other), f"median of {RUNS}"),
            ("ratio", f"{other / mine:.0f} x", ""),
        ],
    )


def bench_install(work: Path) -> None:
    """From nothing to an imported backend, and again after a change of one kernel; no ccache."""
    tools = os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"]
    base = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    cold = {**os.environ, "CCACHE_DISABLE": "1"}
    install = ["-m", "pip", "install", "-q", "--no-build-isolation", "--no-index", "."]
    news, imports, rebuilds = [], [], []
    installs: list[tuple[float, float]] = []
    smaller: list[tuple[float, float]] = []
    for turn in range(RUNS):
        folder = work / f"install-{turn}"
        python = environment(folder / "environment", base, tools)
        news.append(seconds([os.environ["BACKENDGEN"], "new", folder / "foo"]))
        installs.append(cost([python, *install], cwd=folder / "foo", env=cold))
        imports.append(seconds([python, "-c", FIRST_USE], cwd=folder))
        kernels = folder / "foo" / "csrc" / "kernels.cpp"
        kernels.write_text(kernels.read_text() + f"\nint changed_{turn}();\n")
        rebuilds.append(seconds([python, *install], cwd=folder / "foo", env=cold))
        other = without_groups(folder / "other")
        smaller.append(cost([python, *install], cwd=other, env=cold))
        if turn < RUNS - 1:
            shutil.rmtree(folder)
    walls, used = zip(*installs)
    walls_without, used_without = zip(*smaller)
    total = [sum(parts) for parts in zip(news, walls, imports)]
    remark = f"median of {RUNS}"

    def with_cpu(used: Sequence[float]) -> str:
        return f"{remark}; CPU time {statistics.median(used):.1f} s"

    table(
        f"From a name to a device, {os.cpu_count()} cores, without ccache",
        [
            ("backendgen new foo", milliseconds(statistics.median(news)), remark),
            (
                "pip install --no-build-isolation .",
                f"{statistics.median(walls):.1f} s",
                with_cpu(used),
            ),
            (
                "this without groups ([distributed] enabled = false)",
                f"{statistics.median(walls_without):.1f} s",
                with_cpu(used_without),
            ),
            (
                "python: import torch, first tensor on foo",
                f"{statistics.median(imports):.1f} s",
                remark,
            ),
            ("all of these, with groups", f"{statistics.median(total):.1f} s", remark),
            (
                "one kernel changed, pip install again",
                f"{statistics.median(rebuilds):.1f} s",
                remark,
            ),
        ],
    )


def added(more: Sequence[float], less: Sequence[float]) -> float:
    """By how much the first program takes longer than the second: the median over the turns."""
    return statistics.median(one - other for one, other in zip(more, less))


def bench_import(work: Path) -> None:
    """The CPU time of `import torch` with and without the backend and its groups, and that of a
    first tensor."""
    base = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    tools = os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"]
    wheel = ["-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--wheel-dir", work]
    run([tools, *wheel, without_groups(work / "without-groups")])
    (without,) = work.glob("*.whl")
    plain, backend, smaller = (
        environment(work / name, base) for name in ("plain", "backend", "smaller")
    )
    for python, built in ((backend, os.environ["BACKENDKIT_TEST_WHEEL"]), (smaller, without)):
        run([python, "-m", "pip", "install", "-q", "--no-index", built])
    programs = {
        "without a backend": [plain, "-c", IMPORT_TORCH],
        "with torch_foo installed": [backend, "-c", IMPORT_TORCH],
        "without its groups": [smaller, "-c", IMPORT_TORCH],
        "and a first tensor on foo": [backend, "-c", FIRST_TENSOR],
    }
    # OpenBLAS starts threads that wait in a loop; their CPU time says nothing about a backend.
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for turn in range(IMPORT_RUNS + 1):
        for name, program in programs.items():
            value = cpu_seconds(program, cwd=work, env=one_thread)
            if turn:  # the first turn writes byte code and fills the page cache
                times[name].append(value)
    no_backend, with_groups, no_groups, first = times.values()
    remark = f"median of {IMPORT_RUNS}, in turns"
    table(
        "import torch, CPU time of whole processes",
        [
            ("without a backend", milliseconds(statistics.median(no_backend)), remark),
            ("with torch_foo installed", milliseconds(statistics.median(with_groups)), remark),
            ("without its groups", milliseconds(statistics.median(no_groups)), remark),
            (
                "added",
                milliseconds(added(with_groups, no_backend)),
                "median of the turns' differences",
            ),
            ("added without groups", milliseconds(added(no_groups, no_backend)), ""),
            ("added by a first tensor on foo", milliseconds(added(first, with_groups)), ""),
        ],
    )


def bench_endurance(work: Path, steps: int) -> None:
    """Many steps, which take long; only when it is asked for."""
    script = Path(__file__).with_name("endurance.py")
    command = [os.environ["BACKENDKIT_TEST_PYTHON"], script, f"--steps={steps}"]
    if subprocess.run(command, cwd=work, check=False).returncode:
        sys.exit(1)


def main() -> None:
    parts = {
        "generate": bench_generate,
        "install": bench_install,
        "import": bench_import,
        "fallback": lambda work: bench_fallback(work, table, environment),
        "scale": bench_scale,
        "operators": lambda work: bench_operators(work, table),
        "allocator": lambda work: bench_allocator(work, table),
        "copies": lambda work: bench_copies(work, table),
        "threads": lambda work: bench_threads(work, table, options.seconds),
        "distributed": lambda work: bench_distributed(work, table),
        "endurance": lambda work: bench_endurance(work, options.steps or 200_000),
        "ranks": lambda work: bench_ranks(work, table, options.steps or 10_000),
        "opencl": lambda work: bench_opencl(work, table, environment),
    }
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)}")
    parser.add_argument("--steps", type=int, help="of endurance (200000) and ranks (10000)")
    parser.add_argument(
        "--seconds", type=float, default=24, help="of each kind of work of threads: %(default)s"
    )
    options = parser.parse_args()
    chosen = options.parts or [part for part in parts if part not in LONG]
    for name in chosen:
        if name not in parts:
            sys.exit(f"error: unknown part `{name}`\nnote: the parts are {', '.join(parts)}")
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            parts[name](Path(folder))


if __name__ == "__main__":
    main()
