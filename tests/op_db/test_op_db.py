# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operator samples on the device, by fallback where there is no kernel."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_op_db.py")
COUNTS = re.compile(
    r"(\w+): (\d+) passed \((\d+) random\), (\d+) failed, (\d+) crashed, (\d+) skipped"
)


DEVICE_TESTS = SCRIPT.parents[1] / "device"


def run(python: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, SCRIPT, *arguments], capture_output=True, text=True, check=False)


def test_every_operator_that_the_cpu_computes_passes(
    backend: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(backend)
    found = list(COUNTS.finditer(done.stdout))
    with capsys.disabled():
        print("\n" + "\n".join(match[0] for match in found))
    wrong = [line for line in done.stdout.splitlines() if line.startswith(("failed", "crashed"))]
    assert done.returncode == 0, "\n".join(wrong) + done.stderr[-2000:]
    passed = {match[1]: int(match[2]) for match in found}
    assert passed["float32"] > 600
    assert passed["int64"] > 400


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


def test_an_operator_that_is_expected_to_fail_and_passes_is_an_error(
    backend: Path, tmp_path: Path
) -> None:
    expected = tmp_path / "expected.json"
    expected.write_text('[{"operator": "atan", "dtypes": ["float32"], "cause": "none"}]')
    done = run(backend, "--expected", expected, "atan")
    assert done.returncode == 1
    assert "atan float32: passes, but expected.json says it cannot" in done.stdout


def test_a_pattern_that_names_nothing_is_an_error(backend: Path) -> None:
    assert run(backend, "no_such_operator").returncode == 1
