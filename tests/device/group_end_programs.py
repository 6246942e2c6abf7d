# SPDX-License-Identifier: Apache-2.0
"""Programs of groups that end badly, and what starts them for test_groups_end.py.

    python group_end_programs.py foo

has PyTorch imported, and forks a process for each rank of a program. A line of JSON on stdin orders
one, and the answer is a line on stdout. Each ends as Python ends, with all that runs then.
"""

from __future__ import annotations

import contextlib
import datetime
import faulthandler
import gc
import importlib
import json
import os
import re
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from rank_starter import LIMIT
from ranks import Rank, device_of, group_of, shared_store

#: Seconds that a group waits for a rank.
TIMEOUT = 3
#: How the host's collectives and a driver's say that the time-out is over.
TIMED_OUT = "[Tt]ime(d )?out"
#: How they say that another rank has given up, as after a time-out of its own.
TOLD_BY_ANOTHER = "given up|closed by peer|reset by peer"


def start(here, timeout=TIMEOUT, **options):
    """Makes the group once all ranks have begun, so that its time-out is for what follows."""
    store = dist.FileStore(os.environ["GROUP_STORE"], here.size)
    meet(here, store, "start")
    dist.init_process_group(
        group_of(here.device.type),
        store=store,
        rank=here.rank,
        world_size=here.size,
        timeout=datetime.timedelta(seconds=timeout),
        **options,
    )


def meet(here, store, place):
    """Waits until all ranks have come to this place; they meet once at each."""
    if store.add(place, 1) == here.size:
        store.set(f"all at {place}", "")
    store.wait([f"all at {place}"])


def ones(here, count=10):
    return torch.ones(count, device=here.device)


def works(here):
    """The group works: all ranks are there."""
    tensor = ones(here)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [here.size] * 10, tensor


@contextlib.contextmanager
def raises(*named, kind=RuntimeError):
    """What is in this context raises an error soon; a program then goes on.

    The error's text has each of `named`, which are patterns.
    """
    begun = time.monotonic()
    try:
        yield
    except kind as error:
        for one in named:
            assert re.search(one, str(error), re.IGNORECASE), f"{one!r} is not in: {error}"
        assert str(error).strip(), "the error says nothing"
        print("raised after", round(time.monotonic() - begun, 1), "s:", error, flush=True)
    else:
        raise AssertionError("no error was raised")


# --- a rank that is gone ----------------------------------------------------------------------

COLLECTIVES = {
    "all_reduce": lambda here, x: dist.all_reduce(x),
    "broadcast": lambda here, x: dist.broadcast(x, 0),
    "broadcast from it": lambda here, x: dist.broadcast(x, here.size - 1),
    "reduce": lambda here, x: dist.reduce(x, 0),
    "reduce to it": lambda here, x: dist.reduce(x, here.size - 1),
    "all_gather": lambda here, x: dist.all_gather(parts(here, x), x),
    "all_gather_into_tensor": lambda here, x: dist.all_gather_into_tensor(x.repeat(here.size), x),
    "uneven all_gather": lambda here, x: dist.all_gather(
        [x.new_empty(len(x) + rank) for rank in range(here.size)], x.new_empty(len(x) + here.rank)
    ),
    "reduce_scatter": lambda here, x: dist.reduce_scatter(x, parts(here, x)),
    "reduce_scatter_tensor": lambda here, x: dist.reduce_scatter_tensor(x, x.repeat(here.size)),
    "all_to_all": lambda here, x: dist.all_to_all(parts(here, x), parts(here, x)),
    "all_to_all_single": lambda here, x: dist.all_to_all_single(
        x.repeat(here.size), x.repeat(here.size)
    ),
    "gather": lambda here, x: gather(here, x, 0),
    "gather to it": lambda here, x: gather(here, x, here.size - 1),
    "scatter": lambda here, x: scatter(here, x, 0),
    "scatter from it": lambda here, x: scatter(here, x, here.size - 1),
    "recv from any rank": lambda here, x: messages(here, x, src=None),
    "send and recv": lambda here, x: messages(here, x),
    "transposed all_reduce": lambda here, x: dist.all_reduce(transposed(x)),
    "transposed all_gather": lambda here, x: dist.all_gather(
        [transposed(one) for one in parts(here, x)], x
    ),
    "transposed send and recv": lambda here, x: messages(here, transposed(x)),
    "batch_isend_irecv": lambda here, x: exchange(here, x),
    "coalesced": lambda here, x: coalesced(here, x),
    "barrier": lambda here, x: dist.barrier(),
}
#: Collectives in which some ranks only send: they need not notice that nobody receives.
ONE_WAY = ("broadcast", "reduce", "gather", "scatter")
#: Collectives in which only the first rank needs the last one, and those in which no rank does.
ONLY_THE_FIRST = ("reduce", "gather", "batch_isend_irecv")
NOBODY = ("broadcast", "reduce to it", "gather to it", "scatter")


