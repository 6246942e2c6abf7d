# SPDX-License-Identifier: Apache-2.0
"""torch.accelerator.Graph: work that a stream records, and runs again."""

import threading
import warnings

import pytest
import torch
from backend import RELEASE
from stream_tools import on

pytestmark = [
    pytest.mark.needs("graphs"),
    pytest.mark.skipif(RELEASE < (2, 12), reason="PyTorch has no graphs before 2.12"),
]

#: Bytes of a tensor that has a segment of its own.
LARGE = 64 << 20
REFUSED = "operation not permitted when stream is capturing: a graph cannot have "


@pytest.fixture
def stream(device):
    return torch.Stream(device=device)


@pytest.fixture
def reserved(module):
    """The bytes of the device's memory that are reserved while no tensor of the test is there."""
    torch.accelerator.synchronize()
    torch.accelerator.empty_cache()
    return module.memory_reserved()


def graph_of(stream, work, **options):
    """A graph of what a function does, and the function's result."""
    graph = torch.accelerator.Graph(**options)
    with on(stream), graph:
        result = work()
    return graph, result


def numbers(device, first=0.0):
    return (torch.arange(6.0) + first).to(device)


def test_work_is_recorded_and_not_run(device, stream):
    source, target = numbers(device), torch.zeros(6, device=device)
    torch.accelerator.synchronize()
    graph, _ = graph_of(stream, lambda: target.copy_(source))
    torch.accelerator.synchronize()
    assert target.tolist() == [0] * 6
    with on(stream):
        graph.replay()
        assert target.tolist() == [0, 1, 2, 3, 4, 5]
        source.copy_(numbers(device, 10))
        graph.replay()
    stream.synchronize()
    assert target.tolist() == [10, 11, 12, 13, 14, 15]


@pytest.mark.parametrize("on_device", [False, True])
def test_a_graph_is_recorded_while_a_profile_is(device, stream, on_device):
    """Work that a graph records does not run, so it has no time; the graph is whole."""
    source, target = numbers(device), torch.zeros(6, device=device)
    torch.accelerator.synchronize()
    kinds = [torch.profiler.ProfilerActivity.CPU]
    kinds += [torch.profiler.ProfilerActivity.PrivateUse1] * on_device
    with torch.profiler.profile(activities=kinds) as profile:
        graph, _ = graph_of(stream, lambda: target.copy_(source))
    with on(stream):
        graph.replay()
    stream.synchronize()
    assert target.tolist() == [0, 1, 2, 3, 4, 5]
    assert "aten::copy_" in {row.key for row in profile.key_averages()}


def test_a_graph_runs_on_another_stream_in_its_order(device, stream):
    source, target, last = (torch.zeros(6, device=device) for _ in range(3))
    torch.accelerator.synchronize()
    graph, _ = graph_of(stream, lambda: target.copy_(source))
    other = torch.Stream(device=device)
    with on(other):
        for step in range(1, 20):
            source.copy_(torch.full((6,), float(step)))
            graph.replay()
            last.copy_(target)
            assert last.tolist() == [step] * 6


def test_tensors_of_a_graph_keep_their_memory(device, stream):
    source = numbers(device)
    torch.accelerator.synchronize()

    def work():
        first = source.clone()
        second = first.clone()
        del first  # its memory may be that of the third
        return second.clone()

    graph, result = graph_of(stream, work)
    address = result.data_ptr()
    with on(stream):
        # What others allocate meanwhile, the cache emptied in between, is elsewhere.
        torch.accelerator.empty_cache()
        others = [torch.full((6,), -1.0, device=device) for _ in range(50)]
        graph.replay()
        assert result.tolist() == [0, 1, 2, 3, 4, 5]
        assert all(one.tolist() == [-1] * 6 for one in others)
        source.copy_(numbers(device, 1))
        graph.replay()
        assert result.tolist() == [1, 2, 3, 4, 5, 6]
    assert result.data_ptr() == address


