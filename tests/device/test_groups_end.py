# SPDX-License-Identifier: Apache-2.0
"""Groups whose ranks are killed, do not come, or end without a word: errors, and no hang."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import group_end_programs as programs
import pytest

pytestmark = [
    pytest.mark.needs("distributed"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()"),
]

#: What a process writes that does not end as it should.
CRASHES = re.compile(
    r"terminate called|Fatal Python error: (?!Aborted by)|Segmentation fault|pure virtual method"
    r"|Exception ignored|double free|core dumped"
)


class Starter:
    """A process that has PyTorch imported, and forks those of the ranks."""

    def __init__(self, device, size, folder):
        self.size, self.folder, self.number = size, folder, 0
        script = Path(programs.__file__)
        self.process = subprocess.Popen(
            [sys.executable, str(script), device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _ask(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the process that starts ranks ended with {self.process.wait()}"
        return json.loads(answer)

    def __call__(self, program, *arguments):
        """Runs a program on every rank; the statuses, and what each wrote."""
        self.number += 1
        logs = [self.folder / f"{self.number}-{rank}.log" for rank in range(self.size)]
        children = [
            self._ask(
                program=program.__name__,
                arguments=arguments,
                rank=rank,
                size=self.size,
                store=str(self.folder / f"{self.number}.store"),
                log=str(log),
            )
            for rank, log in enumerate(logs)
        ]
        statuses = self._ask(wait=children)
        texts = [log.read_text(errors="replace") for log in logs]
        shown = "\n".join(f"-- rank {rank}\n{text}" for rank, text in enumerate(texts))
        assert None not in statuses, f"{program.__name__} hangs; statuses {statuses}\n{shown}"
        crashed = [text for text in texts if CRASHES.search(text)]
        assert not crashed, f"statuses {statuses}\n{shown}"
        return statuses, shown

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


@pytest.fixture(scope="module")
def starter(name, world_size, tmp_path_factory):
    made = Starter(name, world_size, tmp_path_factory.mktemp("groups"))
    yield made
    made.end()


@pytest.fixture
def ends(starter):
    """Runs a program, each rank of which ends with a status; the last rank may have its own."""

    def run(program, *arguments, status=0, last=None):
        statuses, shown = starter(program, *arguments)
        expected = [status] * starter.size
        if last is not None:
            expected[-1] = last
        assert statuses == expected, shown
        return shown

    return run


@pytest.mark.parametrize("collective", programs.COLLECTIVES)
def test_a_rank_is_killed_in_a_collective(ends, collective):
    ends(programs.killed, collective, last=-9)


@pytest.mark.parametrize("collective", ["all_reduce", "send and recv", "batch_isend_irecv"])
def test_a_rank_of_a_bound_group_is_killed(ends, collective):
    ends(programs.killed, collective, True, last=-9)


def test_a_rank_is_killed_with_works_in_flight(ends):
    ends(programs.killed_with_works_in_flight, last=-9)


def test_a_rank_is_killed_and_the_group_destroyed(ends):
    ends(programs.killed_and_group_destroyed, last=-9)


@pytest.mark.parametrize(
    "collective", [name for name in programs.COLLECTIVES if name not in programs.NOBODY]
)
def test_a_rank_does_not_come(ends, collective):
    ends(programs.absent, collective)


def test_a_rank_does_not_come_to_an_async_op(ends):
    ends(programs.absent, "all_reduce", True)


def test_a_rank_does_not_come_to_a_monitored_barrier(ends):
    ends(programs.absent_at_a_monitored_barrier)


@pytest.mark.parametrize(
    "program",
    [
        programs.destroyed_without_waiting,
        programs.never_destroyed,
        programs.never_destroyed_nor_awaited,
        programs.a_thread_that_waits,
        programs.one_ends_early,
        programs.started_again,
        programs.forked,
        programs.in_detail,
    ],
    ids=lambda program: program.__name__,
)
def test_programs_end_well(ends, program):
    ends(program)


def test_a_status_of_its_own(ends):
    ends(programs.a_status_of_its_own, status=3)


def test_an_exception(ends):
    assert "LookupError: of the program" in ends(programs.an_exception, status=1)


@pytest.mark.parametrize("what", ["shapes", "dtypes", "collectives"])
def test_ranks_that_do_not_call_the_same(ends, what):
    ends(programs.mismatched, what)
