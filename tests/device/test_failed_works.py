# SPDX-License-Identifier: Apache-2.0
"""Works that fail tell why, and groups that a program aborts let go of all that waits for them."""

import os

import failed_work_programs as programs
import pytest
import torch

pytestmark = [
    pytest.mark.needs("distributed"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()"),
]


@pytest.fixture
def aborts():
    """Skips where a program cannot abort a group of any backend."""
    if not hasattr(torch.distributed.ProcessGroup, "abort"):
        pytest.skip("groups of this PyTorch have no `abort`")


@pytest.mark.parametrize("work", programs.WAITING)
def test_a_failed_work_has_its_error(ends, work):
    ends(programs.failed_work, work)


def test_a_work_that_succeeds_has_none(ends):
    ends(programs.work_that_succeeds)


@pytest.mark.skipif(
    not hasattr(torch.distributed.ProcessGroup, "set_timeout"),
    reason="groups of this PyTorch have no `set_timeout`",
)
@pytest.mark.parametrize("work", ["all_reduce", "irecv"])
def test_another_timeout(ends, work):
    ends(programs.another_timeout, work)


@pytest.mark.usefixtures("aborts")
@pytest.mark.parametrize("how", ["a group", "all groups"])
@pytest.mark.parametrize("work", programs.WAITING)
def test_an_abort_ends_a_wait(ends, work, how):
    ends(programs.aborted, work, how)


@pytest.mark.usefixtures("aborts")
@pytest.mark.parametrize(
    "program",
    [
        programs.aborted_while_it_connects,
        programs.aborted_with_many_works,
        programs.aborted_twice_and_idle,
    ],
    ids=lambda program: program.__name__,
)
def test_other_aborts(ends, program):
    ends(program)
