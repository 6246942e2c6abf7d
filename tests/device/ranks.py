# SPDX-License-Identifier: Apache-2.0
"""Ranks: processes that stay for a module of tests and run its programs, each on its device.

    def program(here, number): ...      # in a module that a fresh process can import

    ranks(program, 3)                   # runs it on every rank; what each returned

A program gets the Rank that it runs as, and fails by an exception. What it takes and returns is
pickled; tensors are compared where they are.
"""

from __future__ import annotations

import contextlib
import datetime
import faulthandler
import itertools
import multiprocessing
import os
import signal
import time
import traceback
from multiprocessing import connection
from typing import NamedTuple

import torch

#: Seconds that a call may take, and that an operation of a group waits for the other ranks.
LIMIT, TIMEOUT = 120, 60
#: Seconds for the other ranks after one has failed.
GRACE = 5


class Rank(NamedTuple):
    """What a program runs as."""

    rank: int
    size: int
    device: torch.device

    @property
    def next(self):
        return (self.rank + 1) % self.size

    @property
    def before(self):
        return (self.rank - 1) % self.size


class Failure(NamedTuple):
    """How a program failed on a rank: an exception, or the end of the process."""

    rank: int
    kinds: tuple[str, ...]  # the exception's class and those that it derives from
    text: str
    trace: str

    def __str__(self):
        return f"rank {self.rank}: {self.kinds[0]}: {self.text}\n{self.trace}"


class Ranks:
    """Processes with a group of all of them, which start at the first call.

    They start again after a call that failed, because operations may be left that nobody awaits.
    With `bound`, the group of a rank is only for the rank's device, as by `device_id`; `bound` may
    also name such ranks.
    """

    def __init__(self, device, size, folder, bound=()):
        self.device, self.size, self.folder = device, size, folder
        self.bound = range(size) if bound is True else bound
        self._processes, self._pipes = [], []
        self._numbers = itertools.count()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self.kill()

    def __call__(self, program, *arguments, limit=LIMIT, **named):
        """Runs a program, which has to succeed on every rank; what each returned, in order."""
        answers = self._run(program, arguments, named, limit)
        failures = [one for one in answers if isinstance(one, Failure)]
        if failures:
            logs = self.logs()
            self.kill()
            raise AssertionError("\n".join([*map(str, failures), logs]))
        return answers

    def logs(self):
        """What the ranks wrote to stdout and stderr since they started."""
        texts = []
        for rank in range(len(self._processes)):
            with contextlib.suppress(FileNotFoundError):
                text = self._log(rank).read_text(errors="replace")
                texts.append(f"-- output of rank {rank}\n{text}" if text else "")
        return "".join(texts)

    def close(self):
        """Ends the ranks as programs end, which destroy their group; fails if one does not."""
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
        end = time.monotonic() + GRACE * 4
        for process in self._processes:
            process.join(max(0, end - time.monotonic()))
        codes = [process.exitcode for process in self._processes]
        stuck = [rank for rank, code in enumerate(codes) if code is None]
        stacks, logs = self._stacks(stuck), self.logs()
        self.kill()
        assert set(codes) <= {0}, f"the ranks ended with {codes}\n{stacks}{logs}"

    def kill(self):
        for process in self._processes:
            process.kill()
            process.join()
        for pipe in self._pipes:
            pipe.close()
        self._processes, self._pipes = [], []

    def _log(self, rank, kind="log"):
        return self.folder / f"{self._store.name}-{rank}.{kind}"

    def _start(self):
        self._store = self.folder / f"store{next(self._numbers)}"
        spawn = multiprocessing.get_context("spawn")
        for rank in range(self.size):
            ours, theirs = spawn.Pipe()
            files = [str(self._store), *(str(self._log(rank, kind)) for kind in ("log", "stacks"))]
            arguments = (theirs, rank, self.size, self.device, rank in self.bound, *files)
            process = spawn.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._pipes.append(ours)

    def _run(self, program, arguments, named, limit):
        if not self._processes:
            self._start()
        for pipe in self._pipes:
            with contextlib.suppress(BrokenPipeError):  # told by its end below
                pipe.send((program, arguments, named))
        end = time.monotonic() + limit
        waiting = dict(enumerate(self._pipes))
        answers = [None] * self.size
        while waiting:
            ready = connection.wait(waiting.values(), max(0, end - time.monotonic()))
            if not ready:
                self._give_up(program, waiting, answers, limit)
            for rank in [rank for rank, pipe in waiting.items() if pipe in ready]:
                del waiting[rank]
                answers[rank] = self._answer(rank)
                if isinstance(answers[rank], Failure):
                    end = min(end, time.monotonic() + GRACE)
        return answers

    def _answer(self, rank):
        try:
            return self._pipes[rank].recv()
        except (EOFError, ConnectionResetError):
            self._processes[rank].join(GRACE)
            code = self._processes[rank].exitcode
            return Failure(rank, ("end",), f"the process ended with {code}", "")

    def _give_up(self, program, waiting, answers, limit):
        stacks, logs = self._stacks(waiting), self.logs()
        self.kill()
        failures = "\n".join(str(one) for one in answers if isinstance(one, Failure))
        test = os.environ.get("PYTEST_CURRENT_TEST", "no test")
        raise AssertionError(
            f"{test}: {program.__name__} does not end on the ranks {sorted(waiting)}, after "
            f"{f'another failed, within {GRACE} s' if failures else f'{limit} s'}\n"
            f"{failures}{stacks}{logs}"
        )

    def _stacks(self, ranks):
        """Where threads of Python are on these ranks, which need not react otherwise."""
        if not hasattr(faulthandler, "register"):
            return ""
        for rank in ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._processes[rank].pid, signal.SIGUSR1)
        time.sleep(0.5 if ranks else 0)
        texts = []
        for rank in ranks:
            with contextlib.suppress(FileNotFoundError):
                text = self._log(rank, "stacks").read_text()
                texts.append(f"-- stacks of rank {rank}\n{text}")
        return "".join(texts)


