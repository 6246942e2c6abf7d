# SPDX-License-Identifier: Apache-2.0
"""Threads that train at once: none waits for another one, as on the CPU."""

import contextlib
import copy
import importlib
import threading
import time

import pytest
import torch
from stream_tools import Work, in_threads, on
from torch import nn
from torch.utils.checkpoint import checkpoint

#: Seconds after which a thread that waits for another one counts as one that never ends.
PATIENCE = 20


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


class Held(torch.autograd.Function):
    """Its backward calls a function in between."""

    @staticmethod
    def forward(ctx, values, call):
        ctx.call = call
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.call()
        return gradient, None


@contextlib.contextmanager
def a_backward_under_way(place):
    """Inside, another thread is in the middle of a backward on a device."""
    begun, release = threading.Event(), threading.Event()
    leaf = torch.ones(2, device=place, requires_grad=True)

    def hold():
        begun.set()
        release.wait()

    thread = threading.Thread(
        target=lambda: Held.apply(leaf * 2, hold).sum().backward(), daemon=True
    )
    thread.start()
    try:
        assert begun.wait(PATIENCE), "it waits for a backward of another thread"
        yield
    finally:
        release.set()
        thread.join(PATIENCE)  # it may wait for one that ends later than this one
    assert leaf.grad.cpu().tolist() == [2.0, 2.0]


def in_time(function):
    """What a function returns, called in a thread that may not wait for one of ours."""
    results, errors = [], []

    def run():
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if errors:
        raise errors[0]
    assert results, "it waits for a backward of another thread"
    return results[0]


def gradients(place):
    model = network().to(place)
    model(torch.linspace(-1, 1, 30).reshape(5, 6).to(place)).square().sum().backward()
    return [one.grad.cpu() for one in model.parameters()]


def thread_of_backward(place):
    """The thread that computes a gradient on a device, and whether hooks there see PyTorch's
    threads switched on."""
    leaf = torch.ones(2, device=place, requires_grad=True)
    seen = []
    leaf.register_hook(
        lambda _: seen.append(
            (threading.get_ident(), torch.autograd.is_multithreading_enabled()),
        )
    )
    (leaf * 2).sum().backward()
    return seen[0]


@pytest.fixture(params=["cpu", "device"])
def place(request):
    return torch.device("cpu") if request.param == "cpu" else request.getfixturevalue("device")


def test_a_backward_does_not_wait_for_that_of_another_thread(place):
    expected = gradients("cpu")
    with a_backward_under_way(place):
        for _ in range(3):
            for ours, theirs in zip(in_time(lambda: gradients(place)), expected):
                torch.testing.assert_close(ours, theirs)


def test_several_backwards_are_under_way_at_once(place):
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(a_backward_under_way(place))


def test_gradients_that_are_returned_do_not_wait_either(place):
    def second():
        values = torch.ones(3, device=place, requires_grad=True)
        (first,) = torch.autograd.grad((values**3).sum(), values, create_graph=True)
        return torch.autograd.grad(first.sum(), values)[0].cpu().tolist()

    with a_backward_under_way(place):
        assert in_time(second) == [6.0] * 3


def test_a_backward_inside_a_backward_does_not_wait(place):
    def checkpointed():
        values = torch.ones(3, device=place, requires_grad=True)
        checkpoint(torch.sin, values * 2, use_reentrant=True).sum().backward()
        return values.grad.cpu()

    with a_backward_under_way(place):
        torch.testing.assert_close(in_time(checkpointed), 2 * torch.full((3,), 2.0).cos())


def test_a_backward_through_two_devices_does_not_wait(device, other):
    def run():
        leaf = torch.ones(3, device=device, requires_grad=True)
        ((leaf * 2).to(other) * 5).sum().backward()
        return leaf.grad.cpu().tolist()

    with a_backward_under_way(device), a_backward_under_way(other):
        assert in_time(run) == [10.0] * 3


