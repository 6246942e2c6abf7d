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


def test_operators_are_as_on_the_cpu(backend: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(backend, "--dtypes", "float32,int64,complex64")
    found = list(COUNTS.finditer(done.stdout))
    with capsys.disabled():
        print("\n" + "\n".join(match[0] for match in found))
    wrong = [line for line in done.stdout.splitlines() if line.startswith(("differs", "crashed"))]
    assert done.returncode == 0, "\n".join(wrong) + done.stderr[-2000:]
    operators = {(match[1], match[2]): int(match[4]) for match in found}
    assert operators["float32", "forward"] > 600
    assert operators["int64", "forward"] > 400
    assert operators["complex64", "backward"] > 300


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


DIFFERENT = """
import sys
sys.argv[0] = {script!r}
sys.path.insert(0, {folder!r})
import torch
import run_op_db

def differ(kind):
    op = next(one for one in run_op_db.op_db if one.name == "sin")
    original = op.op

    def changed(x, **options):
        if x.device.type == "cpu":
            return original(x, **options)
        return {change}

    op.op = changed
    return run_op_db.main()

sys.exit(differ(None))
"""


@pytest.mark.parametrize(
    "change, aspect",
    [
        ("original(x, **options) + 1", "value"),
        ("original(x, **options).double()", "dtype"),
        ("original(x, **options)[..., None].squeeze(-1).t()", "stride"),
        ("original(x, **options).reshape(-1)", "shape"),
        ("original(x, **options).cpu()", "device"),
        ("original(x, **options).detach()", "gradient needed"),
        ("torch._neg_view(-original(x, **options))", "negative bit"),
        ("(original(x, **options), x.data.add_(1))[0]", "value"),
        ("x.data.copy_(original(x, **options))", "aliases"),
        ("original(x, **options).add_(0, alpha=__import__('warnings').warn('w') or 1)", "warnings"),
        ("[][0]", "error"),
        ("__import__('os').kill(__import__('os').getpid(), 9)", "crashed"),
    ],
)
def test_each_kind_of_difference_is_found(backend: Path, change: str, aspect: str) -> None:
    program = DIFFERENT.format(script=str(SCRIPT), folder=str(SCRIPT.parent), change=change)
    done = subprocess.run(
        [backend, "-c", program, "--dtypes", "float32", "--kinds", "forward,negative,out", "sin"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    line = "crashed   sin float32" if aspect == "crashed" else f", {aspect}, "
    assert line in done.stdout


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
