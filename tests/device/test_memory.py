# SPDX-License-Identifier: Apache-2.0
"""The memory of the device: what is cached, counted, limited and shown."""

import gc
import pickle

import pytest
import torch
from stream_tools import in_threads, on

MIB = 1 << 20
FIGURES = (
    "allocation segment active inactive_split allocated_bytes reserved_bytes active_bytes "
    "inactive_split_bytes requested_bytes"
).split()

needs_accelerator_memory = pytest.mark.skipif(
    not hasattr(getattr(torch, "accelerator", None), "memory_stats"),
    reason="torch.accelerator has no memory functions in this release",
)


def filling(module, device):
    """Tensors where other tests' tensors leave room in their segments; new ones get others."""
    tensors = []
    for size in (2 * MIB, 1):
        reserved = module.memory_reserved(device)
        while reserved and module.memory_reserved(device) == reserved:
            tensors.append(torch.empty(size, dtype=torch.uint8, device=device))
        del tensors[len(tensors) - (reserved > 0) :]
        module.empty_cache()
    return tensors


@pytest.fixture(autouse=True)
def nothing_cached(module, device):
    gc.collect()
    module.init()
    for index in range(module.device_count()):
        module.synchronize(index)
    module.empty_cache()
    filled = [filling(module, torch.device(device.type, i)) for i in range(module.device_count())]
    for index in range(module.device_count()):
        module.reset_peak_memory_stats(index)
        module.reset_accumulated_memory_stats(index)
    yield
    del filled
    for index in range(module.device_count()):
        if module.get_per_process_memory_fraction(index) != 1:
            module.set_per_process_memory_fraction(1.0, index)


def test_what_tensors_have_is_counted(module, device):
    before = module.memory_allocated()
    tensor = torch.empty(3 * MIB, dtype=torch.uint8, device=device)
    assert module.memory_allocated() - before == 3 * MIB
    small = torch.empty(1, device=device)
    assert module.memory_allocated() - before == 3 * MIB + 512
    stats = module.memory_stats()
    assert stats["requested_bytes.all.allocated"] == 3 * MIB + 4
    assert stats["allocation.large_pool.allocated"] == 1
    assert stats["allocation.small_pool.allocated"] == 1
    del tensor, small
    assert module.memory_allocated() == before
    assert module.max_memory_allocated() - before == 3 * MIB + 512
    torch.empty(1, device=device)
    assert module.max_memory_allocated() - before == 3 * MIB + 512


def test_statistics_have_pytorch_s_names(module, device):
    torch.empty(1, device=device)
    names = set(module.memory_stats())
    expected = {
        f"{figure}.{pool}.{kind}"
        for figure in FIGURES
        for pool in ("all", "small_pool", "large_pool")
        for kind in ("current", "peak", "allocated", "freed")
    }
    assert expected <= names
    assert {"num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free"} <= names
    nested = module.memory_stats_as_nested_dict()
    assert nested["segment"]["all"]["peak"] == module.memory_stats()["segment.all.peak"]


def test_freed_memory_is_given_to_the_next_tensor(module, device):
    place = torch.empty(5 * MIB, dtype=torch.uint8, device=device).data_ptr()
    calls = module.memory_stats()["num_device_alloc"]
    for _ in range(50):
        tensor = torch.empty(5 * MIB, dtype=torch.uint8, device=device)
        assert tensor.data_ptr() == place
        del tensor
    assert module.memory_stats()["num_device_alloc"] == calls


def test_two_tensors_never_share_memory(device):
    held = [torch.full((1 + 37 * i,), float(i)).to(device) for i in range(200)]
    del held[::3]
    held += [torch.full((1 + 53 * i,), -float(i)).to(device) for i in range(200)]
    spans = sorted((one.data_ptr(), one.data_ptr() + one.nbytes) for one in held)
    assert all(end <= begin for (_, end), (begin, _) in zip(spans, spans[1:]))
    assert all(len(one.cpu().unique()) == 1 for one in held)


