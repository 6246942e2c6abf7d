# SPDX-License-Identifier: Apache-2.0
"""What is done with a device while a function of its Runtime fails, and what came of it.

Runs in a process that has the backend of project.py; torch is imported, the device is not in use.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import itertools
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist
import torch_foo

(_PATH,) = Path(torch_foo.__file__).parent.glob("lib/*/*torch_foo.*")
_LIBRARY = ctypes.CDLL(str(_PATH))
#: Elements of what has no room in the segments that a program has.
LARGE = 600_000


_TIMES = itertools.count()


def fault(function: str, what: str = "") -> None:
    """Has a function fail from now on in one of the ways of faulty.cpp, or none."""
    _LIBRARY.foo_fault(function.encode(), what.encode())


def calls(function: str) -> int:
    return _LIBRARY.foo_calls(function.encode())


@contextlib.contextmanager
def failing(**faults: str) -> Iterator[None]:
    for function, what in faults.items():
        fault(function, what)
    try:
        yield
    finally:
        for function in faults:
            fault(function)


def recorded(stream: object = None, timing: bool = False) -> torch.Event:
    event = torch.Event("foo", enable_timing=timing)
    event.record(*([] if stream is None else [stream]))
    return event


def elapsed() -> float:
    first, last = recorded(timing=True), recorded(timing=True)
    last.synchronize()
    return first.elapsed_time(last)


def forget_event() -> None:
    recorded().synchronize()


def give_memory_back() -> None:
    torch.empty(LARGE, device="foo")
    torch.foo.empty_cache()


def give_pinned_memory_back() -> None:
    """Two segments that are free go back to the driver before one that needs both is added."""
    count = int(
        3_000_000 * 2.1 ** next(_TIMES)
    )  # with a segment of its own, larger than those before
    tensors = [torch.empty(count).pin_memory("foo") for _ in range(2)]
    tensors.clear()
    torch.empty(2 * count - 200_000).pin_memory("foo")


def run_a_graph() -> list[int]:
    """And destroys it."""
    source, target = torch.arange(3).to("foo"), torch.zeros(3, dtype=torch.int64).to("foo")
    graph = torch.accelerator.Graph()
    with torch.Stream(device="foo"):
        with graph:
            target.copy_(source)
        graph.replay()
        result = target.tolist()
        graph.reset()
    return result


def transposed() -> list[list[int]]:
    return torch.arange(4).to("foo").view(2, 2).t().contiguous().tolist()


def saved() -> io.BytesIO:
    file = io.BytesIO()
    torch.save(torch.arange(3.0).to("foo"), file)
    file.seek(0)
    return file


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """A process group of this process only."""
    dist.init_process_group("fooccl", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


def in_a_group(collective: Callable[[torch.Tensor], object]) -> list[int]:
    with alone():
        tensor = torch.ones(2).to("foo")
        collective(tensor)
        return tensor.tolist()


def lost_in_a_group() -> list[int]:
    """The watcher finds work that has not completed, and so asks the driver."""
    fault("gate", "on")
    try:
        return in_a_group(dist.all_reduce)
    finally:
        fault("gate")


def aborted_in_a_group() -> None:
    fault("communicator_error", "garbage")
    try:
        lost_in_a_group()
    except RuntimeError as error:
        if "rank 7" not in str(error):
            raise
    finally:
        fault("communicator_error")


def exchanged(tensor: torch.Tensor) -> None:
    dist.all_to_all_single(tensor, tensor.clone())


#: A use of each function, and what it returns where nothing fails, if that can be told.
USES: dict[str, tuple[Callable[[], object], object]] = {
    "device_count": (lambda: torch.ones(2, device="foo").tolist(), [1, 1]),
    "current_device": (lambda: torch.ones(2, device="foo").tolist(), [1, 1]),
    "set_device": (lambda: torch.foo.set_device(1), None),
    "allocate": (lambda: torch.ones(LARGE, device="foo")[:2].tolist(), [1, 1]),
    "deallocate": (give_memory_back, None),
    "copy": (lambda: torch.arange(3).to("foo").tolist(), [0, 1, 2]),
    "synchronize": (lambda: torch.foo.synchronize(), None),
    "create_stream": (lambda: torch.Stream(device="foo", priority=-2).query(), True),
    "synchronize_stream": (lambda: torch.Stream(device="foo").synchronize(), None),
    "query_stream": (lambda: torch.Stream(device="foo").query(), True),
    "create_event": (lambda: recorded().wait(), None),
    "destroy_event": (forget_event, None),
    "record_event": (lambda: recorded().wait(), None),
    "wait_event": (lambda: torch.Stream(device="foo").wait_event(recorded()), None),
    "query_event": (lambda: recorded().query() in (True, False), True),
    "synchronize_event": (lambda: recorded().synchronize(), None),
    "elapsed_ms": (lambda: elapsed() >= 0, True),
    "memory_info": (lambda: torch.foo.mem_get_info()[0] > 0, True),
    "allocate_host": (lambda: torch.ones(LARGE).pin_memory("foo")[:2].tolist(), [1, 1]),
    "deallocate_host": (give_pinned_memory_back, None),
    "is_host_pointer": (lambda: torch.ones(3).pin_memory("foo").is_pinned("foo"), True),
    "can_access_peer": (lambda: torch.foo.can_device_access_peer(0, 1), True),
    "copy_peer": (lambda: torch.ones(2, device="foo").to("foo:1").tolist(), [1, 1]),
    "begin_capture": (run_a_graph, [0, 1, 2]),
    "end_capture": (run_a_graph, [0, 1, 2]),
    "instantiate_graph": (run_a_graph, [0, 1, 2]),
    "replay_graph": (run_a_graph, [0, 1, 2]),
    "destroy_graph": (run_a_graph, [0, 1, 2]),
    "communicator_id": (lambda: in_a_group(dist.all_reduce), [1, 1]),
    "create_communicator": (lambda: in_a_group(dist.all_reduce), [1, 1]),
    "destroy_communicator": (lambda: in_a_group(dist.all_reduce), [1, 1]),
    "abort_communicator": (aborted_in_a_group, None),
    "communicator_error": (lost_in_a_group, [1, 1]),
    "all_reduce": (lambda: in_a_group(dist.all_reduce), [1, 1]),
    "reduce_scatter": (
        lambda: in_a_group(lambda x: dist.reduce_scatter_tensor(x, x.clone())),
        [1, 1],
    ),
    "all_gather": (
        lambda: in_a_group(lambda x: dist.all_gather_into_tensor(x, x.clone())),
        [1, 1],
    ),
    "broadcast": (lambda: in_a_group(lambda x: dist.broadcast(x, 0)), [1, 1]),
    "send": (lambda: in_a_group(exchanged), [1, 1]),
    "recv": (lambda: in_a_group(exchanged), [1, 1]),
    "begin_group": (lambda: in_a_group(exchanged), [1, 1]),
    "end_group": (lambda: in_a_group(exchanged), [1, 1]),
    "copy_elements": (transposed, [[0, 2], [1, 3]]),
    "properties": (lambda: torch.foo.get_device_name(0), "foo simulator"),
    "save_metadata": (lambda: saved().readable(), True),
    "load_metadata": (lambda: torch.load(saved()).tolist(), [0, 1, 2]),
}


def fall_back() -> None:
    one = torch.arange(1000.0).to("foo")
    assert torch.equal((one + 1).cpu(), torch.arange(1000.0) + 1)


def write_columns() -> None:
    for rows in (50, 3000):
        target = torch.zeros(rows, 4, device="foo")
        target[:, 1].copy_(torch.ones(rows))
        assert target.sum().item() == rows


def use_streams() -> None:
    side, target = torch.Stream(device="foo"), torch.zeros(1000, device="foo")
    with torch.foo.stream(side):
        target.copy_(torch.ones(1000, device="foo"))
    target.record_stream(side)
    recorded(side).wait(torch.Stream(device="foo"))
    side.synchronize()
    del target
    torch.empty(1000, device="foo")


def train() -> None:
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 4)
    data = torch.randn(2, 4)
    model(data).sum().backward()
    expected = model.weight.grad.clone()
    weight = model.weight.detach().to("foo").requires_grad_()
    torch.nn.functional.linear(data.to("foo"), weight).sum().backward()
    assert torch.allclose(weight.grad.cpu(), expected)


def use_two_devices() -> None:
    there = torch.arange(1000).to("foo:0").to("foo:1")
    assert torch.equal(there.cpu(), torch.arange(1000))


def copy_in_the_background() -> None:
    pinned = torch.arange(1000).pin_memory("foo")
    there = pinned.to("foo", non_blocking=True)
    del pinned
    assert torch.equal(there.cpu(), torch.arange(1000))
    torch.ones(1000).pin_memory("foo")


#: What a program does with a device.
PROGRAM = (
    fall_back,
    write_columns,
    use_streams,
    train,
    use_two_devices,
    copy_in_the_background,
    elapsed,
    lambda: torch.randn(10, device="foo").sum().item(),
    lambda: torch.load(saved()),
    lambda: torch.foo.mem_get_info(),
    lambda: torch.foo.get_device_name(),
    lambda: torch.foo.synchronize(),
    lambda: torch.foo.empty_cache(),
    lambda: torch.foo.set_device(1),
    lambda: torch.foo.set_device(0),
)


class Told:
    """What was said on stderr and as warnings while a block ran."""

    def __enter__(self) -> Told:
        self.text = ""
        self._warnings = warnings.catch_warnings(record=True)
        self._list = self._warnings.__enter__()
        warnings.simplefilter("always")
        sys.stderr.flush()
        self._stderr, self._file = os.dup(2), tempfile.TemporaryFile()
        os.dup2(self._file.fileno(), 2)
        return self

    def __exit__(self, *_: object) -> None:
        gc.collect()
        sys.stderr.flush()
        os.dup2(self._stderr, 2)
        os.close(self._stderr)
        self._warnings.__exit__(None, None, None)
        self._file.seek(0)
        said = [self._file.read().decode(errors="replace"), *(str(w.message) for w in self._list)]
        self.text = "\n".join(said).strip()


def judge(function: str, use: Callable[[], object], expected: object) -> tuple[str, str]:
    """What came of a use, in one of the words of the page, and the text that the user gets."""
    before = calls(function)
    with Told() as told:
        begun = time.perf_counter()
        try:
            result = use()
            text = None
        except Exception as error:
            text, kind = str(error), type(error)
        taken = time.perf_counter() - begun
    name = f"foo::Runtime::{function}"
    if text is not None and name in text:
        return ("error" if issubclass(kind, RuntimeError) else kind.__name__), text
    if text is not None and issubclass(kind, torch.OutOfMemoryError):
        return "out of memory", text
    if text is not None and text.endswith("its driver finds no device"):
        return "no device", text
    if text is not None:
        return f"{kind.__name__} without a name", text
    if name in told.text:
        return "warning", told.text
    if expected is not None and result != expected:
        return f"{result!r}", told.text
    # A busy machine can make any use slow, so the function must have been called as well.
    waited = calls(function) > before and taken > 0.05
    return ("waits" if waited else "right"), told.text


def run_program() -> list[str]:
    """The errors of a program whose steps fail one by one."""
    errors = []
    for step in PROGRAM:
        try:
            step()
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
    return errors


def run_case(function: str, what: str, later: bool) -> dict[str, object]:
    """Uses the device while a function fails from the start, or after it was in use; and after."""
    if later:
        assert run_program() == []
    fault(function, what)
    use, expected = USES[function]
    outcome, text = judge(function, use, expected)
    if outcome == "waits" and what != "slow":  # to make a process group takes as long
        outcome = "right"
    with Told() as told:
        errors = [] if what == "slow" else run_program()
    counted = calls(function)
    fault(function)
    names = (f"foo::Runtime::{function} ", "OutOfMemoryError: ")
    unnamed = [error for error in errors if not any(name in error for name in names)]
    after = run_program()
    with contextlib.suppress(RuntimeError):
        torch.foo.synchronize()
    return {
        "outcome": outcome,
        "text": text,
        "unnamed": unnamed,
        "said": told.text,
        "calls": counted,
        "after": after,
    }
