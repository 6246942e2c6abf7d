# SPDX-License-Identifier: Apache-2.0
"""What ranks run in test_parallel.py and test_bound_groups.py: groups split into parts."""

from __future__ import annotations

import contextlib

import torch
import torch.distributed as dist
from message_programs import together

#: Whether the order of a part is that of its ranks, as from PyTorch 2.14 on.
ORDERED = hasattr(dist.distributed_c10d, "_NonGroupMember")
#: What a rank gets that is in no part.
OUTSIDE = dist.GroupMember.NON_GROUP_MEMBER if ORDERED else None


@contextlib.contextmanager
def split(*parts, **options):
    """This rank's part of a group, which is destroyed at the end; or OUTSIDE."""
    group = dist.split_group(split_ranks=list(parts), **options)
    try:
        yield group
    finally:
        if group is not OUTSIDE:
            dist.destroy_process_group(group)


def numbers(here, rank=None):
    return torch.arange(3.0, device=here.device) + 10 * (here.rank if rank is None else rank)


def check(here, group, ranks):
    """A group has these ranks, and each collective and message the values of its ranks only."""
    size, place = len(ranks), ranks.index(here.rank)
    assert dist.get_process_group_ranks(group) == ranks
    assert (dist.get_world_size(group), dist.get_rank(group)) == (size, place)
    every = torch.stack([numbers(here, rank) for rank in ranks])
    total = numbers(here)
    dist.all_reduce(total, group=group)
    assert torch.equal(total, every.sum(0)), total
    out = torch.zeros(size, 3, device=here.device)
    dist.all_gather_into_tensor(out, numbers(here), group=group)
    assert torch.equal(out, every), out
    last = numbers(here)
    dist.broadcast(last, ranks[-1], group=group)
    assert torch.equal(last, every[-1]), last
    on_the_host = torch.tensor([float(here.rank)])
    dist.all_reduce(on_the_host, group=group)
    assert on_the_host.item() == sum(ranks)
    if size > 1:
        got = torch.zeros(3, device=here.device)
        to, source = ranks[(place + 1) % size], ranks[place - 1]
        together(
            dist.P2POp(dist.isend, numbers(here), to, group),
            dist.P2POp(dist.irecv, got, source, group),
        )
        assert torch.equal(got, numbers(here, source)), got
    dist.barrier(group)


def of_all(here):
    """A group of all, made from the group that there is."""
    everyone = list(range(here.size))
    with split(everyone) as group:
        check(here, group, everyone)


def in_two(here):
    """Each rank is in one of two parts, which are used at the same time."""
    parts = [list(range(number, here.size, 2)) for number in range(2)]
    with split(*parts) as group:
        check(here, group, parts[here.rank % 2])
    check(here, dist.group.WORLD, list(range(here.size)))


def without_the_last(here):
    """A rank may be in no part; the group that was split goes on with it.

    Its next parts have ranks that are in more groups than others.
    """
    everyone, first = list(range(here.size)), list(range(here.size - 1))
    with split(first) as group:
        if here.rank in first:
            check(here, group, first)
        else:
            assert group is OUTSIDE
        check(here, dist.group.WORLD, everyone)
        with split(everyone) as another:
            check(here, another, everyone)


def in_another_order(here):
    ranks = list(range(here.size))[::-1]
    with split(ranks) as group:
        check(here, group, ranks if ORDERED else sorted(ranks))


def of_a_part(here):
    """A part is split by its own numbers of ranks, which are not those of the whole group."""
    half = here.size // 2
    parts = [list(range(half)), list(range(half, here.size))]
    mine = parts[here.rank >= half]
    with split(*parts) as part:
        with split(*([number] for number in range(len(mine))), parent_pg=part) as group:
            check(here, group, [here.rank])
        with split(list(range(len(mine))), parent_pg=part) as group:
            check(here, group, mine)
        check(here, part, mine)


def twice(here):
    """Two splits into the same ranks are two groups."""
    everyone = list(range(here.size))
    with split(everyone) as first, split(everyone) as second:
        assert first is not second and first.group_name != second.group_name
        check(here, first, everyone)
        check(here, second, everyone)
        totals = [numbers(here) for _ in range(2)]
        works = [
            dist.all_reduce(total, group=group, async_op=True)
            for total, group in zip(totals, (first, second))
        ]
        for work in reversed(works):
            work.wait()
        for total in totals:
            assert torch.equal(total, sum(numbers(here, rank) for rank in everyone)), total


PROGRAMS = (of_all, in_two, without_the_last, in_another_order, of_a_part, twice)