def transposed(tensor):
    return tensor.view(2, -1).t()


def parts(here, tensor):
    return [tensor.clone() for _ in range(here.size)]


def gather(here, tensor, root):
    dist.gather(tensor, parts(here, tensor) if here.rank == root else None, root)


def scatter(here, tensor, root):
    dist.scatter(tensor, parts(here, tensor) if here.rank == root else None, root)


def exchange(here, tensor):
    """To the next rank, and from the one before."""
    to, source = (here.rank + 1) % here.size, (here.rank - 1) % here.size
    there = tensor.clone()
    batch = [dist.P2POp(dist.isend, tensor, to), dist.P2POp(dist.irecv, there, source)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()


def coalesced(here, tensor):
    with dist._coalescing_manager(device=here.device):
        for _ in range(3):
            dist.all_reduce(tensor)


def messages(here, tensor, **source):
    if here.rank < here.size - 1:
        dist.recv(tensor, **(source or {"src": here.size - 1}))
    else:
        for rank in range(here.size - 1):
            dist.send(tensor, rank)


def killed(here, name, bound=False):
    """The last rank is killed while all call a collective, time after time.

    In a group that is bound to the device, messages may be the driver's.
    """
    start(here, **({"device_id": here.device} if bound else {}))
    works(here)
    tensor = ones(here, 1 << 18)
    if here.rank == here.size - 1:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
    in_barrier = name == "barrier" or name.split()[0] in ONE_WAY
    with raises(**({} if in_barrier else {"kind": dist.DistBackendError})):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            COLLECTIVES[name](here, tensor)
            tensor[0].item()  # or the host would give the device work for many seconds
            if in_barrier:
                dist.barrier()
    dist.destroy_process_group()


def killed_with_works_in_flight(here):
    """The error comes from the call, from `wait()` or from a read, and from all that follow."""
    start(here)
    works(here)
    if here.rank == here.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(2):
        with raises():
            tensors = [ones(here, 1000) for _ in range(5)]
            handles = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
            for handle, tensor in zip(handles, tensors):
                handle.wait()
                tensor.cpu()
    dist.destroy_process_group()


def killed_and_group_destroyed(here):
    """The error comes from the call, or from a read, though the group is no more."""
    start(here)
    works(here)
    if here.rank == here.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    tensor = ones(here, 1 << 20)
    with raises():
        dist.all_reduce(tensor)
        dist.destroy_process_group()
        tensor.cpu()
    os._exit(0)  # the group is destroyed in some backends only


def absent(here, name, asynchronous=False):
    """The last rank does not call the collective: those that need it are told after the timeout."""
    start(here, timeout=1)
    works(here)
    store = shared_store()
    kept = dist.group.WORLD  # as a traceback or a model may keep it
    told = range(1 if name.split()[0] in ONLY_THE_FIRST else here.size - 1)
    if here.rank in told:
        tensor = ones(here)
        # Gloo does barriers. A rank may hear of another one's time-out before its own.
        named = [f"rank {here.rank}", f"{TIMED_OUT}|{TOLD_BY_ANOTHER}"][name == "barrier" :]
        with raises(*named, kind=RuntimeError if name == "barrier" else dist.DistBackendError):
            if asynchronous:
                dist.all_reduce(tensor, async_op=True).wait()
            else:
                COLLECTIVES[name](here, tensor)
            tensor.cpu()
        store.set(f"told {here.rank}", "")
    else:
        if here.rank < here.size - 1:
            try:
                tensor = ones(here)
                COLLECTIVES[name](here, tensor)
                tensor.cpu()
            except dist.DistBackendError as error:
                print("raised by a rank that may be told, too:", error, flush=True)
        store.wait([f"told {rank}" for rank in told])
        time.sleep(0.2)
    dist.destroy_process_group()
    assert ones(here).tolist() == [1] * 10, "the device can be used again"
    del kept


def absent_at_a_monitored_barrier(here):
    """The error names the rank."""
    start(here, timeout=20)  # in which the others hear of the first rank's error
    works(here)
    store = shared_store()
    if here.rank == here.size - 1:
        store.wait(["told"])
    else:
        with raises(f"rank {here.size - 1}" if here.rank == 0 else ""):
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=3))
        if here.rank == 0:
            store.set("told", "")
    os._exit(0)  # only the error counts here


