# SPDX-License-Identifier: Apache-2.0
"""Devices, the current one, random numbers, and errors that say what is missing."""

import importlib
import pickle
import threading

import pytest
import torch
from backend import RELEASE


def test_the_module_counts_devices(module):
    assert module.is_available()
    assert module.device_count() >= 1


def test_the_current_device(module, name, other):
    module.set_device(1)
    assert module.current_device() == 1
    assert torch.empty(1, device=name).device.index == 1
    module.set_device(torch.device(name, 0))
    assert module.current_device() == 0


def test_the_device_context_restores(module, name, other):
    with module.device(1):
        assert module.current_device() == 1
        with module.device(f"{name}:0"):
            assert module.current_device() == 0
        assert module.current_device() == 1
    assert module.current_device() == 0
    with pytest.raises(KeyError), module.device(1):
        raise KeyError
    assert module.current_device() == 0
    guard = module.device(1)
    with guard, guard:
        assert module.current_device() == 1
    assert module.current_device() == 0


def test_parts_of_the_module_can_be_imported(module, name):
    for part in ("memory", "random", "streams"):
        assert importlib.import_module(f"torch.{name}.{part}") is getattr(module, part)


@pytest.mark.parametrize("more", [0, 1000])
def test_no_such_device(module, beyond, more):
    index = beyond + more
    with pytest.raises((RuntimeError, ValueError), match=f"{index}"):
        module.set_device(index)
    assert module.current_device() == 0


def test_each_thread_has_its_current_device(module, other):
    seen = []

    def work():
        seen.append(module.current_device())
        module.set_device(1)
        seen.append(module.current_device())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [0, 1]
    assert module.current_device() == 0


def test_threads_compute_at_once(device, other):
    values = torch.randn(50, 50)
    expected = (values @ values).relu()
    wrong = []

    def work(place):
        for _ in range(20):
            result = (values.to(place) @ values.to(place)).relu()
            if result.device != place or not torch.allclose(result.cpu(), expected, atol=1e-4):
                wrong.append(place)

    threads = [threading.Thread(target=work, args=(place,)) for place in (device, other) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_synchronize(module, device, beyond):
    torch.ones(2, device=device)
    module.synchronize()
    module.synchronize(beyond - 1)
    with pytest.raises((RuntimeError, ValueError), match=f"{beyond + 3}"):
        module.synchronize(beyond + 3)


@pytest.mark.parametrize(
    "draw",
    [
        lambda place: torch.randn(20, device=place),
        lambda place: torch.rand(20, device=place),
        lambda place: torch.randint(100, (20,), device=place),
        lambda place: torch.randperm(20, device=place),
        lambda place: torch.empty(20, device=place).uniform_(),
        lambda place: torch.bernoulli(torch.full((20,), 0.5, device=place)),
        lambda place: torch.multinomial(torch.ones(20, device=place), 10),
        lambda place: torch.nn.functional.dropout(torch.ones(50, device=place)),
    ],
    ids=["randn", "rand", "randint", "randperm", "uniform_", "bernoulli", "multinomial", "dropout"],
)
def test_a_seed_reaches_every_random_operator(module, device, draw):
    torch.manual_seed(5)
    first = draw(device).cpu()
    second = draw(device).cpu()
    torch.manual_seed(5)
    assert torch.equal(draw(device).cpu(), first)
    module.manual_seed(5)
    assert torch.equal(draw(device).cpu(), first)
    assert not torch.equal(first, second)


def test_the_device_s_numbers_leave_the_cpu_s_alone(device):
    torch.manual_seed(1)
    expected = torch.randn(3)
    torch.manual_seed(1)
    torch.randn(100, device=device)
    assert torch.equal(torch.randn(3), expected)


def test_each_device_has_its_generator(module, device, other):
    module.manual_seed_all(3)
    first = torch.randn(4, device=device).cpu()
    assert torch.equal(torch.randn(4, device=other).cpu(), first)
    assert module.initial_seed() == 3


def test_state_of_the_generator(module, device):
    torch.manual_seed(11)
    torch.randn(7, device=device)
    state = module.get_rng_state()
    first = torch.randn(4, device=device).cpu()
    module.set_rng_state(state)
    assert torch.equal(torch.randn(4, device=device).cpu(), first)


def test_fork_rng(module, device, name):
    torch.manual_seed(2)
    with torch.random.fork_rng(devices=[0], device_type=name):
        inside = torch.randn(4, device=device).cpu()
    assert torch.equal(torch.randn(4, device=device).cpu(), inside)


def test_a_generator_of_one_s_own(device, name):
    generator = torch.Generator(device=name).manual_seed(9)
    assert generator.device == device
    first = torch.randn(4, generator=generator, device=device).cpu()
    second = torch.randn(4, generator=generator, device=device).cpu()
    generator.manual_seed(9)
    state = generator.get_state()
    assert torch.equal(torch.randn(4, generator=generator, device=device).cpu(), first)
    assert not torch.equal(first, second)
    twin = torch.Generator(device=name)
    twin.set_state(state)
    assert torch.equal(torch.randn(4, generator=twin, device=device).cpu(), first)


def test_a_generator_of_the_cpu_is_refused_as_a_cpu_operator_takes_it(device):
    generator = torch.Generator().manual_seed(9)
    with pytest.raises(RuntimeError, match="generator"):
        torch.randn(4, generator=generator, device=device)


if hasattr(torch, "accelerator"):  # since PyTorch 2.6

    def test_the_accelerator_api(device, beyond):
        assert torch.accelerator.is_available()
        assert torch.accelerator.current_accelerator() == torch.device(device.type)
        assert torch.accelerator.device_count() == beyond
        torch.accelerator.set_device_index(beyond - 1)
        assert torch.accelerator.current_device_index() == beyond - 1
        torch.accelerator.set_device_index(0)
        torch.accelerator.synchronize()
        stream = torch.accelerator.current_stream()
        assert stream.device == device
        stream.synchronize()
        assert stream.query()

    @pytest.mark.skipif(RELEASE < (2, 7), reason="before PyTorch 2.7 a guard must not throw there")
    def test_streams_of_no_device(device, beyond):
        for index in (beyond, beyond + 4, -5):
            with pytest.raises(RuntimeError, match=f"device index {index} is out of range"):
                torch.accelerator.current_stream(index)


def test_default_device(device):
    with torch.device(device):
        assert torch.ones(2).device == device
        assert torch.nn.Linear(2, 2).weight.device == device


def test_tensor_methods(module, name, device):
    tensor = torch.ones(2)
    assert getattr(tensor, name)().device == device
    assert getattr(tensor.to(device), f"is_{name}")
    assert getattr(torch.nn.Linear(2, 2), name)().weight.device == device


@pytest.mark.needs("autocast")
def test_autocast(name, device):
    left = torch.randn(4, 4, device=device)
    with torch.autocast(name):
        result = left @ left
    assert result.device == device
    near = 8 * torch.finfo(result.dtype).eps
    torch.testing.assert_close(result.cpu().float(), left.cpu() @ left.cpu(), rtol=near, atol=near)


def test_a_generator_survives_pickling(name, other):
    generator = torch.Generator(device=f"{name}:1").manual_seed(9)
    twin = pickle.loads(pickle.dumps(generator))
    assert twin.device == generator.device
    assert twin.initial_seed() == 9
    assert torch.equal(twin.get_state(), generator.get_state())