def test_empty_cache_gives_memory_back(module, device):
    reserved = module.memory_reserved()
    tensor = torch.empty(64 * MIB, dtype=torch.uint8, device=device)
    assert module.memory_reserved() - reserved == 64 * MIB
    del tensor
    assert module.memory_reserved() - reserved == 64 * MIB
    module.empty_cache()
    assert module.memory_reserved() == reserved
    assert module.max_memory_reserved() - reserved == 64 * MIB


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)], ids=str)
def test_neighbours_that_are_free_are_one(module, device, order):
    """Else a segment that was cut is never whole again, and never given back."""
    reserved = module.memory_reserved()
    held = {number: torch.empty(1000, device=device) for number in range(3)}
    assert module.memory_reserved() > reserved
    for number in order:
        del held[number]
    assert module.memory_stats()["inactive_split.all.current"] == 0
    module.empty_cache()
    assert module.memory_reserved() == reserved


@pytest.mark.needs("memory_info")
def test_the_driver_s_memory(module, device):
    """Of all processes: others may use the device meanwhile, so figures are not exact."""
    free, total = module.mem_get_info()
    assert 0 < free <= total
    tensor = torch.empty(256 * MIB, dtype=torch.uint8, device=device)
    assert module.mem_get_info()[1] == total
    held = module.mem_get_info()[0]
    assert free - 384 * MIB < held < free - 128 * MIB
    del tensor
    assert module.mem_get_info()[0] - held < 128 * MIB
    module.empty_cache()
    assert module.mem_get_info()[0] - held > 128 * MIB


def test_peaks_and_sums_are_reset(module, device):
    torch.empty(8 * MIB, dtype=torch.uint8, device=device)
    assert module.max_memory_allocated() >= 8 * MIB
    module.reset_peak_memory_stats()
    module.reset_accumulated_memory_stats()
    assert module.max_memory_allocated() == module.memory_allocated()
    assert module.memory_stats()["allocated_bytes.all.freed"] == 0


def test_each_device_has_its_own(module, device, other):
    here, there = module.memory_allocated(device), module.memory_allocated(other)
    tensor = torch.empty(MIB, dtype=torch.uint8, device=other)
    assert module.memory_allocated(device) == here
    assert module.memory_allocated(other) == there + MIB
    assert module.memory_allocated(str(other)) == module.memory_allocated(other.index)
    del tensor


def text_of(size):
    """As PyTorch writes it."""
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:.2f} KiB" if size < MIB else f"{size / MIB:.2f} MiB"


@pytest.mark.needs("memory_info")
def test_a_fraction_of_the_memory(module, device, name, display_name):
    _, total = module.mem_get_info()
    module.set_per_process_memory_fraction(64 * MIB / total)
    assert module.get_per_process_memory_fraction() == 64 * MIB / total
    held = torch.empty(40 * MIB, dtype=torch.uint8, device=device)
    with pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(32 * MIB, dtype=torch.uint8, device=device)
    text = str(caught.value)
    told = f"{display_name} out of memory. Tried to allocate 32.00 MiB. {name}:0 has a total"
    assert told in text
    assert "64.00 MiB allowed." in text
    allocated, reserved = module.memory_allocated(), module.memory_reserved()
    told = f"{text_of(allocated)} is allocated by PyTorch, and {text_of(reserved - allocated)}"
    assert f"Of the allocated memory {told}" in text
    assert module.memory_stats()["num_ooms"] == 1
    del held
    # What is cached is given back before there is no more.
    assert torch.empty(50 * MIB, dtype=torch.uint8, device=device).numel() == 50 * MIB
    assert module.memory_stats()["num_alloc_retries"] == 2
    assert module.memory_stats()["num_ooms"] == 1
    for wrong in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="the memory fraction must be from 0 to 1"):
            module.set_per_process_memory_fraction(wrong)


