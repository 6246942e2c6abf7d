# SPDX-License-Identifier: Apache-2.0
"""torchrun on several machines, and on what is left when one of them is lost."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from machines import BURST, Machines

#: Bits a second of a slow link.
SLOW = 10_000_000
HERE = Path(__file__).resolve().parent
LIMIT = 180

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces"),
]


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.05)


def results(text: str) -> list[list[str]]:
    """The words of each rank of a machine, in the order of ranks."""
    return sorted(line.split() for line in re.findall(r"(?m)^result (.*)$", text))


def parameters(steps: int) -> float:
    """The sum of the parameters that training.py has in the end, by one process on the CPU."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        model(torch.full((2, 4), step / steps)).square().mean().backward()
        optimizer.step()
    return sum(one.double().sum().item() for one in model.parameters())


@pytest.mark.parametrize("rate", [None, SLOW], ids=["fast", "slow"])
@pytest.mark.parametrize(("count", "processes"), [(2, 1), (2, 2), (4, 1), (4, 2)])
def test_training(tmp_path: Path, count: int, processes: int, rate: int | None) -> None:
    program = [str(HERE / "training.py"), str(tmp_path), "5"]
    with Machines(count) as machines:
        for machine in range(count if rate else 0):
            machines.limit(machine, rate)
        started = [
            machines.torchrun(machine, str(count), program, tmp_path, processes=processes)
            for machine in range(count)
        ]
        texts = [process.communicate(timeout=LIMIT)[0] for process in started]
    assert [process.returncode for process in started] == [0] * count, "\n".join(texts)
    words = [one for text in texts for one in results(text)]
    size = str(count * processes)
    assert sorted(one[0] for one in words) == [str(rank) for rank in range(count * processes)]
    for text in texts:
        assert [one[1] for one in results(text)] == [str(local) for local in range(processes)]
    assert {(one[2], one[3]) for one in words} == {(size, "0")}
    assert len({one[4] for one in words}) == 1
    assert float(words[0][4]) == pytest.approx(parameters(5), abs=2e-6)


def test_a_machine_is_lost(tmp_path: Path) -> None:
    """The other one starts again by itself, from the last state, and ends the training."""
    program = [str(HERE / "training.py"), str(tmp_path), "40", "0.1"]
    step = tmp_path / "step"
    with Machines(2) as machines:
        started = [
            machines.torchrun(machine, "1:2", program, tmp_path, restarts=3) for machine in range(2)
        ]
        until(lambda: step.exists() and int(step.read_text() or 0) >= 5)
        machines.kill(started[1])
        text = started[0].communicate(timeout=LIMIT)[0]
    assert started[0].returncode == 0, text
    ((rank, _, size, first, _),) = results(text)
    assert (rank, size) == ("0", "1"), text
    assert 5 <= int(first) < 40, text


def test_a_machine_that_cannot_be_reached(tmp_path: Path) -> None:
    """No connection is closed, so the other one waits for as long as the group's timeout."""
    program = [str(HERE / "training.py"), str(tmp_path), "100000", "0.1"]
    step = tmp_path / "step"
    with Machines(2) as machines:
        started = [machines.torchrun(machine, "2", program, tmp_path) for machine in range(2)]
        until(lambda: step.exists() and int(step.read_text() or 0) >= 3)
        machines.disconnect(1)
        text = started[0].communicate(timeout=LIMIT)[0]
    assert started[0].returncode == 1, text
    assert re.search(r"DistBackendError: fooccl:\w+ failed on rank 0 of 2", text), text


@pytest.mark.parametrize("wait", ["400ms", "2ms"], ids=["queues", "loses"])
def test_a_slow_link(tmp_path: Path, wait: str) -> None:
    """A reduction brings each rank's bytes to the other; the result is right, also where a link
    loses packets. That a link of this rate cannot be faster shows that it was in use."""
    size = 4 << 20
    with Machines(2) as machines:
        for machine in range(2):
            machines.limit(machine, SLOW, wait)
        program = [str(HERE / "reduction.py"), str(size)]
        started = [machines.torchrun(machine, "2", program, tmp_path) for machine in range(2)]
        texts = [process.communicate(timeout=LIMIT)[0] for process in started]
        lost = [machines.lost(machine) for machine in range(2)]
    assert [process.returncode for process in started] == [0, 0], "\n".join(texts)
    words = [one for text in texts for one in results(text)]
    assert sorted((one[0], one[2]) for one in words) == [("0", "True"), ("1", "True")]
    seconds = max(float(one[1]) for one in words)  # of the rank that began first
    assert seconds >= (size - BURST) * 8 / SLOW, texts
    if wait == "2ms":
        assert min(lost) > 0
