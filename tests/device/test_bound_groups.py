# SPDX-License-Identifier: Apache-2.0
"""Groups that have a `device_id`: their ranks are connected from the start, and messages between
two of them are the driver's where it has them."""

import bound_programs as bound
import message_programs as messages
import pytest
import shard_programs as parts
import split_programs as splits
import work_programs as works
from backend import RELEASE, lacking
from ranks import Ranks

pytestmark = pytest.mark.needs("distributed")


@pytest.fixture(scope="module")
def ranks(name, world_size, tmp_path_factory):
    with Ranks(name, world_size, tmp_path_factory.mktemp("bound"), bound=True) as processes:
        yield processes


@pytest.mark.parametrize("count", [1, 10, 1000, 2**20 + 1])
def test_one_way(ranks, count):
    ranks(bound.one_way, count)


@pytest.mark.parametrize("count", [1, 10, 2**14, 2**20 + 1])
def test_both_ways(ranks, count):
    ranks(messages.batch, count)


@pytest.mark.parametrize("count", [10, 2**20 + 1])
def test_messages_are_in_order_with_the_stream(ranks, count):
    ranks(bound.computed_before_and_used_after, count)


@pytest.mark.parametrize(
    "program",
    [
        messages.batch_of_several,
        messages.tags_out_of_order,
        messages.answer_before_an_older_message,
        bound.one_sends_alone,
        bound.failing_batch,
        bound.other_layouts,
        bound.in_a_pair,
        messages.batch_in_inference_mode,
        works.in_groups_of_one,
        works.subgroups,
        works.cpu_and_device,
        works.two_threads,
        parts.meshes,
    ],
    ids=lambda program: program.__name__,
)
def test_programs(ranks, program):
    ranks(program)


@pytest.mark.parametrize("by_device", [False, True])
def test_objects(ranks, by_device):
    ranks(messages.objects, "send_object_list", by_device)


def test_any_source(ranks, name):
    ranks(bound.any_source, lacking(name, "messages") is None)


def test_awaited_within_a_batch(ranks, name):
    ranks(bound.awaited_within_a_batch, lacking(name, "messages") is None)


def test_what_a_profile_shows(ranks, world_size):
    assert ranks(bound.events) == [["send"], ["recv"], *[[]] * (world_size - 2)]


@pytest.mark.parametrize("schedule", ["ScheduleGPipe", "Schedule1F1B"])
def test_pipeline(ranks, schedule):
    ranks(parts.pipeline, schedule)


@pytest.mark.skipif(
    RELEASE < (2, 9), reason="groups of backends other than NCCL split from PyTorch 2.9 on"
)
@pytest.mark.parametrize("program", splits.PROGRAMS, ids=lambda program: program.__name__)
def test_split_group(ranks, program):
    ranks(program)


@pytest.fixture
def others(name, world_size, tmp_path):
    """Makes ranks of which some have a `device_id`."""
    return lambda bound: Ranks(name, world_size, tmp_path, bound)


@pytest.mark.parametrize("first", [messages.batch, messages.recv_any_source, bound.in_a_pair])
def test_only_one_rank_has_a_device_id(others, first):
    """Messages then go through the host, on all ranks alike."""
    with others([0]) as processes:
        processes(first)
        processes(works.cpu_and_device)
        processes(messages.batch)
        processes(messages.recv_any_source)


def test_a_message_ahead_of_the_first_collective(others):
    with others([]) as processes:
        processes(bound.ahead_of_the_first_collective)


def test_arguments_are_compared(others, monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    with others(True) as processes:
        processes(messages.batch, 2**20 + 1)
        processes(messages.batch_of_several)
        processes(works.in_place)