@pytest.mark.needs("memory_info")
def test_a_result_that_finds_no_memory_leaves_its_tensor_alone(module, device):
    values, out = torch.ones(8 * MIB, device=device), torch.empty(0, device=device)
    module.set_per_process_memory_fraction(40 * MIB / module.mem_get_info()[1])
    with pytest.raises(module.OutOfMemoryError):
        torch.cumsum(values, 0, out=out)
    assert out.shape == (0,) and out.cpu().tolist() == []


@pytest.mark.skipif(
    not hasattr(getattr(torch, "accelerator", None), "empty_host_cache"),
    reason="torch.accelerator has no empty_host_cache in this release",
)
def test_the_host_s_cache_is_emptied_whether_there_is_one_or_not(device):
    tensor = torch.ones(3, device=device)
    torch.accelerator.empty_host_cache()
    torch.accelerator.empty_cache()
    assert tensor.cpu().tolist() == [1, 1, 1]


def test_after_out_of_memory_work_goes_on(module, device):
    tensor = torch.arange(1000.0, device=device)
    for _ in range(3):
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(1 << 60, dtype=torch.uint8, device=device)
    assert torch.equal((tensor + 1).cpu(), torch.arange(1000.0) + 1)


@pytest.mark.skipif(
    not hasattr(getattr(torch, "accelerator", None), "get_memory_info"),
    reason="torch.accelerator has no get_memory_info in this release",
)
@pytest.mark.needs("memory_info")
def test_torch_accelerator_says_the_same_of_the_driver_s_memory(module, device):
    (free, total), (ours, all_of_it) = torch.accelerator.get_memory_info(), module.mem_get_info()
    assert total == all_of_it
    assert abs(free - ours) < 64 * MIB


@needs_accelerator_memory
def test_torch_accelerator_says_the_same(module, device, other):
    held = torch.empty(7 * MIB, dtype=torch.uint8, device=device)
    theirs = torch.accelerator.memory_stats()
    ours = module.memory_stats()
    assert {name: theirs[name] for name in ours if "." in name} == {
        name: figure for name, figure in ours.items() if "." in name
    }
    assert torch.accelerator.memory_allocated(other) == module.memory_allocated(other)
    assert torch.accelerator.max_memory_reserved() == module.max_memory_reserved()
    del held
    torch.accelerator.empty_cache()
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.reset_accumulated_memory_stats()
    assert module.max_memory_allocated() == module.memory_allocated()


def test_a_snapshot_shows_every_block(module, device, other):
    held = [torch.empty(size, dtype=torch.uint8, device=device) for size in (100, 3 * MIB, 700)]
    there = torch.empty(10, device=other)
    snapshot = module.memory_snapshot()
    for index in (device.index, other.index):
        mine = [segment for segment in snapshot if segment["device"] == index]
        assert sum(one["total_size"] for one in mine) == module.memory_reserved(index)
        assert sum(one["allocated_size"] for one in mine) == module.memory_allocated(index)
    blocks = {
        block["address"]: (segment, block) for segment in snapshot for block in segment["blocks"]
    }
    for tensor in [*held, there]:
        segment, block = blocks[tensor.data_ptr()]
        assert block["state"] == "active_allocated"
        assert block["requested_size"] == tensor.nbytes
        assert segment["device"] == tensor.device.index
    for segment in snapshot:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
    assert module.memory_snapshot(other) == [
        one for one in snapshot if one["device"] == other.index
    ]


