# SPDX-License-Identifier: Apache-2.0
"""What becomes of the faults of a Runtime, one by one; see test_faults.py, which runs this file.

Copies are late where a test says so, so that memory which is freed too early is seen: by
AddressSanitizer, and by who looks whether it is still there.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path

import cases
import pytest
import torch
from cases import calls, failing

COUNT = 20_000
#: Longer than a late copy takes.
LONG = 0.1


class Buffer(bytearray):
    """Memory that a weak reference can tell of."""


@pytest.fixture(autouse=True)
def right_again() -> None:
    """After each test the device computes as ever."""
    yield
    torch.foo.set_device(0)
    torch.foo.synchronize()
    assert cases.run_program() == []


def run_program(program: str, faults: dict[str, str], output: str) -> None:
    """Runs a program; what it prints goes to a file."""
    os.environ["FOO_FAULTS"] = ",".join(f"{function}={what}" for function, what in faults.items())
    with open(output, "w") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    warnings.simplefilter("always")
    exec(program, {"torch": torch, "cases": cases})
    sys.stdout.flush()


@pytest.fixture(scope="session")
def server() -> multiprocessing.context.ForkServerContext:
    """Forks processes that have imported everything, but have not used the device."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["check_driver"])
    return context


@pytest.fixture
def run(
    server: multiprocessing.context.ForkServerContext, tmp_path: Path
) -> Callable[..., list[str]]:
    """Runs a program whose Runtime has faults from the start; what it prints."""

    def start(program: str, **faults: str) -> list[str]:
        output = tmp_path / "output"
        process = server.Process(target=run_program, args=(program, faults, str(output)))
        process.start()
        process.join(120)
        process.kill()
        process.join()
        text = output.read_text(errors="replace")
        assert process.exitcode == 0, text
        return text.splitlines()

    return start


# What is thrown.


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        ("std", RuntimeError, "foo::Runtime::synchronize failed on foo:1: injected into synch"),
        ("c10", NotImplementedError, "injected into synchronize (foo::Runtime::synchronize failed"),
        ("other", RuntimeError, "on foo:1: it threw foo::Status, which is not a std::exception"),
        ("number", RuntimeError, "on foo:1: it threw the number 7"),
        ("silent", RuntimeError, "on foo:1: it threw std::runtime_error without a message"),
        ("bytes", RuntimeError, "injected into synchronize \ufffd\ufffd"),
    ],
)
def test_what_is_thrown_is_an_error_that_names_the_function(
    what: str, kind: type[Exception], text: str
) -> None:
    torch.ones(1, device="foo:1")  # else there is nothing to wait for
    with failing(synchronize=what), pytest.raises(kind) as raised:
        torch.foo.synchronize(1)
    assert text in str(raised.value)
    assert "foo::Runtime::synchronize failed on foo:1" in str(raised.value)


# What is returned.


def test_a_device_that_there_is_not_is_not_the_current_one() -> None:
    wrong = "foo::Runtime::current_device returned 1000, which is not the index of one of 2 devices"
    with failing(current_device="garbage"), pytest.raises(RuntimeError, match=wrong):
        torch.ones(2, device="foo")


def test_no_event() -> None:
    event = torch.Event("foo")
    with failing(create_event="null"), pytest.raises(RuntimeError, match="returned null for foo:0"):
        event.record()
    event.record()
    event.synchronize()


def test_a_time_that_is_no_number() -> None:
    with failing(elapsed_ms="garbage"), pytest.raises(RuntimeError, match="elapsed_ms returned"):
        cases.elapsed()


def test_more_is_free_than_there_is() -> None:
    wrong = "memory_info returned 2 free bytes of 1 for foo:0"
    with failing(memory_info="garbage"), pytest.raises(RuntimeError, match=wrong):
        torch.foo.mem_get_info()


@pytest.mark.parametrize("pinned", [False, True], ids=["allocate", "allocate_host"])
def test_memory_that_was_given_before(pinned: bool) -> None:
    def make() -> torch.Tensor:
        count = 3_000_000 + 100_000 * len(tensors)  # with a segment of its own
        return torch.empty(count).pin_memory("foo") if pinned else torch.empty(count, device="foo")

    tensors: list[torch.Tensor] = []
    tensors.append(make())
    with failing(allocate="garbage", allocate_host="garbage"):
        with pytest.raises(
            RuntimeError, match="memory that overlaps memory that is already allocated"
        ):
            make()
    del tensors[0]
    tensors.append(make())


