# SPDX-License-Identifier: Apache-2.0
"""Several devices: what they are, copies between them, and work that goes over both."""

import copy
import threading

import numpy as np
import pytest
import torch
from stream_tools import Work, in_threads, on

ATTRIBUTES = ("name", "total_memory", "multi_processor_count", "major", "minor")


def synchronize(module):
    for index in range(module.device_count()):
        module.synchronize(index)


@pytest.mark.needs("properties", "memory_info")
def test_properties(module):
    for index in range(module.device_count()):
        properties = module.get_device_properties(index)
        assert properties._fields == ATTRIBUTES
        assert isinstance(properties, module.DeviceProperties)
        assert properties.name and properties.name == module.get_device_name(index)
        assert (properties.major, properties.minor) == module.get_device_capability(index)
        assert properties.total_memory == module.mem_get_info(index)[1]
        assert all(isinstance(number, int) and number >= 0 for number in properties[1:])


@pytest.mark.needs("properties")
def test_properties_of_the_current_device(module, other):
    with module.device(other):
        assert module.get_device_properties() == module.get_device_properties(1)
        assert module.get_device_properties(other) == module.get_device_properties(1)
    assert module.get_device_name(torch.device(other.type)) == module.get_device_name(0)


@pytest.mark.parametrize(
    "ask",
    [
        "get_device_properties",
        "get_device_name",
        "get_device_capability",
        "set_device",
        "synchronize",
        "mem_get_info",
        "memory_stats",
        "current_stream",
        "get_rng_state",
    ],
)
@pytest.mark.parametrize("index", [2, 127, 128, 255, 256, 257, -2])
def test_an_index_out_of_range_is_never_another_device(module, beyond, ask, index):
    index = index if index < 0 else max(index, beyond)
    module.init()  # before that statistics are empty
    if ask == "set_device" and index < 0:
        module.set_device(index)  # as torch.cuda.set_device does
    else:
        with pytest.raises((ValueError, RuntimeError), match=f"{index}\\b"):
            getattr(module, ask)(index)
    assert module.current_device() == 0


@pytest.mark.parametrize("index", [2, 3, 100, 127])
def test_tensors_on_a_device_that_is_not_there(module, name, beyond, index):
    index = max(index, beyond)
    place = torch.device(name, index)
    for make in (
        lambda: torch.empty(2, device=place),
        lambda: torch.ones(2, device=place),
        lambda: torch.ones(2).to(place),
        lambda: torch.ones(2, device=name).to(place),
        lambda: torch.randn(2, device=place),
        lambda: torch.empty_strided((2, 2), (1, 2), device=place),
        lambda: torch.nn.Linear(2, 2).to(place),
    ):
        with pytest.raises(RuntimeError, match=f"{index}\\b.*(out of range|{name} device)"):
            make()
    assert module.current_device() == 0


@pytest.mark.needs("streams")
def test_streams_of_a_device_that_is_not_there(name, beyond):
    with pytest.raises(RuntimeError, match=f"{beyond}\\b.*(out of range|{name} device)"):
        torch.Stream(device=torch.device(name, beyond))


def test_the_index_of_a_name_is_pytorch_s(name):
    """PyTorch keeps an index in eight bits, for every device alike, before a backend sees it."""
    for written in (f"{name}:128", f"{name}:200"):
        with pytest.raises(RuntimeError, match="out of range|[Dd]evice index"):
            torch.ones(1, device=written)
    for index in (255, 256):
        assert torch.device(f"{name}:{index}").index == torch.device(f"cuda:{index}").index


def test_a_device_reaches_its_peers(module, other, beyond):
    assert module.can_device_access_peer(0, 1) == module.can_device_access_peer(1, 0)
    assert not module.can_device_access_peer(0, 0)
    assert module.can_device_access_peer(0, other) == module.can_device_access_peer(0, 1)
    with pytest.raises((ValueError, RuntimeError), match=f"{beyond}"):
        module.can_device_access_peer(0, beyond)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.complex64])
@pytest.mark.parametrize("size", [0, 1, 7, 1 << 20])
def test_copies_between_devices(device, other, dtype, size):
    values = torch.arange(size).to(dtype)
    there = values.to(device).to(other)
    assert there.device == other
    assert torch.equal(there.cpu(), values)
    back = torch.zeros(size, dtype=dtype, device=device)
    back.copy_(there, non_blocking=True)
    assert torch.equal(back.cpu(), values)


@pytest.mark.parametrize(
    "make", [lambda t: t.t(), lambda t: t[:, 1:3], lambda t: t[1:2].expand(5, 4)]
)
def test_views_between_devices(device, other, make):
    values = torch.arange(20.0).reshape(5, 4)
    view = make(values.to(device)).to(other)
    assert torch.equal(view.cpu(), make(values))
    target = torch.zeros(5, 4, device=other)
    if make(target).shape == make(values).shape and 0 not in make(target).stride():
        make(target).copy_(make(values.to(device)))
        assert torch.equal(make(target).cpu(), make(values))


def test_bits_between_devices(device, other):
    values = torch.randn(4, dtype=torch.complex64)
    assert torch.equal(values.to(device).conj().to(other).cpu(), values.conj().resolve_conj())
    imaginary = values.to(device).conj().imag
    assert torch.equal(imaginary.to(other).cpu(), values.conj().imag.resolve_neg())


def test_a_copy_waits_for_what_the_source_s_stream_has_to_do(device, other, work, module):
    source = torch.zeros(1 << 18, device=device)
    ones = torch.ones(1 << 18, device=device)
    target = torch.zeros(1 << 18, device=other)
    synchronize(module)
    stream = torch.Stream(device=device)
    work(stream)
    with on(stream):
        source.copy_(ones)
        target.copy_(source, non_blocking=True)
    assert target.sum().item() == 1 << 18


