# SPDX-License-Identifier: Apache-2.0
"""torchrun on several machines, and on what is left when one of them is lost."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from machines import Machines

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


@pytest.mark.parametrize(("count", "processes"), [(2, 1), (2, 2), (4, 1)])
def test_training(tmp_path: Path, count: int, processes: int) -> None:
    program = [str(HERE / "training.py"), str(tmp_path), "5"]
    with Machines(count) as machines:
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
    assert len({one[4] for one in words}) == 1  # the parameters


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


def test_a_slow_link(tmp_path: Path) -> None:
    program = [str(HERE / "training.py"), str(tmp_path), "3"]
    with Machines(2) as machines:
        for machine in range(2):
            machines.limit(machine, "10mbit")
        started = [machines.torchrun(machine, "2", program, tmp_path) for machine in range(2)]
        texts = [process.communicate(timeout=LIMIT)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], "\n".join(texts)