def test_a_name_in_no_utf_8(run: Callable[..., list[str]]) -> None:
    program = "print(ascii(torch.foo.get_device_name()), torch.foo.get_device_properties(1).major)"
    lines = run(program, properties="bytes in the name")
    assert lines == [ascii("foo \ufffd \u00e9") + " 1"]


def test_metadata_in_no_utf_8() -> None:
    with failing(save_metadata="garbage"), pytest.raises(RuntimeError, match="save_metadata"):
        cases.saved()


def test_all_memory_counts_as_pinned() -> None:
    """The allocator knows which memory it has to keep, whatever the driver says."""
    with failing(is_host_pointer="garbage", gate="on"):
        there = torch.arange(COUNT).to("foo", non_blocking=True)
        torch.zeros(COUNT)
    assert torch.equal(there.cpu(), torch.arange(COUNT))


# What is asked once.


def test_devices_are_counted_once() -> None:
    for _ in range(3):
        assert torch.foo.device_count() == 2
        torch.ones(2, device="foo:1")
    assert calls("device_count") == 1


def test_properties_are_asked_once_for_each_device() -> None:
    for _ in range(3):
        assert torch.foo.get_device_properties(0) == torch.foo.get_device_properties(1)
    assert calls("properties") == 2


def test_threads_that_ask_at_once_ask_once(run: Callable[..., list[str]]) -> None:
    assert run(
        """
import threading
def ask():
    barrier.wait()
    counts.append((torch.foo.device_count(), torch.foo.get_device_name()))
barrier, counts = threading.Barrier(8), []
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(set(counts), cases.calls("device_count"), cases.calls("properties"))
""",
        device_count="slow",
        properties="slow",
    ) == ["{(2, 'foo simulator')} 1 1"]


def test_a_child_that_is_forked_while_devices_are_counted(
    run: Callable[..., list[str]],
) -> None:
    assert run(
        """
import os, threading, time
thread = threading.Thread(target=torch.foo.device_count)
thread.start()
while cases.calls("device_count") == 0:
    time.sleep(0.01)
child = os.fork()
if child == 0:
    cases.fault("device_count")
    print(torch.foo.device_count(), torch.ones(2, device="foo").sum().item(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
thread.join()
print(torch.foo.device_count())
""",
        device_count="very slow",
    ) == ["2 2.0", "2"]


@pytest.mark.parametrize(
    ("what", "cause"),
    [
        ("std", "foo::Runtime::device_count failed: injected into device_count"),
        ("other", "foo::Runtime::device_count failed: it threw foo::Status"),
        ("garbage", "foo::Runtime::device_count returned -1"),
        ("null", "its driver finds no device"),
    ],
)
def test_devices_that_cannot_be_counted(
    run: Callable[..., list[str]], what: str, cause: str
) -> None:
    """Everything goes on without the device, also in children; its use names the cause."""
    lines = run(
        """
import os, sys
print(torch.foo.device_count(), torch.foo.is_available(), torch.ones(2).sum().item(), flush=True)
child = os.fork()
if child:  # one after the other: lines of two processes at once run into each other
    os.waitpid(child, 0)
for use in (lambda: torch.ones(1, device="foo"), lambda: torch.ones(1).to("foo:0"),
            lambda: torch.foo.set_device(0), lambda: torch.Stream(device="foo:0").query()):
    try:
        use()
    except RuntimeError as error:
        print(str(error).splitlines()[0], flush=True)
if child == 0:
    os._exit(0)
""",
        device_count=what,
    )
    assert lines[0] == "0 False 2.0"
    told = [line for line in lines[1:] if line]
    assert len(told) == 8
    count = "device_count() is 0"  # what PyTorch calls past Python says of a driver without devices
    assert [line for line in told if cause not in line and count not in line] == []
    assert sum(cause in line for line in told) >= 4


def test_more_devices_than_pytorch_can_count(run: Callable[..., list[str]]) -> None:
    lines = run("print(torch.foo.device_count(), torch.foo.device_count())", device_count="many")
    warning = "found 200 foo devices, but PyTorch supports only 127: the others cannot be used"
    assert sum(warning in line for line in lines) == 1
    assert "127 127" in lines


# What must not be thrown.


@pytest.mark.parametrize("what", ["std", "other"])
@pytest.mark.parametrize("function", ["destroy_event", "deallocate", "deallocate_host"])
def test_what_cannot_be_thrown_is_a_warning(function: str, what: str) -> None:
    torch.foo.empty_cache()
    with failing(**{function: what}), cases.Told() as told:
        cases.USES[function][0]()
    assert f"foo::Runtime::{function} failed" in told.text


