# SPDX-License-Identifier: Apache-2.0
"""Pinned memory of the host, and copies that the host does not wait for."""

import gc

import pytest
import torch
from backend import RELEASE
from stream_tools import Work, current, on
from torch.utils.data import DataLoader, TensorDataset

pytestmark = [
    pytest.mark.filterwarnings("ignore:The argument 'device':DeprecationWarning"),
    pytest.mark.needs("pinned_memory"),
]

devices = pytest.mark.needs("devices")


def values(count=1000):
    return torch.arange(float(count))


@pytest.fixture
def pin(module, name):
    """Pins a tensor; older releases pin for CUDA unless they are told the device."""
    module.init()
    return lambda tensor: tensor.pin_memory(name)


@pytest.fixture
def is_pinned(name):
    return lambda tensor: tensor.is_pinned(name)


def test_pin_memory(pin, is_pinned):
    plain = values()
    pinned = pin(plain)
    assert pinned.device.type == "cpu"
    assert torch.equal(pinned, plain)
    assert is_pinned(pinned) and not is_pinned(plain)
    assert is_pinned(pinned[10:20]) and is_pinned(pinned.view(10, 100).t())
    assert not is_pinned(pinned.clone())
    assert pin(pinned) is pinned
    assert pin(torch.empty(0)).numel() == 0


def test_the_device_need_not_be_named(module):
    module.init()
    assert torch.ones(3).pin_memory().is_pinned()
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert torch.zeros(2, 2, pin_memory=True).tolist() == [[0, 0], [0, 0]]
    assert not torch.ones(3).is_pinned()


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.bfloat16, torch.complex64])
def test_any_dtype_is_pinned(pin, is_pinned, dtype):
    tensor = torch.arange(10).to(dtype)
    assert torch.equal(pin(tensor), tensor)
    assert is_pinned(pin(tensor))


def test_pinned_memory_is_used_again(pin):
    place = pin(torch.empty(1 << 21)).data_ptr()
    for _ in range(10):
        tensor = pin(torch.empty(1 << 21))
        assert tensor.data_ptr() == place
        del tensor


@pytest.mark.parametrize("kind", ["default", "other"])
def test_the_host_does_not_wait(device, streams, work, pin, kind):
    stream = streams[0] if kind == "other" else current(device)
    with on(stream):
        target = torch.zeros(1000, device=device)
        host = pin(torch.zeros(1000))
        source = pin(values())
        stream.synchronize()
        work(stream)
        target.copy_(source, non_blocking=True)
        host.copy_(target, non_blocking=True)
        assert not stream.query()
        stream.synchronize()
        assert torch.equal(host, values())


def test_the_host_does_not_wait_for_a_new_tensor_of_its_own(device, streams, work, is_pinned):
    """As with CUDA, its numbers are there once the stream's work is done."""
    with on(streams[0]):
        source = values().to(device)
        work(streams[0])
        host = source.to("cpu", non_blocking=True)
        assert not streams[0].query()
        assert is_pinned(host)
        streams[0].synchronize()
        assert torch.equal(host, values())


def test_a_blocking_copy_is_done(device, streams, work, pin):
    with on(streams[0]):
        target, host = torch.zeros(1000, device=device), pin(torch.zeros(1000))
        source = pin(values())
        work(streams[0])
        target.copy_(source)
        source.zero_()
        work(streams[0])
        host.copy_(target)
        assert torch.equal(host, values())


@pytest.mark.needs("events", "streams")
@pytest.mark.parametrize("place", ["device", pytest.param("other", marks=devices)])
def test_memory_that_a_copy_uses_is_kept(name, place, pin):
    """What was freed goes to nobody before the stream has read it."""
    device = torch.device(name, int(place == "other"))
    stream, work = torch.Stream(device=device), Work(device)
    with on(stream):
        target = torch.zeros(1000, device=device)
        source = pin(values())
        place = source.data_ptr()
        work(stream)
        target.copy_(source, non_blocking=True)
        del source
        others = [pin(torch.full((1000,), -1.0)) for _ in range(4)]
        assert place not in [one.data_ptr() for one in others]
        assert torch.equal(target.cpu(), values())
        assert place in [pin(torch.empty(1000)).data_ptr() for _ in range(2)]
    del others


@pytest.mark.parametrize("step", range(5))
def test_a_pipeline_of_copies(device, streams, pin, step):
    """Uploads, work and downloads on one stream, with buffers that are used in turn."""
    with on(streams[step % 2]):
        results = []
        for i in range(30):
            source = pin(torch.full((500,), float(i)))
            held = source.to(device, non_blocking=True)
            del source
            kept = held.clone()
            result = pin(torch.zeros(500))
            result.copy_(kept, non_blocking=True)
            results.append(result)
        streams[step % 2].synchronize()
        assert [one.unique().tolist() for one in results] == [[float(i)] for i in range(30)]


def test_other_layouts_are_copied_right(device, module, pin):
    for source in (pin(values()).view(10, 100).t(), pin(values())[::3], pin(values()).double()):
        there = source.to(device, non_blocking=True)
        assert torch.equal(there.cpu(), source)
        back = there.to("cpu", non_blocking=True)
        module.synchronize(device)
        assert torch.equal(back, source)


needs_accelerator = pytest.mark.skipif(
    RELEASE < (2, 7),
    reason="before PyTorch 2.7 a DataLoader that is not told the device pins only for CUDA",
)


@pytest.mark.parametrize(
    "told", [pytest.param(False, marks=needs_accelerator, id="accelerator"), True]
)
def test_data_loader(device, name, is_pinned, told):
    data = TensorDataset(torch.arange(64.0).view(32, 2), torch.arange(32))
    options = {"batch_size": 8, "pin_memory": True, "num_workers": 2}
    if told:
        options["pin_memory_device"] = name
    seen = []
    for inputs, labels in DataLoader(data, **options):
        assert is_pinned(inputs) and is_pinned(labels)
        there = inputs.to(device, non_blocking=True) + 1
        seen += (there.cpu() - 1).flatten().tolist()
    assert sorted(seen) == list(range(64))


def test_a_module_of_pinned_parameters(device, pin):
    layer = torch.nn.Linear(4, 4)
    state = {key: pin(value) for key, value in layer.state_dict().items()}
    twin = torch.nn.Linear(4, 4, device=device)
    twin.load_state_dict(state)
    inputs = torch.randn(3, 4)
    assert torch.allclose(twin(inputs.to(device)).cpu(), layer(inputs), atol=1e-6)


@pytest.mark.skipif(
    not hasattr(getattr(torch, "accelerator", None), "empty_host_cache"),
    reason="torch.accelerator has no empty_host_cache in this release",
)
def test_the_cache_of_the_host_is_emptied(pin):
    tensor = pin(torch.empty(1 << 22))
    kept = pin(values())
    del tensor
    gc.collect()
    torch.accelerator.empty_host_cache()
    assert torch.equal(kept, values())


def test_is_pinned_does_not_begin_to_use_the_device(tmp_path, name):
    import subprocess
    import sys

    code = (
        f"import torch\nassert not torch.ones(2).is_pinned()\n"
        f"assert not torch.{name}.is_initialized()\nprint('fine')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr
