# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operator samples on the device, by fallback where there is no kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_op_db.py")
COUNTS = re.compile(
    r"(\w+): (\d+) passed \((\d+) random\), (\d+) failed, (\d+) crashed, (\d+) skipped"
)


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False
    )


def test_every_operator_that_the_cpu_computes_passes(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run("--device", request.config.getoption("--device", "foo"))
    counts = {
        match[1]: [int(one) for one in match.groups()[1:]] for match in COUNTS.finditer(done.stdout)
    }
    with capsys.disabled():
        print("\n" + "\n".join(match[0] for match in COUNTS.finditer(done.stdout)))
    wrong = [line for line in done.stdout.splitlines() if line.startswith(("failed", "crashed"))]
    assert done.returncode == 0, "\n".join(wrong) + done.stderr[-2000:]
    assert counts["float32"][0] > 600
    assert counts["int64"][0] > 400


def test_an_operator_that_is_expected_to_fail_and_passes_is_an_error(tmp_path: Path) -> None:
    expected = tmp_path / "expected.json"
    expected.write_text('[{"operator": "atan", "dtypes": ["float32"], "cause": "none"}]')
    done = run("--expected", expected, "atan")
    assert done.returncode == 1
    assert "atan float32: passes, but expected.json says it cannot" in done.stdout


def test_a_pattern_that_names_nothing_is_an_error() -> None:
    assert run("no_such_operator").returncode == 1