def test_the_memory_goes_back_with_the_graph(device, stream, module, reserved):
    graph, result = graph_of(stream, lambda: torch.empty(LARGE, dtype=torch.uint8, device=device))
    assert module.memory_allocated() >= LARGE
    del result
    torch.accelerator.empty_cache()
    assert module.memory_reserved() >= reserved + LARGE, "a run would write to others' memory"
    with on(stream):
        graph.replay()
    graph.reset()
    assert module.memory_reserved() == reserved
    # The object may record again.
    with on(stream), graph:
        kept = torch.empty(LARGE, dtype=torch.uint8, device=device)
    del graph
    assert module.memory_reserved() >= reserved + LARGE
    del kept
    torch.accelerator.empty_cache()
    assert module.memory_reserved() == reserved


def test_graphs_share_a_pool(device, stream, module, reserved):

    def work():
        torch.empty(LARGE, dtype=torch.uint8, device=device)

    first, _ = graph_of(stream, work)
    second, _ = graph_of(stream, work, pool=first.pool())
    assert first.pool() == second.pool() != graph_of(stream, work)[0].pool()
    torch.accelerator.empty_cache()
    assert module.memory_reserved() == reserved + LARGE
    first.reset()
    assert module.memory_reserved() == reserved + LARGE
    second.reset()
    assert module.memory_reserved() == reserved
    with pytest.raises(ValueError, match="the pool is not one that `Graph.pool` returned"):
        graph_of(stream, work, pool=(3, 4))


CANNOT = {
    "item": lambda x, _: x[0].item(),
    "to the host": lambda x, _: x.cpu(),
    "from the host": lambda x, _: x.copy_(torch.ones(6)),
    "with gaps": lambda x, _: x[::2].copy_(torch.ones(3)),
    "the stream": lambda x, stream: stream.synchronize(),
    "its state": lambda x, stream: stream.query(),
    "the device": lambda x, _: torch.accelerator.synchronize(),
    "an event": lambda x, stream: stream.record_event(),
    "another stream": lambda x, stream: stream.wait_stream(torch.Stream(device=x.device)),
    "a fallback": lambda x, _: torch.linalg.svd(x.view(2, 3)),
    "random": lambda x, _: x.bernoulli_(0.5),
}


@pytest.mark.parametrize("what", CANNOT)
def test_what_cannot_be_recorded(device, stream, what):
    tensor = numbers(device)
    torch.accelerator.synchronize()
    graph = torch.accelerator.Graph()
    with pytest.raises(RuntimeError, match="the graph is not complete: " + REFUSED) as end:
        with on(stream), graph:
            CANNOT[what](tensor, stream)
    assert str(end.value.__context__).startswith(REFUSED)
    with pytest.raises(RuntimeError, match="replay: nothing has been recorded"):
        graph.replay()
    # Nothing of it is left.
    with on(stream):
        CANNOT[what](tensor, stream)
    target = torch.zeros(6, device=device)
    torch.accelerator.synchronize()
    graph, _ = graph_of(stream, lambda: target.copy_(tensor))
    with on(stream):
        graph.replay()
    stream.synchronize()
    assert torch.equal(target.cpu(), tensor.cpu())


def test_an_error_that_the_program_catches_is_raised_at_the_end(device, stream):
    tensor = numbers(device)
    torch.accelerator.synchronize()

    def work():
        with pytest.raises(RuntimeError, match=REFUSED):
            tensor.tolist()

    with pytest.raises(RuntimeError, match="the graph is not complete"):
        graph_of(stream, work)


def test_the_default_stream_is_not_recorded(device):
    with pytest.raises(RuntimeError, match="a graph cannot record the default stream"):
        with torch.accelerator.Graph():
            pass


def test_a_stream_records_one_graph(device, stream):
    first, second = torch.accelerator.Graph(), torch.accelerator.Graph()
    with on(stream), first:
        with pytest.raises(RuntimeError, match="the current stream records another graph"):
            second.capture_begin()
    with on(stream):
        first.replay()
    with pytest.raises(RuntimeError, match="this graph has recorded already"):
        with on(stream), first:
            pass


