# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed pass on the device, but for what is named here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "runtime" / "faults"))
import project

#: A Python that has a backend, and the variables of the environment that it needs.
Backend = tuple[str, dict[str, str]]
#: Tests that fail, and why.
FAILING = {
    "test_ddp_profiling_torch_profiler": "the trace has no records of NCCL's parameters",
    "test_ddp_uneven_inputs": "takes minutes on two cores: 1 GB of activations a rank",
    "test_monitored_barrier_allreduce_hang": "the time-out is not told in NCCL's words",
    "test_monitored_barrier_allreduce_hang_wait_all_ranks": "as the one before",
    "test_nccl_high_priority_stream": "makes a process group of NCCL by its class",
}
#: Why tests skip themselves: what they are for, or need.
SKIPPED = {
    "CPU tensors": r"not support CPU|CPU models|CPU barrier|supports CPU|Batch Send Recv CPU",
    "other process groups": r"one of \{'gloo'\}|Only MPI|Only [Gg]loo|Gloo-only|with the NCCL",
    "what NCCL lacks": r"not support (isend|irecv|all_gather_coalesced|send/recv from any)",
    "tested by another": r"tested by",
    "more devices or ranks": r"world size|4 CUDA devices",
    "off in PyTorch": r"^https://github|see https://github|flakiness|torchvision",
}


@pytest.fixture(params=["staged", "driver"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """A Python that has a backend, with these variables: one that has collectives, or has none."""
    if request.param == "staged":
        return os.environ["BACKENDKIT_TEST_PYTHON"], {}
    python = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    project.run(os.environ["BACKENDGEN"], "new", tmp_path / "foo")
    project.add_collectives(tmp_path / "foo")
    site = project.install(tmp_path / "foo", Path(os.environ["BACKENDKIT_BUILD"]), python)
    project.add_entry_point(site)
    return python, {"PYTHONPATH": str(site)}


def run(backend: Backend, folder: Path, script: str, *arguments: str) -> str:
    """What a script beside this file writes to its standard error.

    With CI set, PyTorch's tests need packages of its own CI.
    """
    python, variables = backend
    command = [python, str(Path(__file__).with_name(script)), *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment |= {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def outcomes(backend: Backend, folder: Path) -> list[tuple[str, str, str]]:
    """The name, the outcome and the reason of each test."""
    output = folder / "outcomes.jsonl"
    run(backend, folder, "own.py", "--output", str(output))
    return [tuple(json.loads(line)) for line in output.read_text().splitlines()]


@pytest.mark.parametrize("backend", ["staged"], indirect=True)
def test_the_classes_that_its_tests_share(backend: Backend, tmp_path: Path) -> None:
    text = run(backend, tmp_path, "base_classes.py")
    assert re.search(r"^Ran 7 tests in \S+\n\nOK$", text, re.M)


@pytest.mark.long
def test_of_pytorch(backend: Backend, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = outcomes(backend, tmp_path)
    counts = Counter(outcome for _, outcome, _ in found)
    why = Counter()
    unknown = []
    for name, outcome, reason in found:
        if outcome == "skipped":
            causes = [cause for cause, text in SKIPPED.items() if re.search(text, reason)]
            why[causes[0] if causes else reason] += 1
            unknown += [] if causes else [f"{name} is skipped: {reason}"]
        elif outcome == "failed" and name not in FAILING:
            unknown.append(f"{name} fails: {reason}")
    with capsys.disabled():
        print(f"\n{counts['passed']} passed, {counts['failed']} failed, not applicable:")
        print("\n".join(f"{count:>5} {cause}" for cause, count in why.most_common()))
    assert not unknown, "\n".join(unknown)
    assert {name for name, outcome, _ in found if outcome == "failed"} == set(FAILING)
    assert counts["passed"] > 100
