# SPDX-License-Identifier: Apache-2.0
"""Programs of test_failed_works.py: works that fail, and groups that a program aborts."""

from __future__ import annotations

import datetime
import os
import re
import threading
import time

import torch
import torch.distributed as dist
from backend import lacking
from group_end_programs import TIMED_OUT, meet, ones, raises, start, works
from ranks import shared_store

#: Seconds that a group waits for other ranks, and those in which an abort has to end all waits.
LONG, SOON = 300, 10

WAITING = {
    "all_reduce": lambda x: dist.all_reduce(x, async_op=True),
    "irecv": lambda x: dist.irecv(x, dist.get_world_size() - 1),
    "transposed all_reduce": lambda x: dist.all_reduce(x.view(2, -1).t(), async_op=True),
    "coalesced": lambda x: _coalesced(x),
}


def _coalesced(tensor):
    with dist._coalescing_manager(device=tensor.device, async_ops=True) as manager:
        for part in tensor.split(4):
            dist.all_reduce(part)
    return manager.works[-1]


def _stages(here):
    """Whether works go through the host, so that they and their futures know of errors."""
    return here.device.type == "cpu" or lacking(here.device.type, "all_reduce") is not None


def _ends_late(here, name):
    """Whether a work ends with its results; one of the driver's ends when it is queued."""
    brings = name.startswith("transposed") and lacking(here.device.type, "copy_elements")
    return name == "irecv" or _stages(here) or bool(brings)


# --- works that fail --------------------------------------------------------------------------


def failed_work(here, name):
    """A work of the first rank, to which no other comes, has the error, and so does its future."""
    start(here)
    works(here)
    if here.rank > 0:
        shared_store().wait(["failed"])
    else:
        tensor = ones(here)
        work = WAITING[name](tensor)
        future = work.get_future()
        chained = future.then(lambda done: done.value())
        if _ends_late(here, name):
            assert not work.is_completed()
            _raise_late(work, future, chained)
        else:
            with raises(TIMED_OUT):
                future.wait()
                tensor.cpu()
        _says_so(work)
        shared_store().set("failed", "")
    dist.destroy_process_group()


def _raise_late(work, *futures):
    for future in futures:
        with raises(TIMED_OUT):
            future.wait()
        assert future.done()
        with raises(TIMED_OUT):
            future.value()
    with raises(TIMED_OUT):
        work.get_future().wait()


def _exceptions(work):
    """What `exception()` returns, in a list; nothing where PyTorch cannot give it to Python."""
    try:
        return [work.exception()]
    except (AttributeError, TypeError):  # TypeError: in 2.5 and later releases
        return []


def _says_so(work):
    """What a failed work tells; later waits raise the error again."""
    end = time.monotonic() + SOON
    while hasattr(work, "is_success") and work.is_success():
        assert time.monotonic() < end, "a failed work counts as a success"
        time.sleep(0.01)
    for error in _exceptions(work):
        assert isinstance(error, RuntimeError) and re.search(TIMED_OUT, str(error)), repr(error)
    assert work.is_completed()
    for _ in range(2):
        with raises(TIMED_OUT):
            work.wait()


def work_that_succeeds(here):
    """A work without an error has none."""
    start(here)
    tensor = ones(here)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert tensor.tolist() == [here.size] * 10
    assert _exceptions(work) in ([], [None])
    if hasattr(work, "is_success"):
        assert work.is_success()
    dist.destroy_process_group()


def another_timeout(here, name):
    """A time-out that a program sets later is that of all calls from then on."""
    start(here, timeout=LONG)
    works(here)
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=1), dist.group.WORLD)
    works(here)
    if here.rank > 0:
        shared_store().wait(["failed"])
    else:
        begun, tensor = time.monotonic(), ones(here)
        with raises(TIMED_OUT):
            WAITING[name](tensor).wait()
            tensor.cpu()
        assert time.monotonic() - begun < SOON
        shared_store().set("failed", "")
    dist.destroy_process_group()


# --- groups that are aborted ------------------------------------------------------------------


def _abort(how):
    if how == "all groups":
        dist.distributed_c10d._abort_process_group()
    else:
        dist.group.WORLD.abort()


class Waiting:
    """A thread that waits for a work, and for its results."""

    def __init__(self, here, begin):
        self.here, self.begin, self.error = here, begin, None
        self.begun = threading.Event()
        self.thread = threading.Thread(target=self._wait, daemon=True)
        self.thread.start()

    def _wait(self):
        try:
            tensor = ones(self.here)
            work = self.begin(tensor)
            self.begun.set()
            work.wait()
            tensor.cpu()
        except RuntimeError as error:
            self.error = error

    def ends(self):
        self.thread.join(SOON)
        assert not self.thread.is_alive(), f"still waits {SOON} s after the abort"
        assert self.error is not None, "the results count as right"
        assert "aborted" in str(self.error), self.error


def aborted(here, name, how):
    """A thread of the first rank, which waits for the others, gets an error from an abort.

    All ranks can then make another group.
    """
    start(here, timeout=LONG)
    works(here)
    if here.rank > 0:
        shared_store().wait(["aborted"])
        _abort(how)
    else:
        waiting = Waiting(here, WAITING[name])
        assert waiting.begun.wait(SOON), waiting.error
        time.sleep(0.3)
        assert waiting.thread.is_alive()
        _abort_and_look(here, how, waiting)
    if how != "all groups":
        dist.destroy_process_group()
    os.environ["GROUP_STORE"] += "again"
    start(here, timeout=20)
    works(here)
    dist.destroy_process_group()


def _abort_and_look(here, how, waiting):
    store, begun = shared_store(), time.monotonic()
    _abort(how)
    assert time.monotonic() - begun < SOON
    waiting.ends()
    if how == "all groups":
        assert not dist.is_initialized()
    else:
        with raises("aborted"):
            dist.all_reduce(ones(here))
    store.set("aborted", "")


def aborted_while_it_connects(here):
    """The first collective of a group waits for the other ranks, too."""
    start(here, timeout=LONG)
    meet(here, shared_store(), "connected")  # for the CPU
    if here.rank > 0:
        shared_store().wait(["aborted"])
    else:
        waiting = Waiting(here, WAITING["all_reduce"])
        time.sleep(0.5)
        assert waiting.thread.is_alive()
        _abort_and_look(here, "a group", waiting)
    os._exit(0)  # only the error counts here


def aborted_with_many_works(here):
    """Each work in flight ends, also those that have not begun."""
    start(here, timeout=LONG)
    works(here)
    if here.rank > 0:
        shared_store().wait(["aborted"])
    else:
        tensors = [ones(here, 1000) for _ in range(10)]
        handles = [dist.all_reduce(one, async_op=True) for one in tensors]
        futures = [one.get_future() for one in handles]
        handles.append(WAITING["irecv"](ones(here)))
        _abort("a group")
        begun = time.monotonic()
        for handle in handles:
            with raises("aborted"):
                handle.wait()
        for future in futures if _stages(here) else ():
            with raises("aborted"):
                future.wait()
        assert time.monotonic() - begun < SOON
        shared_store().set("aborted", "")
    os._exit(0)


def aborted_twice_and_idle(here):
    """An abort without works harms nobody, nor does a second one."""
    start(here)
    works(here)
    dist.barrier()  # the others have their results, too
    group = dist.group.WORLD
    for _ in range(2):
        group.abort()
    assert torch.ones(2, device=here.device).tolist() == [1, 1]
    with raises("aborted"):
        dist.all_reduce(ones(here))
    dist.destroy_process_group()
