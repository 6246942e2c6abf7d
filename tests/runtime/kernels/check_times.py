# SPDX-License-Identifier: Apache-2.0
"""Run by pytest in a Python that finds the backend of times/; see test_kernel_times.py."""

import threading
import time

import pytest
import torch
import torch_foo  # noqa: F401

RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])
#: What the kernels take on the device, in milliseconds: see times/kernels.cpp.
LONG = 100
#: What everything else takes together, on a busy machine.
LITTLE = 60


@pytest.fixture(autouse=True)
def fresh():
    torch.foo.synchronize()
    torch.foo.reset_fallback_report()


@pytest.fixture
def x():
    return torch.ones(4, 4, device="foo")


def kernels():
    """Calls and times of kernels, by operator."""
    return {one.operator: (one.calls, one.total_ms) for one in torch.foo.fallback_report().kernels}


def times_of(work):
    torch.foo.synchronize()
    torch.foo.reset_fallback_report()
    with torch.foo.timed_operators():
        result = work()
    return result, kernels()


def is_long(ms, times=1):
    return times * LONG <= ms < times * LONG + LITTLE


def test_without_a_block_kernels_have_no_times(x):
    begun = time.perf_counter()
    y = x.neg()
    assert (time.perf_counter() - begun) * 1000 < LITTLE, "the host has waited"
    with torch.foo.timed_operators():
        pass
    assert kernels() == {}
    assert y.cpu().sum() == -16


def test_the_time_is_the_device_s(x):
    y, found = times_of(lambda: x.neg().neg_())
    calls, ms = found.pop("aten::neg")
    assert calls == 1 and is_long(ms)
    calls, ms = found.pop("aten::neg_")
    assert calls == 1 and is_long(ms)
    assert found == {}
    assert y.cpu().sum() == 16


def test_after_a_block_nobody_waits(x):
    with torch.foo.timed_operators(), torch.foo.timed_operators():
        x.neg()
    begun = time.perf_counter()
    x.neg()
    assert (time.perf_counter() - begun) * 1000 < LITTLE
    assert kernels()["aten::neg"][0] == 1


def test_earlier_work_is_not_the_kernel_s(x):
    """Work that waits on the stream when a kernel is called is not in its time."""
    other = torch.ones(1, device="foo")
    x.neg()
    with torch.foo.timed_operators():
        torch.ops.foo.quick(other)
    calls, ms = kernels()["foo::quick.now"]
    assert calls == 1 and ms < LITTLE
    assert other.item() == 1


def test_a_kernel_in_a_kernel_counts_once(x):
    y, found = times_of(lambda: x.exp())
    assert set(found) == {"aten::exp", "aten::neg"}
    assert is_long(found["aten::neg"][1])
    assert is_long(found["aten::exp"][1], 2)
    (copy,) = torch.foo.fallback_report().copies
    assert (copy.way, copy.calls, copy.bytes_copied) == ("within a device", 1, 64)
    assert y.cpu().sum() == -16


def test_a_kernel_that_leaves_a_call_to_the_fallback(x):
    """The fallback's time is not the kernel's too."""
    begun = time.perf_counter()
    y, found = times_of(lambda: x.tanh())
    passed = (time.perf_counter() - begun) * 1000
    report = torch.foo.fallback_report()
    assert [row.operator for row in report.rows] == ["aten::tanh.out"]
    assert is_long(found["aten::tanh"][1])
    assert found["aten::tanh"][1] + report.rows[0].total_ms < passed
    torch.testing.assert_close(y.cpu(), torch.ones(4, 4).tanh())


def test_a_dtype_that_the_kernel_does_not_compute(x):
    """The kernel's function was not called, but the fallback."""
    for dtype in (torch.float64, torch.int64):
        value = x.to(dtype)
        y, _ = times_of(lambda value=value: value.sin())
        report = torch.foo.fallback_report()
        assert [row.operator for row in report.rows] == ["aten::sin"]
        assert sum(row.total_ms for row in report.kernels) < LITTLE
        torch.testing.assert_close(y.cpu(), torch.ones(4, 4, dtype=dtype).sin())


def test_a_kernel_that_fails_does_not_count(x):
    with torch.foo.timed_operators():
        with pytest.raises(RuntimeError, match="this kernel fails"):
            x.relu()
        x.neg()
    assert set(kernels()) == {"aten::neg"}
    assert is_long(kernels()["aten::neg"][1])


def test_on_the_stream_that_is_current(x):
    stream = torch.Stream(device="foo")
    torch.foo.synchronize()
    with torch.foo.stream(stream):
        y, found = times_of(lambda: x.neg())
    assert is_long(found["aten::neg"][1])
    assert stream.query()


def test_on_another_device():
    x = torch.ones(2, device="foo:1")
    torch.foo.synchronize("foo:1")
    y, found = times_of(lambda: x.neg())
    assert is_long(found["aten::neg"][1])
    assert torch.foo.current_device() == 0


def test_in_autograd_s_threads(x):
    x.requires_grad_()
    y = x.neg()
    _, found = times_of(lambda: y.backward(torch.ones_like(y)))
    assert found["aten::neg"][0] == 1 and is_long(found["aten::neg"][1])
    assert x.grad.cpu().sum() == -16


def test_in_threads():
    """A block of one thread times the kernels of all; their times add up."""

    def work():
        torch.ones(2, device="foo").neg()

    threads = [threading.Thread(target=work) for _ in range(4)]
    with torch.foo.timed_operators():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    calls, ms = kernels()["aten::neg"]
    # They share a stream, so each may wait for the work of the others.
    assert calls == 4 and 4 * LONG <= ms < 5 * 4 * LONG


def test_a_report_within_a_block(x):
    with torch.foo.timed_operators():
        x.neg()
        torch.foo.reset_fallback_report()
        assert kernels() == {}
        x.neg()
        report = torch.foo.fallback_report()
    assert [one.calls for one in report.kernels] == [1]
    assert LONG <= report.timed_ms <= report.span_ms


@pytest.mark.skipif(RELEASE < (2, 12), reason="PyTorch has no graphs before 2.12")
def test_what_a_graph_records_has_no_time(x):
    stream, graph = torch.Stream(device="foo"), torch.accelerator.Graph()
    y = torch.empty_like(x)
    torch.foo.synchronize()
    with torch.foo.timed_operators(), torch.foo.stream(stream), graph:
        torch.neg(x, out=y)
        y.copy_(y.neg())
    torch.foo.synchronize()
    report = torch.foo.fallback_report()
    assert (report.kernels, report.copies) == ([], [])
    with torch.foo.stream(stream):
        graph.replay()
    torch.foo.synchronize()
    assert y.cpu().sum() == 16


def test_in_a_compiled_function(x):
    def function(value):
        with torch.foo.timed_operators():
            return value.neg()

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager")
    assert compiled(x).cpu().sum() == -16
    assert kernels()["aten::neg"][0] >= 1
    before = kernels()
    x.neg()
    assert kernels() == before


def test_the_page_has_the_kernels(x, tmp_path):
    times_of(lambda: (x.neg(), torch.ops.foo.quick(x), x.cpu()))
    report = torch.foo.fallback_report()
    report.to_html(tmp_path / "times.html")
    text = (tmp_path / "times.html").read_text()
    for name in ("aten::neg", "foo::quick.now", "copy device to host"):
        assert f"<code>{name}</code>" in text
    assert "Kernels were timed for" in text
