# SPDX-License-Identifier: Apache-2.0
"""Groups whose ranks are killed, do not come, or end without a word: errors, and no hang."""

import os
import re

import group_end_programs as programs
import pytest

pytestmark = [
    pytest.mark.needs("distributed"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()"),
]


@pytest.mark.parametrize("collective", programs.COLLECTIVES)
def test_a_rank_is_killed_in_a_collective(ends, collective):
    ends(programs.killed, collective, last=-9)


@pytest.mark.parametrize(
    "collective",
    ["all_reduce", "send and recv", "transposed send and recv", "batch_isend_irecv"],
)
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
    assert re.search(f"raised .*{programs.TIMED_OUT}", ends(programs.absent, collective))


def test_a_rank_does_not_come_to_an_async_op(ends):
    assert re.search(f"raised .*{programs.TIMED_OUT}", ends(programs.absent, "all_reduce", True))


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