# --- programs that do not end their groups ----------------------------------------------------


def destroyed_without_waiting(here):
    start(here)
    works(here)
    for _ in range(10):
        dist.all_reduce(ones(here, 1 << 20), async_op=True)
    dist.destroy_process_group()


def never_destroyed(here):
    start(here)
    works(here)


def never_destroyed_nor_awaited(here):
    start(here)
    works(here)
    for _ in range(10):
        dist.all_reduce(ones(here, 1 << 20), async_op=True)


def a_status_of_its_own(here):
    start(here)
    works(here)
    sys.exit(3)


def an_exception(here):
    start(here)
    works(here)
    raise LookupError("of the program")


def a_thread_that_waits(here):
    """A daemon thread waits for a rank that does not come."""
    start(here, timeout=60)
    works(here)
    if here.rank == 0:
        threading.Thread(target=dist.all_reduce, args=(ones(here),), daemon=True).start()
        time.sleep(0.3)


def one_ends_early(here):
    """The last rank ends after its work; the others need it no more."""
    start(here)
    works(here)
    if here.rank < here.size - 1:
        time.sleep(0.5)
        dist.destroy_process_group()


def started_again(here):
    for _ in range(2):
        start(here)
        works(here)
        dist.barrier()
        dist.destroy_process_group()
        os.environ["GROUP_STORE"] += "again"
    assert not dist.is_initialized()


def forked(here):
    """A forked child cannot use the group, and harms nobody."""
    start(here)
    works(here)
    child = os.fork()
    if child == 0:
        if here.device.type != "cpu":
            with raises():
                dist.all_reduce(ones(here))
        os._exit(0)  # as multiprocessing ends; PyTorch's Gloo hangs where Python ends
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with {status}"
    works(here)
    dist.destroy_process_group()


# --- debugging --------------------------------------------------------------------------------


def debug(level):
    dist.set_debug_level(getattr(dist.DebugLevel, level))


def in_detail(here):
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL what is right stays right."""
    debug("DETAIL")
    start(here, timeout=20)
    works(here)
    tensor = ones(here)
    dist.broadcast(tensor, 0)
    every = [torch.zeros_like(tensor) for _ in range(here.size)]
    dist.all_gather(every, tensor)
    assert all(one.eq(1).all() for one in every)
    dist.barrier()
    group = dist.new_group()
    dist.all_reduce(tensor, group=group)
    assert tensor.eq(here.size).all()
    # Not DDP: with DETAIL, its constructor crashes PyTorch 2.13 on the CPU as well.
    dist.destroy_process_group()


def mismatched(here, what):
    """Ranks that do not call the same are told so, and what they and another one called."""
    debug("DETAIL")
    start(here, timeout=10)
    works(here)
    odd = here.rank == here.size - 1
    called = {
        "shapes": r"TensorShape=\[3\]",
        "dtypes": "TensorDtypes=Double",
        "collectives": "OpType=BROADCAST",
    }[what]
    with raises(called, f"rank {here.rank} is running", f"rank {here.size - 1} is running"):
        if what == "shapes":
            dist.all_reduce(ones(here, 3 if odd else 2))
        elif what == "dtypes":
            dist.all_reduce(ones(here).double() if odd else ones(here))
        elif odd:
            dist.broadcast(ones(here), 0)
        else:
            dist.all_reduce(ones(here))
    dist.destroy_process_group()


# --- what starts the programs -----------------------------------------------------------------


def _run(order):
    """Forks a process of a rank; this returns in that process only, with its program."""
    child = os.fork()
    if child:
        return child
    output = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor, to in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
        os.dup2(descriptor, to)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    os.environ["GROUP_STORE"] = order["store"]
    torch.set_num_threads(1)
    return 0


def _wait(children, limit):
    """The statuses of processes, minus a signal's number if one ended it; None if it hangs."""
    end, ends = time.monotonic() + limit, {}
    while len(ends) < len(children):
        for child in set(children) - set(ends):
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                ends[child] = os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            for child in set(children) - set(ends):
                os.kill(child, signal.SIGUSR1)
                time.sleep(0.3)
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                ends[child] = None
        time.sleep(0.01)
    return [ends[child] for child in children]


def main(kind):
    gc.collect()
    gc.freeze()  # or each process copies all memory of PyTorch when it ends, which takes a second
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            print(json.dumps(_wait(order["wait"], order["limit"])), flush=True)
            continue
        program = getattr(importlib.import_module(order["module"]), order["program"])
        child = _run(order)
        if child == 0:
            here = Rank(order["rank"], order["size"], device_of(kind, order["rank"]))
            program(here, *order["arguments"])
            return
        print(child, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