def test_pytorch_s_viewer_reads_a_snapshot(module, device, tmp_path):
    from torch.cuda import _memory_viz

    module.memory._record_memory_history()
    try:
        held = torch.empty(3 * MIB, dtype=torch.uint8, device=device)
        torch.empty(100, device=device)
        file = tmp_path / "snapshot.pickle"
        module.memory._dump_snapshot(str(file))
    finally:
        module.memory._record_memory_history(None)
    with open(file, "rb") as opened:
        snapshot = pickle.load(opened)
    actions = [event["action"] for event in snapshot["device_traces"][0]]
    assert actions == ["segment_alloc", "alloc"] * 2 + ["free_requested", "free_completed"]
    assert snapshot["device_traces"][0][1]["addr"] == held.data_ptr()
    sizes = [one["size"] for one in snapshot["device_traces"][0] if "segment" not in one["action"]]
    assert sizes == [held.nbytes, 400, 400, 400]  # what was asked for, not the blocks
    assert not any(module.memory._snapshot()["device_traces"])
    for draw in (_memory_viz.segsum, _memory_viz.trace):
        assert draw(snapshot)
    for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        assert "<html>" in plot(snapshot) or "<script" in plot(snapshot)


@pytest.mark.needs("memory_info")
def test_pytorch_s_viewer_reads_an_out_of_memory(module, device):
    from torch.cuda import _memory_viz

    module.memory._record_memory_history(
        context=None, stacks="python", device=device, clear_history=True
    )
    try:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(1 << 50, dtype=torch.uint8, device=device)
        snapshot = module.memory._snapshot()
    finally:
        module.memory._record_memory_history(None)
    (event,) = [one for one in snapshot["device_traces"][0] if one["action"] == "oom"]
    assert event["size"] == 1 << 50 and "addr" not in event
    assert event["device_free"] == module.mem_get_info()[0]
    assert "OutOfMemoryError" in _memory_viz.trace(snapshot)


def test_a_summary(module, device, name):
    held = torch.empty(3 * MIB, dtype=torch.uint8, device=device)
    text = module.memory_summary()
    assert text.startswith(f"{name}:0, 0 times out of memory")
    assert "large pool" in text
    assert "large pool" not in module.memory_summary(abbreviated=True)
    assert len({len(line) for line in text.splitlines()[1:]}) == 1
    del held


def test_the_index_of_a_device_is_checked(module, beyond):
    for function in (
        module.memory_stats,
        module.memory_allocated,
        module.mem_get_info,
        module.reset_peak_memory_stats,
        module.memory_snapshot,
        module.get_per_process_memory_fraction,
    ):
        with pytest.raises(ValueError, match="there is no device"):
            function(beyond)


@pytest.mark.needs("events")
def test_memory_that_another_stream_uses_is_kept(device, streams, work):
    """The block goes to nobody while the other stream's work, which reads it, is not done."""
    producer, consumer = streams
    with on(producer):
        source = torch.arange(1000.0).to(device)
    with on(consumer):
        target = torch.zeros(1000, device=device)
        consumer.synchronize()
        work(consumer)
        target.copy_(source)
    source.record_stream(consumer)
    place = source.data_ptr()
    del source
    with on(producer):
        others = [torch.full((1000,), -1.0).to(device) for _ in range(5)]
        assert not consumer.query()
        assert place not in [one.data_ptr() for one in others]
    with on(consumer):
        assert torch.equal(target.cpu(), torch.arange(1000.0))
    with on(producer):
        torch.empty(1, device=device)
        assert torch.empty(1000, device=device).data_ptr() == place


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)], ids=["up", "down"])
def test_blocks_belong_to_their_stream(device, streams, order):
    mine, another = sorted(streams, key=lambda stream: stream.stream_id)[order]
    with on(mine):
        place = torch.empty(1000, device=device).data_ptr()
    with on(another):
        assert torch.empty(1000, device=device).data_ptr() != place
    with on(mine):
        assert torch.empty(1000, device=device).data_ptr() == place


def test_threads_share_the_allocator(module, device):
    before = module.memory_allocated()

    def run(number):
        held = []
        for step in range(200):
            held.append(torch.full((1 + 97 * ((number + step) % 13),), float(number)).to(device))
            if step % 3 == 0:
                tensor = held.pop(step % len(held))
                assert tensor.cpu().unique().tolist() == [float(number)]
        assert all(one.cpu().unique().tolist() == [float(number)] for one in held)

    in_threads(run)
    gc.collect()
    assert module.memory_allocated() == before
