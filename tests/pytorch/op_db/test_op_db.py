# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operator samples on the device, by fallback where there is no kernel."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_op_db.py")
PAGE = SCRIPT.parents[3] / "docs" / "operators.md"
COUNTS = re.compile(
    r"(\w+) (\w+): (\d+) calls of (\d+) operators \(\d+ random\): (\d+) passed, "
    r"(\d+) differ for a known cause, (\d+) failed"
)
DEVICE_TESTS = SCRIPT.parents[2] / "device"


def run(python: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, SCRIPT, *arguments], capture_output=True, text=True, check=False)


def compared(backend: Path, *arguments: str) -> dict[tuple[str, str], int]:
    """How many operators were as on the CPU, or differed as it is known, by dtype and kind of call.

    Fails if there is another difference.
    """
    done = run(backend, *arguments)
    print(done.stdout)
    wrong = [line for line in done.stdout.splitlines() if line.startswith(("differs", "crashed"))]
    assert done.returncode == 0, "\n".join(wrong) + done.stderr[-2000:]
    return {(one[1], one[2]): int(one[4]) for one in COUNTS.finditer(done.stdout)}


@pytest.mark.parametrize(
    "backend", ["copying", pytest.param("host_accessible", marks=pytest.mark.long)], indirect=True
)
def test_operators_are_as_on_the_cpu(backend: Path) -> None:
    operators = compared(backend, "--dtypes", "float32,int64,complex64")
    assert operators["float32", "forward"] > 600
    assert operators["int64", "forward"] > 400
    assert operators["complex64", "backward"] > 300


@pytest.mark.parametrize("backend", ["host_accessible"], indirect=True)
def test_operators_are_as_on_the_cpu_where_it_reads_the_memory(backend: Path) -> None:
    """The calls that differ most from those with copies."""
    kinds = "forward,backward,out,inplace"
    operators = compared(backend, "--dtypes", "float32", "--kinds", kinds)
    assert operators["float32", "forward"] > 600
    assert operators["float32", "backward"] > 500
    assert operators["float32", "out"] > 300


def test_the_fallback_of_each_kind_of_runtime(backend: Path) -> None:
    tests = [
        DEVICE_TESTS / name
        for name in ("test_fallback.py", "test_stream_memory.py", "test_transformers.py")
    ]
    done = subprocess.run(
        [backend, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=DEVICE_TESTS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


#: What `sin` does instead, by the aspect in which it then differs.
CHANGES = [
    ("original(x, **options) + 1", "value"),
    ("original(x, **options).double()", "dtype"),
    ("original(x, **options)[..., None].squeeze(-1).t()", "stride"),
    ("original(x, **options).reshape(-1)", "shape"),
    ("original(x, **options).cpu()", "device"),
    ("original(x, **options).detach()", "gradient needed"),
    ("torch._neg_view(-original(x, **options))", "negative bit"),
    ("(original(x, **options), x.data.add_(1))[0]", "value"),
    ("x.data.copy_(original(x, **options))", "aliases"),
    ("original(x, **options).add_(0, alpha=warnings.warn('w') or 1)", "warnings"),
    ("[][0]", "error"),
    ("os.kill(os.getpid(), 9)", "crashed"),
]
#: Crashes of one of three dtypes: always, and only in a process that checked another one before.
CRASHES = [
    (
        "os.kill(os.getpid(), 9) if x.dtype == torch.int64 else original(x, **options)",
        "crashed   sin int64: killed by SIGKILL",
    ),
    (
        "os.kill(os.getpid(), 9) if x.dtype == torch.int64 and torch.float32 in seen "
        "else (seen.append(x.dtype), original(x, **options))[1]",
        "crashed   sin int64 after out: after another dtype: killed by SIGKILL",
    ),
]
DIFFERENT = """
import os
import sys
import warnings

sys.path.insert(0, {folder!r})
import torch
import run_op_db

op = next(one for one in run_op_db.op_db if one.name == "sin")
original, seen = op.op, []
for change, dtypes in {changes!r}:
    sys.argv[1:] = ["--dtypes", dtypes, "--kinds", "forward,negative,out", "sin"]
    changed = eval(f"lambda x, **options: {{change}}")
    op.op = lambda x, **options: (original if x.is_cpu else changed)(x, **options)
    status = run_op_db.main()
    print(f"= {{status}}", flush=True)
"""


@pytest.fixture(scope="module")
def endings(backend: Path) -> list[tuple[str, str]]:
    """What is said of each change, and the exit status."""
    changes = [(change, "float32") for change, _ in CHANGES]
    changes += [(change, "float32,int64,complex64") for change, _ in CRASHES]
    program = DIFFERENT.format(folder=str(SCRIPT.parent), changes=changes)
    done = subprocess.run([backend, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r"(.*?)= (\d)\n", done.stdout, re.S)


@pytest.mark.parametrize("number", range(len(CHANGES)), ids=[aspect for _, aspect in CHANGES])
def test_each_kind_of_difference_is_found(endings: list[tuple[str, str]], number: int) -> None:
    said, status = endings[number]
    aspect = CHANGES[number][1]
    assert status == "1", said
    line = "crashed   sin float32" if aspect == "crashed" else f", {aspect}, "
    assert line in said


@pytest.mark.parametrize("number", range(len(CRASHES)))
def test_a_crash_costs_no_other_dtype(endings: list[tuple[str, str]], number: int) -> None:
    said, status = endings[len(CHANGES) + number]
    assert status == "1"
    assert CRASHES[number][1] in said.splitlines()
    assert said.count("crashed   ") == 1 and "\n1 crashed\n" in said
    for dtype in ("float32", "complex64"):
        for kind in ("forward", "out"):
            assert re.search(rf"^{dtype} {kind}: \d+ calls .* 0 failed$", said, re.M), said


def test_an_entry_that_nothing_needs_is_an_error(backend: Path, tmp_path: Path) -> None:
    expected = tmp_path / "differences.toml"
    expected.write_text(
        '[[difference]]\ncause = "none"\noperators = ["atan"]\naspects = ["value"]\n'
        'dtypes = ["float32"]\n'
    )
    done = run(backend, "--expected", expected, "--samples", "0", "atan")
    assert done.returncode == 1
    assert "unneeded  differences.toml: none: atan" in done.stdout


def test_a_pattern_that_names_nothing_is_an_error(backend: Path) -> None:
    assert run(backend, "no_such_operator").returncode == 1


def test_the_page_has_the_table(backend: Path) -> None:
    table = run(backend, "--table").stdout
    assert table.count("\n") > 5
    assert table in PAGE.read_text()