def device_of(kind, rank):
    """The device of a rank; ranks share devices where there are fewer."""
    if kind == "cpu":
        return torch.device("cpu")
    module = getattr(torch, kind)
    device = torch.device(kind, rank % module.device_count())
    module.set_device(device.index)
    return device


def group_of(kind, bound=False):
    """The backends that a program names for a group of a device; None is PyTorch's own choice.

    For a group with a `device_id`, PyTorch would choose that of the device only.
    """
    if kind == "cpu":
        return "gloo"
    known = torch.distributed.Backend.default_device_backend_map
    return f"cpu:gloo,{kind}:{known[kind]}" if bound else None


def shared_store():
    """What ranks tell each other in; it outlives the group."""
    return torch.distributed.distributed_c10d._get_default_store()


def _serve(pipe, rank, size, kind, bound, store, log, stacks):
    """What the process of a rank does."""
    import torch.distributed as dist

    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    if hasattr(faulthandler, "register"):
        file = open(stacks, "w")  # as long as the process
        faulthandler.register(signal.SIGUSR1, file)
    torch.set_num_threads(1)
    here = Rank(rank, size, device_of(kind, rank))
    dist.init_process_group(
        group_of(kind, bound),
        store=dist.FileStore(store, size),
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=TIMEOUT),
        device_id=here.device if bound else None,
    )
    while (call := pipe.recv()) is not None:
        program, arguments, named = call
        try:
            answer = program(here, *arguments, **named)
        except BaseException as error:  # the test decides what it means
            kinds = tuple(one.__name__ for one in type(error).__mro__)
            answer = Failure(rank, kinds, str(error), traceback.format_exc())
        pipe.send(answer)
    dist.destroy_process_group()