# Errors of a program's work that come where nothing can be thrown.


def record_event() -> torch.Event:
    event = torch.Event(device="foo")
    event.record()
    return event


def destroy_a_graph(source: torch.Tensor, wait: Callable[[], None]) -> None:
    graph = torch.accelerator.Graph()
    with torch.Stream(device="foo"):
        with graph:
            kept = source.clone()
        graph.replay()
    with failing(synchronize="once"):
        del graph, kept
        gc.collect()
    wait()


def profile(source: torch.Tensor, wait: Callable[[], None]) -> None:
    with failing(synchronize_event="once"):
        with torch.profiler.profile():
            source.clone()
            wait()


WAITS = {
    "the device": lambda event: torch.foo.synchronize(),
    "a stream": lambda event: torch.foo.current_stream().synchronize(),
    "an event": lambda event: event.synchronize(),
    "a copy": lambda event: torch.ones(2, device="foo").tolist(),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
@pytest.mark.parametrize("work", [destroy_a_graph, profile])
def test_an_error_of_work_that_nobody_waited_for_is_told_by_the_next_wait(
    work: Callable[[torch.Tensor, Callable[[], None]], None],
    wait: Callable[[torch.Event], object],
) -> None:
    def fails() -> None:
        with pytest.raises(RuntimeError, match="foo::Runtime::synchronize(_event)? failed"):
            wait(event)

    source, event = torch.ones(3_000_000).to("foo"), record_event()
    torch.foo.synchronize()
    torch.foo.empty_cache()
    before = torch.foo.memory_reserved()
    with cases.Told():
        work(source, fails)
    wait(event)
    torch.foo.empty_cache()
    assert torch.foo.memory_reserved() == before


# Memory in flight.


def into_a_column(rows: int) -> Callable[[torch.Tensor], object]:
    def work(there: torch.Tensor) -> object:
        return there[: 4 * rows].view(rows, 4)[:, 1].copy_(torch.ones(rows))

    return work


COPIES = {
    "to the host": lambda there: there.cpu(),
    "from the host": lambda there: there.copy_(torch.ones(COUNT)),
    "other dtype": lambda there: there.copy_(torch.ones(COUNT, dtype=torch.float64)),
    "few runs": into_a_column(50),
    "many runs": into_a_column(3000),
    "one number": lambda there: there[5].item(),
    "to an operator": lambda there: torch.lgamma(there),
    "from an operator": lambda there: torch.eye(150, device=there.device),
    "in place": lambda there: there.lgamma_(),
    "to a device": lambda there: there.to("foo:1"),
}
FAULTS = {
    "the wait": {"synchronize_stream": "std"},
    "the wait in other words": {"synchronize_stream": "other"},
    "the copy": {"copy": "late"},
    "both": {"copy": "late", "synchronize_stream": "std"},
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_memory_of_the_host_outlives_work_that_fails(
    copy: Callable[[torch.Tensor], object], faults: dict[str, str]
) -> None:
    there = torch.ones(COUNT, device="foo")
    torch.foo.synchronize()
    with failing(gate="on", can_access_peer="null", **faults), cases.Told():
        with pytest.raises(RuntimeError, match="foo::Runtime::(copy|synchronize_stream) failed"):
            copy(there)
        gc.collect()
        time.sleep(LONG)


@pytest.mark.parametrize("release", ["the stream", "the device", "the next copy"])
@pytest.mark.parametrize("to_host", [True, False])
def test_it_is_there_until_a_wait_succeeds(to_host: bool, release: str) -> None:
    there = torch.ones(COUNT, device="foo")
    torch.foo.synchronize()
    buffer = Buffer(4 * COUNT)
    host = torch.frombuffer(buffer, dtype=torch.float32)
    kept = weakref.ref(buffer)
    with failing(gate="on", synchronize_stream="std"), cases.Told():
        with pytest.raises(RuntimeError, match="synchronize_stream"):
            host.copy_(there) if to_host else there.copy_(host)
    del host, buffer
    gc.collect()
    assert kept() is not None
    if release == "the device":
        torch.foo.synchronize(1)
        assert kept() is not None
        torch.foo.synchronize(0)
    elif release == "the stream":
        torch.foo.default_stream(0).synchronize()
    else:
        there.cpu()
    gc.collect()
    assert kept() is None


def test_a_wait_that_began_before_does_not_release_it() -> None:
    """It returns when the earlier work has completed, and the later copy still goes on."""
    there = torch.ones(COUNT, device="foo")
    pinned = torch.ones(COUNT).pin_memory("foo")
    torch.foo.synchronize()
    buffer = Buffer(4 * COUNT)
    host = torch.frombuffer(buffer, dtype=torch.float32)
    kept = weakref.ref(buffer)
    before = calls("synchronize_stream")
    waiting = threading.Thread(target=torch.foo.default_stream(0).synchronize)
    with failing(gate="on"), cases.Told():
        for _ in range(5):
            there.copy_(pinned, non_blocking=True)
        waiting.start()
        while calls("synchronize_stream") == before:
            time.sleep(0.001)
        time.sleep(0.01)  # it chooses what to do after it counts
        with failing(synchronize_stream="std"), pytest.raises(RuntimeError):
            host.copy_(there)
    del host, buffer
    waiting.join()
    gc.collect()
    assert kept() is not None
    torch.foo.synchronize()
    gc.collect()
    assert kept() is None


def test_it_keeps_its_size_meanwhile() -> None:
    there, host = torch.ones(COUNT, device="foo"), torch.empty(COUNT)
    with failing(gate="on", synchronize_stream="std"), cases.Told():
        with pytest.raises(RuntimeError, match="synchronize_stream"):
            host.copy_(there)
        with pytest.raises(RuntimeError, match="not resizable"):
            host.resize_(100 * COUNT)
    torch.foo.synchronize()
    assert host.resize_(100 * COUNT)[:COUNT].sum().item() == COUNT


@pytest.mark.parametrize("wait", ["", "std"], ids=["waits", "cannot wait"])
@pytest.mark.parametrize("what", ["late", "and the next event"])
def test_memory_of_another_device_is_not_given_out(what: str, wait: str) -> None:
    """A copy to it goes on though the call failed; the next tensor there is not overwritten."""
    source = torch.ones(COUNT, device="foo:0")
    torch.empty(COUNT, device="foo:1")
    torch.foo.synchronize(0)
    told = "foo::Runtime::(copy_peer|record_event) failed"
    with cases.Told():  # which takes longer, when it ends, than the copy
        with failing(gate="on", copy_peer=what, synchronize_stream=wait, record_event=""):
            with pytest.raises(RuntimeError, match=told):
                source.to("foo:1")
        following = torch.zeros(COUNT, device="foo:1")
    time.sleep(LONG)
    assert following.sum().item() == 0


# The end.


def test_nothing_is_given_back_at_the_end() -> None:
    program = """
import torch, torch_foo
class Keeper: pass
keeper = Keeper()
keeper.myself = keeper
keeper.all = [torch.ones(9, device="foo"), torch.ones(9).pin_memory("foo"), torch.Event("foo")]
stream, event, tensor = torch.Stream(device="foo"), torch.Event("foo"), torch.ones(9, device="foo")
event.record(stream)
tensor.record_stream(stream)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "FOO_FAULTS": "report=end"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "deallocate 0, deallocate_host 0\n")


# Threads of PyTorch's.


def test_backward_on_a_device_that_cannot_be_current(run: Callable[..., list[str]]) -> None:
    """Autograd's thread makes its device current where nobody would see an exception."""
    lines = run(
        """
loss = torch.ones(2, device="foo:1", requires_grad=True).sum()
gradient = torch.ones((), device="foo:1")  # one made by backward() would fail in this thread
cases.fault("set_device", "std")
try:
    loss.backward(gradient)
except RuntimeError as error:
    print(str(error).splitlines()[0])
cases.fault("set_device")
weight = torch.ones(2, device="foo:1", requires_grad=True)
weight.sum().backward()
print(weight.grad.tolist())
"""
    )
    assert "[1.0, 1.0]" in lines
    assert any("foo::Runtime::set_device failed on foo:1" in line for line in lines)


def test_threads_while_a_function_fails() -> None:
    def work() -> None:
        for _ in range(20):
            for step in (cases.fall_back, cases.use_streams):
                try:
                    step()
                except RuntimeError as error:
                    if "foo::Runtime::" not in str(error):
                        unexpected.append(error)

    unexpected: list[Exception] = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    with cases.Told():
        for thread in threads:
            thread.start()
        for function in ("synchronize_stream", "record_event", "copy", "current_device"):
            with failing(**{function: "other"}):
                time.sleep(0.03)
        for thread in threads:
            thread.join()
    assert unexpected == []
