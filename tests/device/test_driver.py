# SPDX-License-Identifier: Apache-2.0
"""What a driver tells of its devices, and that errors of it leave the device as it was."""

import gc
import math
import weakref

import pytest
import torch
from stream_tools import in_threads


def test_the_number_of_devices_stays(module):
    counts = []
    in_threads(lambda number: counts.append(module.device_count()))
    assert set(counts) == {module.device_count()}
    assert 1 <= module.device_count() <= 127


@pytest.mark.needs("properties")
def test_properties(module):
    for index in range(module.device_count()):
        properties = module.get_device_properties(index)
        assert properties.name.encode().decode() == properties.name
        assert min(properties[1:]) >= 0


@pytest.mark.needs("properties")
def test_properties_stay(module, name):
    first = [module.get_device_properties(index) for index in range(module.device_count())]
    torch.ones(1000, device=name)
    answers = []
    in_threads(lambda _: answers.append(list(map(module.get_device_properties, range(len(first))))))
    assert answers == [first] * 8


@pytest.mark.needs("memory_info")
def test_no_more_memory_is_free_than_there_is(module):
    for index in range(module.device_count()):
        free, total = module.mem_get_info(index)
        assert 0 <= free <= total


@pytest.mark.needs("timing")
def test_a_time_is_a_number(device):
    first, last = (torch.Event(device.type, enable_timing=True) for _ in range(2))
    first.record()
    torch.ones(1000, device=device)
    last.record()
    last.synchronize()
    assert math.isfinite(first.elapsed_time(last))


def test_an_error_leaves_the_current_device(module, device, beyond):
    before = module.current_device()
    for use in (
        lambda: torch.ones(2, device=f"{device.type}:{beyond}"),
        lambda: module.set_device(beyond),
        lambda: module.get_rng_state(beyond),
    ):
        with pytest.raises((RuntimeError, ValueError)):
            use()
        assert module.current_device() == before
    assert torch.ones(2, device=device).tolist() == [1, 1]


def test_what_was_copied_is_let_go(device):
    """Nothing keeps the host's memory where copies succeed."""

    class Buffer(bytearray):
        """Memory that a weak reference can tell of."""

    buffer = Buffer(4000)
    kept = weakref.ref(buffer)
    host = torch.frombuffer(buffer, dtype=torch.float32)
    there = host.to(device)
    host.copy_(there)
    del host, buffer
    gc.collect()
    assert kept() is None