def test_other_streams_and_threads_go_on(device, stream):
    source, target = numbers(device), torch.zeros(6, device=device)
    torch.accelerator.synchronize()
    seen = []

    def work():
        seen.append((source.cpu() + 1).sum().item())

    def record():
        target.copy_(source)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        with on(torch.Stream(device=device)):
            work()

    graph, _ = graph_of(stream, record)
    assert seen == [21, 21]
    with on(stream):
        graph.replay()
        assert target.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_graph_is_kept_until_the_program_instantiates_it(device, stream):
    source, target = numbers(device), torch.zeros(6, device=device)
    torch.accelerator.synchronize()
    graph, _ = graph_of(stream, lambda: target.copy_(source), keep_graph=True)
    graph.instantiate()
    graph.instantiate()
    with on(stream):
        graph.replay()
        assert target.tolist() == [0, 1, 2, 3, 4, 5]
    graph, _ = graph_of(stream, lambda: target.copy_(source), keep_graph=True)
    with on(stream):
        target.zero_()
        graph.replay()
        assert target.tolist() == [0, 1, 2, 3, 4, 5]


def test_an_object_without_a_graph(device):
    graph = torch.accelerator.Graph()
    for function in (graph.replay, graph.instantiate, graph.capture_end, graph.pool):
        with pytest.raises(RuntimeError, match=f"{function.__name__}: n"):
            function()
    graph.reset()
    with pytest.raises(NotImplementedError, match="debug_dump: the graphs of"):
        graph.debug_dump("graph.dot")


def test_an_object_that_goes_while_it_records(device, stream):
    graph = torch.accelerator.Graph()
    source, target = numbers(device), torch.zeros(6, device=device)
    torch.accelerator.synchronize()
    with on(stream):
        graph.capture_begin()
        target.copy_(source)
        del graph
        target.copy_(source)  # not recorded
    stream.synchronize()
    assert target.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("how", ["with the object", "reset"])
def test_a_graph_goes_while_another_is_recorded(device, stream, module, reserved, how):
    source, target = numbers(device), torch.zeros(6, device=device)
    before = module.memory_reserved()
    graphs = [graph_of(stream, lambda: source.clone().clone())[0]]
    with on(stream):
        graphs[0].replay()

    def record():
        if how == "reset":
            graphs[0].reset()
        graphs.clear()
        target.copy_(source)

    graph, _ = graph_of(stream, record)
    assert module.memory_reserved() == before, "the memory was not given back after the capture"
    with on(stream):
        graph.replay()
        assert target.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "pinned", [False, pytest.param(True, marks=pytest.mark.needs("pinned_memory"))]
)
def test_memory_that_a_stream_used_goes_while_it_records(device, stream, module, pinned):
    source, target = numbers(device), torch.zeros(6, device=device)
    used = torch.arange(6.0).pin_memory() if pinned else numbers(device, 1)
    torch.accelerator.synchronize()
    with on(stream):
        target.copy_(used, non_blocking=True)
    if not pinned:
        used.record_stream(stream)
    tensors = [used]
    del used

    def record():
        tensors.clear()
        target.copy_(source)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "memory is leaked"
        graph, _ = graph_of(stream, record)
    for _ in range(2):  # the allocator records the event now, and finds that it has completed
        numbers(device)
        stream.synchronize()
    now = module.memory_stats()
    assert now["active.all.current"] == now["allocation.all.current"]
    with on(stream):
        graph.replay()
        assert target.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.needs("devices")
def test_graphs_of_each_device(device, other):
    graphs = []
    for place in (device, other):
        with torch.accelerator.device_index(place.index):
            source, target = numbers(place), torch.zeros(6, device=place)
            torch.accelerator.synchronize()
            stream = torch.Stream(device=place)
            graph = graph_of(stream, lambda: target.copy_(source))[0]  # noqa: B023
            graphs.append((graph, target, stream))
    for graph, target, stream in graphs:
        with on(stream):
            graph.replay()
        stream.synchronize()
        assert target.tolist() == [0, 1, 2, 3, 4, 5]
