# SPDX-License-Identifier: Apache-2.0
"""What the host reads and writes while streams work: it is there, and nobody else's."""

import pytest
import torch
from stream_tools import Work, current, in_threads, on

pytestmark = pytest.mark.needs("streams")


def values(count=1000):
    return torch.arange(float(count))


def last_device(tensor):
    return getattr(torch, tensor.device.type).device_count() - 1


def waited_for(copied, device):
    getattr(torch, device.type).synchronize(device)
    return copied


def test_a_copy_within_the_device_does_not_wait(device, streams, work):
    with on(streams[0]):
        source, target = values().to(device), torch.zeros(1000, device=device)
        work(streams[0])
        target.copy_(source)
        assert not streams[0].query()
        assert torch.equal(target.cpu(), values())


@pytest.mark.parametrize("non_blocking", [False, True])
@pytest.mark.parametrize("kind", ["default", "other"])
def test_memory_of_the_host_may_change_after_a_copy(device, streams, work, kind, non_blocking):
    with on(streams[0] if kind == "other" else current(device)):
        target = torch.zeros(1000, device=device)
        work(current(device))
        source = values()
        target.copy_(source, non_blocking=non_blocking)
        source.zero_()
        assert torch.equal(target.cpu(), values())


@pytest.mark.parametrize(
    "read",
    [
        lambda tensor: tensor.cpu(),
        lambda tensor: torch.empty(1000).copy_(tensor),
        lambda tensor: waited_for(tensor.to("cpu", non_blocking=True), tensor.device),
        lambda tensor: tensor.double().cpu().float(),
        lambda tensor: tensor.view(10, 100).t().contiguous().cpu().t().reshape(-1),
        lambda tensor: torch.tensor([tensor[i].item() for i in range(1000)]),
        lambda tensor: (tensor + 1 - 1).cpu(),
        lambda tensor: -tensor.neg_().cpu(),
        lambda tensor: -torch.neg(tensor, out=torch.empty_like(tensor)).cpu(),
        lambda tensor: torch.stack([tensor, tensor])[1].cpu(),
        lambda tensor: tensor.to(f"{tensor.device.type}:{last_device(tensor)}").cpu(),
        lambda tensor: tensor.resize_(2000)[:1000].cpu(),
    ],
    ids="cpu,copy_,non_blocking,dtype,strided,item,fallback,in_place,out,list,device,resize_".split(
        ","
    ),
)
def test_what_the_host_reads_is_there(device, streams, work, read):
    for stream in (streams[0], current(device)):
        with on(stream):
            source, target = values().to(device), torch.zeros(1000, device=device)
            work(stream)
            target.copy_(source)
            assert torch.equal(read(target), values())


def test_what_the_host_wrote_is_there(device, streams):
    """Results of the fallback, and what it works on in place, before work of the device."""
    with on(streams[0]):
        copies = []
        total = torch.zeros(100, device=device)
        for _ in range(20):
            total.add_(1)
            copies.append(total.clone())
            copies.append((total * 2).clone())
        for step in range(20):
            assert copies[2 * step].cpu().tolist() == [step + 1.0] * 100
            assert copies[2 * step + 1].cpu().tolist() == [2 * step + 2.0] * 100


def test_memory_is_not_given_out_while_work_uses_it(device, streams):
    with on(streams[0]):
        target = torch.zeros(20, 1000, device=device)
        for row in target:
            source = values().to(device)
            row.copy_(source)
            del source
            torch.full((1000,), -1.0).to(device)  # may get the same memory
        assert torch.equal(target.cpu(), values().expand(20, 1000))


@pytest.mark.needs("events")
def test_a_copy_between_devices_waits_for_both(device, other, work):
    here, there = torch.Stream(device=device), torch.Stream(device=other)
    work_there = Work(other)
    made, source = values().to(device), torch.zeros(1000, device=device)
    kept, target = torch.empty(1000, device=other), torch.zeros(1000, device=other)
    with on(here), on(there):
        work(here)
        source.copy_(made)
        work_there(there)
        kept.copy_(target)  # what was there before
        target.copy_(source)
        assert torch.equal(target.cpu(), values())
        assert kept.cpu().tolist() == [0.0] * 1000


@pytest.mark.needs("events")
def test_what_a_stream_uses_is_not_given_out(device, streams, work):
    """`record_stream`, of a tensor that another stream reads than that of its memory."""
    source, target = values().to(device), torch.zeros(1000, device=device)
    work(streams[0])
    with on(streams[0]):
        target.copy_(source)
    source.record_stream(streams[0])
    del source
    others = [torch.full((1000,), -1.0).to(device) for _ in range(5)]
    with on(streams[0]):
        assert torch.equal(target.cpu(), values())
    assert others[0].sum().item() == -1000


def test_a_stream_of_another_kind_is_not_recorded(device):
    cpu = torch.Stream(stream_id=0, device_index=0, device_type=0)
    with pytest.raises(RuntimeError, match="cannot be used on a stream of cpu"):
        torch.ones(4, device=device).record_stream(cpu)


def test_threads_on_streams_of_their_own(device, other):
    def run(number):
        place = (device, other)[number % 2]
        with on(torch.Stream(device=place)):
            source = torch.full((2000,), float(number))
            held = source.to(place)
            for _ in range(30):
                copied = held.clone()
                held = copied + 1
            assert held.cpu().tolist() == [number + 30.0] * 2000

    in_threads(run)


def test_threads_on_one_stream(device, streams):
    def run(number):
        with on(streams[0]):
            for step in range(20):
                tensor = torch.full((500,), float(100 * number + step), device=device)
                assert tensor.clone().clone().cpu().unique().tolist() == [100.0 * number + step]

    in_threads(run)


@pytest.mark.needs("events")
def test_threads_share_an_event(name, streams, work):
    event = torch.Event(device=name)
    work(streams[0])

    def run(number):
        for _ in range(20):
            event.record(streams[number % 2])
            event.wait(streams[(number + 1) % 2])
            event.query()
        event.synchronize()

    in_threads(run)
    for stream in streams:
        stream.synchronize()
    assert event.query()


def test_backward_on_a_stream(device, streams):
    torch.manual_seed(3)
    here = torch.nn.Linear(8, 8)
    inputs = torch.randn(4, 8)
    here(inputs).tanh().sum().backward()
    with on(streams[0]):
        there = torch.nn.Linear(8, 8).to(device)
        there.load_state_dict(here.state_dict())
        there(inputs.to(device)).tanh().sum().backward()
        gradient = there.weight.grad.cpu()
    torch.testing.assert_close(gradient, here.weight.grad)