@pytest.mark.needs("streams")
def test_a_copy_waits_for_what_the_target_s_stream_has_to_do(device, other, module):
    source = torch.ones(1 << 18, device=device)
    zeros = torch.zeros(1 << 18, device=other)
    target = torch.empty(1 << 18, device=other)
    stream, busy = torch.Stream(device=other), Work(other)
    synchronize(module)
    busy(stream)
    with on(stream):
        target.copy_(zeros)
        with module.device(device):
            target.copy_(source, non_blocking=True)
        assert target.sum().item() == 1 << 18


def test_the_target_s_stream_waits_for_a_copy(device, other, work, module):
    source, target = torch.ones(1 << 18, device=device), torch.zeros(1 << 18, device=other)
    result = torch.zeros(1 << 18, device=other)
    synchronize(module)
    stream = torch.Stream(device=device)
    work(stream)
    with on(stream):
        target.copy_(source, non_blocking=True)
    result.copy_(target)
    assert result.sum().item() == 1 << 18


def test_a_source_that_is_freed_is_not_used_again_before_it_is_copied(device, other, module):
    size = 1 << 20
    targets = []
    for number in range(20):
        source = torch.full((size,), float(number), device=device)
        targets.append(source.to(other, non_blocking=True))
        del source
        torch.full((size,), -1.0, device=device)
    assert [int(target.sum().item()) for target in targets] == [size * n for n in range(20)]


def test_copies_both_ways_at_once(device, other):
    def work(number):
        here, there = (device, other) if number % 2 else (other, device)
        values = torch.full((5000,), float(number))
        tensor = values.to(here)
        for _ in range(20):
            tensor = tensor.to(there).to(here)
        assert torch.equal(tensor.cpu(), values)

    in_threads(work)


def test_operators_refuse_tensors_of_two_devices(device, other):
    left, right = torch.ones(2, device=device), torch.ones(2, device=other)
    for compute in (lambda: left + right, lambda: torch.cat([left, right]), lambda: left @ right):
        with pytest.raises(RuntimeError, match="same device"):
            compute()


def test_an_operator_leaves_the_current_device_alone(module, other):
    tensor = torch.randn(3, 3, device=other)
    (tensor @ tensor).relu().sum().item()
    torch.linalg.svd(tensor)
    assert module.current_device() == 0
    with module.device(1):
        assert torch.ones(2, device="cpu").to(other.type).device == other


def test_a_model_over_two_devices(device, other):
    """Forward and backward go from one device to the other and back."""
    torch.manual_seed(0)
    here = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    there = copy.deepcopy(here)
    first, second = there[:2].to(device), there[2:].to(other)
    inputs = torch.randn(6, 4)
    for _ in range(3):
        loss = here(inputs).square().sum()
        loss.backward()
        result = second(first(inputs.to(device)).to(other)).square().sum()
        result.backward()
        torch.testing.assert_close(result.cpu(), loss)
        for one, two in zip(here.parameters(), there.parameters()):
            torch.testing.assert_close(two.grad.cpu(), one.grad)
            assert two.grad.device == two.device
    assert {str(parameter.device) for parameter in there.parameters()} == {str(device), str(other)}


def test_gradients_of_two_devices_in_threads(device, other):
    def work(number):
        place = device if number % 2 else other
        for _ in range(5):
            leaf = torch.full((10,), float(number), device=place, requires_grad=True)
            (leaf * leaf).sum().backward()
            assert leaf.grad.device == place
            assert leaf.grad.cpu().tolist() == [2.0 * number] * 10

    in_threads(work)


def test_a_thread_that_begins_is_on_the_first_device(module, other):
    module.set_device(1)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(module.current_device()))
    thread.start()
    thread.join()
    assert seen == [0]


@pytest.mark.parametrize("wrong", [1.0, "cpu", [0], {}], ids=repr)
def test_what_is_no_device_is_refused(module, name, wrong):
    for function in (module.set_device, module.synchronize, module.current_stream):
        with pytest.raises(ValueError, match=f"expected a {name} device"):
            function(wrong)


def test_an_index_of_numpy(module, other):
    module.set_device(np.int64(1))
    assert module.current_device() == 1


def test_device_of(module, device, other):
    tensor = torch.ones(1, device=other)
    with module.device_of(tensor):
        assert module.current_device() == 1
        with module.device_of(torch.ones(1)):
            assert module.current_device() == 1
    assert module.current_device() == 0


def test_contexts_in_a_generator(module, other):
    """A context that is left later than one outside restores what it found."""

    def numbers():
        with module.device(1):
            yield module.current_device()
        yield module.current_device()

    assert list(numbers()) == [1, 0]


def test_the_host_s_addresses_are_not_the_device_s(device):
    tensor = torch.zeros(4, device=device)
    assert isinstance(tensor.data_ptr(), int) and tensor.data_ptr() != 0
    assert tensor[1:].data_ptr() == tensor.data_ptr() + 4
    with pytest.raises(TypeError, match="[Cc]an't convert"):
        tensor.numpy()


@pytest.mark.skipif(
    not hasattr(getattr(torch, "accelerator", None), "get_device_capability"),
    reason="torch.accelerator has no get_device_capability in this release",
)
def test_tensors_have_any_dtype(device):
    dtypes = torch.accelerator.get_device_capability(device)["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.int64, torch.complex64, torch.bool} <= dtypes
