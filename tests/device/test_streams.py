# SPDX-License-Identifier: Apache-2.0
"""Streams and events: which is current, what waits for what, and how a process ends."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from stream_tools import PRIVATE_USE_ONE, Work, current, in_threads, on, set_current

pytestmark = pytest.mark.needs("streams")
events = pytest.mark.needs("events")

# Which stream is current.


def test_the_default_stream_is_current(device, other):
    for place in (device, other):
        assert current(place).device == place
        assert current(place).stream_id == 0


def test_a_stream_is_current_for_its_device_only(device, other):
    stream = torch.Stream(device=device)
    assert stream.stream_id != 0
    with on(stream):
        assert current(device) == stream
        assert current(other).stream_id == 0
    assert current(device).stream_id == 0


def test_each_device_has_a_current_stream(device, other):
    first, second = torch.Stream(device=device), torch.Stream(device=other)
    with on(first), on(second):
        assert (current(device), current(other)) == (first, second)
    assert current(device).stream_id == current(other).stream_id == 0


@pytest.mark.skipif(
    not hasattr(torch.Stream, "__enter__"),
    reason="torch.Stream is not a context manager in this release",
)
def test_a_stream_as_a_context(device, other, module):
    first, second = torch.Stream(device=device), torch.Stream(device=other)
    with first:
        with second:
            assert module.current_device() == 1
            assert current(other) == second
            assert current(device) == first
        assert module.current_device() == 0
        assert current(other).stream_id == 0
    with pytest.raises(KeyError), first:
        raise KeyError
    assert current(device).stream_id == 0


def test_each_thread_has_its_current_stream(device, streams):
    def run(number):
        assert current(device).stream_id == 0
        mine = torch.Stream(device=device)
        set_current(mine)
        time.sleep(0.01)
        assert current(device) == mine

    with on(streams[0]):
        in_threads(run)
        assert current(device) == streams[0]


# Pools.


def test_a_pool_of_32_streams_is_given_out_in_turn(device):
    ids = [torch.Stream(device=device).stream_id for _ in range(65)]
    assert len(set(ids)) == 32
    assert ids[:32] == ids[32:64]
    assert ids[64] == ids[0]


def test_each_priority_has_its_pool(device):
    pools = [
        {torch.Stream(device=device, priority=priority).stream_id for _ in range(33)}
        for priority in (-1, 0, 1)
    ]
    assert [len(pool) for pool in pools] == [32, 32, 32]
    assert len(set.union(*pools)) == 96
    assert 0 not in set.union(*pools)


def test_a_priority_that_no_pool_has_is_the_nearest(device):
    for extreme in (-(2**31), 2**31 - 1):
        stream = torch.Stream(device=device, priority=extreme)
        torch.zeros(4, device=device)
        stream.synchronize()
        assert stream.query()


def test_each_device_has_its_pools(device, other, work):
    first = torch.Stream(device=device)
    work(first)
    while True:
        second = torch.Stream(device=other)
        if second.stream_id == first.stream_id:
            break
    assert second != first
    assert second.query()
    assert not first.query()


def test_threads_take_streams_at_once(device):
    taken, lock = [], threading.Lock()

    def run(number):
        for _ in range(8):
            stream = torch.Stream(device=device, priority=-2)
            stream.synchronize()
            with lock:
                taken.append(stream.stream_id)

    in_threads(run)
    assert sorted(taken) == sorted(2 * list(set(taken)))
    assert len(set(taken)) == 32


@pytest.mark.parametrize("stream_id", [-1, 1 << 20])
def test_a_stream_that_does_not_exist(device, stream_id):
    bogus = torch.Stream(stream_id=stream_id, device_index=0, device_type=PRIVATE_USE_ONE)
    tensor = torch.zeros(2, device=device)
    for use in (bogus.synchronize, bogus.query, lambda: tensor.record_stream(bogus)):
        with pytest.raises(RuntimeError, match=f"has no stream with id {stream_id}"):
            use()
    with pytest.raises(RuntimeError, match=f"has no stream with id {stream_id}"), on(bogus):
        torch.ones(2).to(device)
    assert torch.ones(2).to(device).sum().item() == 2


@pytest.mark.skipif(
    not hasattr(torch.Stream, "native_handle"),
    reason="torch.Stream has no native_handle in this release",
)
def test_the_driver_s_handle_of_a_stream(device, streams):
    handles = [stream.native_handle for stream in streams]
    assert len(set(handles)) == 2
    assert all(handles)
    assert not current(device).native_handle


# Order.


def test_work_goes_on_after_the_call(streams, work):
    assert streams[0].query()
    work(streams[0])
    assert not streams[0].query()
    streams[0].synchronize()
    assert streams[0].query()


def test_streams_work_at_the_same_time(device, streams, work):
    """A default stream as well as one of a pool."""
    source, target = torch.arange(10, device=device), torch.zeros(10, device=device)
    current(device).synchronize()
    for quick in (streams[1], current(device)):
        work(streams[0])
        with on(quick):
            target.copy_(source)
            result = target.cpu()
        assert not streams[0].query()
        assert result.tolist() == list(range(10))
        streams[0].synchronize()


def test_a_device_is_synchronized_with_all_its_streams(device, other, module, streams, work):
    ways = [module.synchronize]
    if hasattr(torch, "accelerator"):
        ways.append(torch.accelerator.synchronize)
    for synchronize in ways:
        elsewhere = torch.Stream(device=other)
        longer = Work(other, times=1200)
        longer(elsewhere)
        for stream in (*streams, current(device)):
            work(stream)
            assert not stream.query()
            synchronize()
            assert stream.query()
        assert not elsewhere.query()
        elsewhere.synchronize()


def produce_and_consume(device, producer, consumer, wait):
    """Whether what a slow stream wrote is what another one, after `wait()`, read."""
    values = torch.arange(1000.0, device=device)
    written, read = torch.zeros(1000, device=device), torch.zeros(1000, device=device)
    slow = Work(device)
    slow(producer)
    with on(producer):
        written.copy_(values)
    wait()
    with on(consumer):
        read.copy_(written)
        result = read.cpu()
    getattr(torch, device.type).synchronize(device)
    return torch.equal(result, torch.arange(1000.0))


def test_without_a_wait_streams_race(device, streams):
    """Else the tests below would show nothing."""
    assert not produce_and_consume(device, *streams, lambda: None)


@events
def test_wait_stream(device, streams):
    first, second = streams
    assert produce_and_consume(device, first, second, lambda: second.wait_stream(first))


@events
def test_the_default_stream_waits_for_another_and_the_other_way_round(device, streams):
    default = current(device)
    assert produce_and_consume(device, streams[0], default, lambda: default.wait_stream(streams[0]))
    assert produce_and_consume(device, default, streams[0], lambda: streams[0].wait_stream(default))


@events
@pytest.mark.parametrize("way", ["wait_event", "wait", "record_event", "synchronize"])
def test_events_order_streams(device, name, streams, way):
    first, second = streams

    def wait():
        event = torch.Event(device=name)
        if way == "record_event":
            second.wait_event(first.record_event())
            return
        event.record(first)
        assert not event.query()
        if way == "wait_event":
            second.wait_event(event)
        elif way == "wait":
            event.wait(second)
        else:
            event.synchronize()
            assert event.query()

    assert produce_and_consume(device, first, second, wait)


@events
def test_a_blocking_event_is_waited_for(device, name, streams, work):
    event = torch.Event(device=name, blocking=True)
    work(streams[0])
    event.record(streams[0])
    event.synchronize()
    assert event.query()


@events
def test_a_stream_of_another_device_waits(device, other, streams, work):
    there = torch.Stream(device=other)
    work(streams[0])
    event = streams[0].record_event()
    there.wait_event(event)
    assert not event.query()
    there.synchronize()
    assert event.query()


@events
def test_an_event_stands_for_what_was_recorded_last(device, name, streams, work):
    event = torch.Event(device=name)
    assert event.query()
    event.synchronize()
    streams[1].wait_event(event)  # nothing to wait for
    work(streams[0])
    event.record(streams[0])
    streams[1].wait_event(event)
    assert not streams[1].query()
    event.synchronize()
    assert event.query()
    work(streams[0])
    event.record(streams[0])
    assert not event.query()
    event.synchronize()
    assert event.query()


@events
def test_a_stream_waits_for_an_event_that_is_gone(device, streams):
    first, second = streams

    def wait():
        event = first.record_event()
        second.wait_event(event)
        del event

    assert produce_and_consume(device, first, second, wait)


@events
def test_an_event_is_of_one_device(device, other, name):
    event = torch.Event(device=name)
    event.record(torch.Stream(device=device))
    with pytest.raises(RuntimeError, match="device"):
        event.record(torch.Stream(device=other))


@pytest.mark.needs("timing")
def test_time_between_events(name, streams, work):
    stream = streams[0]
    events = [torch.Event(device=name, enable_timing=True) for _ in range(3)]
    begun = time.perf_counter()
    events[0].record(stream)
    work(stream)
    events[1].record(stream)
    work(stream)
    events[2].record(stream)
    with pytest.raises(RuntimeError, match="completed"):
        events[0].elapsed_time(events[2])
    stream.synchronize()
    taken = (time.perf_counter() - begun) * 1000
    first, second, both = (events[a].elapsed_time(events[b]) for a, b in ((0, 1), (1, 2), (0, 2)))
    assert 0 < first < both <= taken
    assert first + second == pytest.approx(both)
    assert events[2].elapsed_time(events[0]) == pytest.approx(-both)


@pytest.mark.needs("timing")
def test_time_is_asked_of_events_that_have_it(name, streams):
    timed, other = (torch.Event(device=name, enable_timing=True) for _ in range(2))
    timed.record(streams[0])
    streams[0].synchronize()
    with pytest.raises((RuntimeError, ValueError), match="recorded|recording"):
        timed.elapsed_time(other)
    untimed = torch.Event(device=name, enable_timing=False)  # until PyTorch 2.7 not the default
    untimed.record(streams[0])
    streams[0].synchronize()
    with pytest.raises((RuntimeError, ValueError), match="enable_timing"):
        timed.elapsed_time(untimed)


# Processes.


def run_python(code):
    folders = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


BUSY = """
import os, torch
from stream_tools import set_current
a, b = (torch.zeros(1 << 20, device="{name}") for _ in range(2))
stream = torch.Stream(device="{name}:0")
event = torch.Event(device="{name}")
set_current(stream)
for _ in range(100):
    a.copy_(b)
event.record(stream)
assert not event.query()
"""


@events
def test_a_process_ends_while_streams_work(name):
    done = run_python(BUSY.format(name=name))
    assert (done.returncode, done.stderr) == (0, "")


@events
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_of_a_process_with_streams(name):
    """It cannot use the device, and it ends as others do."""
    uses = (
        "stream.synchronize() stream.query() event.synchronize() event.query() event.record(stream)"
    )
    # Since Python 3.12 a fork warns where there are threads, as those of the simulator's streams.
    code = BUSY.format(name=name) + (
        "import warnings\n"
        "warnings.filterwarnings('ignore', 'This process .* is multi-threaded')\n"
        "if os.fork() == 0:\n"
        f"    for use in '{uses}'.split():\n"
        "        try:\n"
        "            eval(use)\n"
        "        except RuntimeError as error:\n"
        "            assert 'forked subprocess' in str(error), error\n"
        "        else:\n"
        "            raise AssertionError(use)\n"
        "    del event, a\n"
        "    raise SystemExit(7)\n"
        "assert os.waitstatus_to_exitcode(os.wait()[1]) == 7\n"
        "stream.synchronize()\n"
    )
    done = run_python(code)
    assert (done.returncode, done.stderr) == (0, "")