def test_an_error_lets_the_next_backward_run(device):
    def broken():
        raise KeyError("broken on purpose")

    def fail():
        leaf = torch.ones(2, device=device, requires_grad=True)
        with pytest.raises(KeyError, match="broken on purpose"):
            Held.apply(leaf, broken).sum().backward()
        return True

    before = thread_of_backward(device)
    with a_backward_under_way(device):
        assert in_time(lambda: fail() and fail())
    assert fail()
    assert thread_of_backward(device) == before


def test_of_one_thread_pytorch_runs_backward_as_ever(device):
    """In the thread of the device; what the program says of threads is heeded."""

    def run():
        seen = thread_of_backward(device)
        return threading.get_ident(), seen, torch.autograd.is_multithreading_enabled()

    own, first, enabled = run()
    assert first[0] != own
    assert first[1] and enabled
    assert run() == (own, first, True)
    with a_backward_under_way(device):
        another, seen, enabled = in_time(run)
    assert seen == (another, False)
    assert enabled
    assert run() == (own, first, True)
    with torch.autograd.set_multithreading_enabled(False):
        assert run() == (own, (own, False), False)


def test_the_engine_is_still_pytorch_s(device):
    torch.ones(1, device=device)
    engine = torch.autograd.Variable._execution_engine
    assert isinstance(engine, torch._C._ImperativeEngine)
    called = []
    leaf = torch.ones(1, device=device, requires_grad=True)
    leaf.register_hook(lambda _: engine.queue_callback(lambda: called.append(True)))
    (leaf * 2).sum().backward()
    assert called == [True]
    assert engine.is_checkpoint_valid()


@pytest.mark.needs("events")
def test_threads_train_on_streams_of_their_own(device):
    """Each beside the same training on the CPU."""
    data = torch.linspace(-1, 1, 60).reshape(10, 6)

    def train(model, batch, steps):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
        return [one.detach().cpu() for one in model.parameters()]

    first = network()
    expected = {steps: train(copy.deepcopy(first), data, steps) for steps in range(5, 13)}

    def work(number):
        with on(torch.Stream(device=device)):
            model = copy.deepcopy(first).to(device)
            trained = train(model, data.to(device), 5 + number)
        for ours, theirs in zip(trained, expected[5 + number]):
            torch.testing.assert_close(ours, theirs)

    in_threads(work)


def runs_meanwhile(wait, stream):
    """Whether this thread runs while another one is in `wait()`, on a stream that is busy."""
    begun = threading.Event()

    def run():
        with on(stream):
            begun.set()
            wait()

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    time.sleep(0.02)  # until it waits
    ran = not stream.query()
    thread.join()
    return ran


@pytest.mark.parametrize(
    "way",
    [
        "device",
        "stream",
        pytest.param("event", marks=pytest.mark.needs("events")),
        "item",
        "copy",
        "empty_cache",
    ],
)
def test_a_thread_that_waits_lets_others_run(device, module, streams, way):
    """It does not keep Python's lock."""
    stream, one = streams[0], torch.ones(1, device=device)
    work = Work(device, times=600)
    for _ in range(5):  # this thread may get the processor too late
        work(stream)
        wait = {
            "device": lambda: module.synchronize(device),
            "stream": stream.synchronize,
            "event": lambda: stream.record_event().synchronize(),
            "item": one.item,
            "copy": one.cpu,
            "empty_cache": module.empty_cache,
        }[way]
        if runs_meanwhile(wait, stream):
            return
        stream.synchronize()
    raise AssertionError("no other thread ran")


def test_dynamo_does_not_trace_how_backward_is_called(device, monkeypatch):
    """Between two graphs; nor does it where PyTorch's own engine is called."""
    variable = torch.autograd.Variable
    dynamo = importlib.import_module("torch._dynamo")

    def frames():
        dynamo.reset()
        dynamo.utils.counters.clear()
        leaf = torch.ones(3, device=device, requires_grad=True)

        def step(values):
            (values * 2).sum().backward()
            return values.grad + 1

        assert torch.compile(step, backend="eager")(leaf).cpu().tolist() == [3.0] * 3
        dynamo.reset()
        return dict(dynamo.utils.counters["frames"])

    ours = frames()
    assert ours["ok"]
    monkeypatch.setattr(variable, "_execution_engine", variable._execution_engine.pytorch)
    assert ours == frames()
