# SPDX-License-Identifier: Apache-2.0
"""torch.save and torch.load, pickle and copy.deepcopy of what lies on the device."""

import copy
import io
import pickle

import pytest
import torch
from backend import RELEASE
from torch import nn


def saved(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


def numbers(place):
    return torch.arange(6.0, device=place).reshape(2, 3)


def same(one, two):
    return torch.equal(one.cpu(), two.cpu())


#: A map_location to a second device.
SECOND = pytest.param("{}:1", marks=pytest.mark.needs("devices"))


# Where a tensor of the first device goes for a map_location; {} stands for the device's name.
LOCATIONS = {
    "none": (None, "{}:0"),
    "cpu": ("cpu", "cpu"),
    "the current device": ("{}", "{}:0"),
    "another device": ("{}:1", "{}:1"),
    "dict": ({"{}:0": "{}:1"}, "{}:1"),
    "dict to the cpu": ({"{}:0": "cpu"}, "cpu"),
    "dict of others": ({"{}:1": "cpu"}, "{}:0"),
    "function that leaves it": (lambda storage, _: storage, "cpu"),
    "function that says nothing": (lambda storage, _: None, "{}:0"),
}


def with_name(location, name):
    if isinstance(location, str):
        return location.format(name)
    if isinstance(location, dict):
        return {with_name(k, name): with_name(v, name) for k, v in location.items()}
    return location


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("location", LOCATIONS)
def test_locations(request, name, device, location, weights_only, zipped):
    wanted, place = LOCATIONS[location]
    if place == "{}:1":
        request.getfixturevalue("other")
    file = saved(numbers(device), _use_new_zipfile_serialization=zipped)
    loaded = torch.load(file, map_location=with_name(wanted, name), weights_only=weights_only)
    assert loaded.device == torch.device(place.format(name))
    assert same(loaded, numbers("cpu"))


def test_a_device_as_location(device, other):
    loaded = torch.load(saved(numbers(device)), map_location=other, weights_only=True)
    assert loaded.device == other
    assert same(loaded, numbers("cpu"))


def test_a_function_moves_storages_itself(name, device, other):
    tags = []

    def move(storage, tag):
        tags.append(tag)
        return getattr(storage, name)(1)

    loaded = torch.load(saved(numbers(device)), map_location=move, weights_only=True)
    assert tags == [f"{name}:0"]
    assert loaded.device == other


@pytest.mark.parametrize("place", ["{}", SECOND])
def test_from_the_cpu_to_a_device(name, place):
    place = place.format(name)
    loaded = torch.load(saved(numbers("cpu")), map_location=place, weights_only=True)
    assert loaded.device == torch.empty(0, device=place).device
    assert same(loaded, numbers("cpu"))


def test_the_current_device_is_not_where_it_was_saved(module, device, other):
    file = saved(numbers(device))
    with module.device(other):
        assert torch.load(file, weights_only=True).device == device


@pytest.mark.parametrize("weights_only", [True, False])
def test_no_such_device(name, device, beyond, weights_only):
    place = f"{name.upper()} device {beyond}"
    text = rf"Attempting to deserialize object on {place} but .*count\(\) is {beyond}"
    with pytest.raises(RuntimeError, match=text):
        location = f"{name}:{beyond}"
        torch.load(saved(numbers(device)), map_location=location, weights_only=weights_only)


def test_saved_on_a_device_that_is_not_here(name, module, other, monkeypatch):
    file = saved(numbers(other))
    monkeypatch.setattr(module, "device_count", lambda: 1)
    text = rf"{name.upper()} device 1 but .*count\(\) is 1.*map_location"
    with pytest.raises(RuntimeError, match=text):
        torch.load(file, weights_only=True)
    file.seek(0)
    assert torch.load(file, map_location=f"{name}:0", weights_only=True).device.index == 0
    monkeypatch.setattr(module, "is_available", lambda: False)
    file.seek(0)
    with pytest.raises(RuntimeError, match=rf"torch.{name}.is_available\(\) is False"):
        torch.load(file, weights_only=True)


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.bool, torch.complex64],
    ids=str,
)
def test_dtypes(device, dtype):
    values = numbers("cpu").to(dtype)
    loaded = torch.load(saved(values.to(device)), weights_only=True)
    assert loaded.dtype == dtype
    assert loaded.device == device
    assert same(loaded, values)


VIEWS = {
    "transposed": lambda t: t.t(),
    "a row": lambda t: t[1],
    "every second": lambda t: t[:, ::2],
    "expanded": lambda t: t[:1].expand(4, 3),
    "nothing": lambda t: t[:0],
    "one number": lambda t: t[1, 1],
}


@pytest.mark.parametrize("view", VIEWS)
def test_views(device, view):
    there = VIEWS[view](numbers(device))
    loaded = torch.load(saved(there), weights_only=True)
    assert loaded.stride() == there.stride()
    assert loaded.storage_offset() == there.storage_offset()
    assert same(loaded, VIEWS[view](numbers("cpu")))


@pytest.mark.parametrize("bit", ["conj", "neg"])
def test_conjugate_and_negative_views(device, bit):
    values = torch.tensor([1 + 2j, 3 - 4j], device=device)
    there = values.conj() if bit == "conj" else torch._neg_view(values)
    loaded = torch.load(saved(there), weights_only=True)
    assert getattr(loaded, f"is_{bit}")()
    assert torch.equal(
        loaded.cpu().resolve_conj().resolve_neg(), there.cpu().resolve_conj().resolve_neg()
    )


@pytest.mark.parametrize("place", [None, "cpu", "other"])
def test_shared_memory_stays_shared(device, other, place):
    whole = numbers(device)
    location = other if place == "other" else place
    one, row = torch.load(saved((whole, whole[1])), map_location=location, weights_only=True)
    one[1, 0] = 77
    assert row[0] == 77
    assert row.device == (location and torch.device(location) or device)


def test_only_the_numbers_of_a_view_are_saved_with_clone(device):
    whole = torch.zeros(10_000, device=device)
    assert len(saved(whole[:2]).getvalue()) > 40_000
    assert len(saved(whole[:2].clone()).getvalue()) < 4_000


def test_memory_that_a_stream_still_writes_is_saved_after(device):
    values = torch.ones(1 << 16, device=device)
    for _ in range(20):
        values = values + 1
    assert bool((torch.load(saved(values), map_location="cpu", weights_only=True) == 21).all())


@pytest.mark.parametrize("location", [None, "cpu", SECOND])
def test_mapped_files(tmp_path, name, device, location):
    file = tmp_path / "numbers.pt"
    torch.save({"there": numbers(device), "here": numbers("cpu")}, file)
    place = location and location.format(name)
    loaded = torch.load(file, map_location=place, mmap=True, weights_only=True)
    assert loaded["there"].device == torch.device(place or device)
    assert loaded["here"].device == torch.device(place or "cpu")
    assert same(loaded["there"], numbers("cpu"))
    assert same(loaded["here"], numbers("cpu"))


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.tied = self.inner[0].weight
        self.register_buffer("mask", torch.ones(2, dtype=torch.bool))


@pytest.mark.parametrize("location", [None, "cpu", SECOND])
def test_state_dict(name, device, location):
    net = Weighted().to(device)
    place = location and location.format(name)
    state = torch.load(saved(net.state_dict()), map_location=place, weights_only=True)
    assert {one.device for one in state.values()} == {torch.device(place or device)}
    fresh = Weighted().to(device)
    fresh.load_state_dict(state)
    for one, two in zip(fresh.state_dict().values(), net.state_dict().values()):
        assert one.device == device
        assert same(one, two)


def test_state_dict_is_assigned(device):
    state = torch.load(saved(nn.Linear(3, 4).to(device).state_dict()), weights_only=True)
    with torch.device("meta"):
        net = nn.Linear(3, 4)
    net.load_state_dict(state, assign=True)
    assert net.weight.device == device
    assert same(net.weight, state["weight"])


def test_a_whole_module(device):
    with torch.device(device):
        net = Weighted()
    loaded = torch.load(saved(net), weights_only=False)
    assert loaded.tied is loaded.inner[0].weight
    x = torch.ones(2, 3, device=device)
    assert same(loaded.inner(x), net.inner(x))


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_an_optimizer_goes_on(device, kind):
    def parts():
        torch.manual_seed(1)
        net = nn.Linear(3, 1).to(device)
        options = {"lr": 0.1, "momentum": 0.9} if kind is torch.optim.SGD else {"lr": 0.1}
        return net, kind(net.parameters(), **options)

    def step(net, optimizer):
        optimizer.zero_grad()
        (net(numbers(device)) - 1).pow(2).sum().backward()
        optimizer.step()

    net, optimizer = parts()
    step(net, optimizer)
    file = saved({"net": net.state_dict(), "optimizer": optimizer.state_dict()})
    step(net, optimizer)
    again, other_optimizer = parts()
    state = torch.load(file, map_location="cpu", weights_only=True)
    again.load_state_dict(state["net"])
    other_optimizer.load_state_dict(state["optimizer"])
    for values in other_optimizer.state.values():
        for key, one in values.items():
            assert key == "step" or one is None or one.device == device
    step(again, other_optimizer)
    assert same(again.weight, net.weight)


WAYS = {
    "save": lambda value: torch.load(saved(value), weights_only=False),
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "pickle 4": lambda value: pickle.loads(pickle.dumps(value, protocol=4)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_tensor_by_each_way(other, way):
    values = numbers(other)[:, 1:]
    twin = WAYS[way](values)
    assert twin.device == other
    assert twin.stride() == values.stride()
    assert same(twin, values)
    twin.zero_()
    assert values[1, 1] == 5


@pytest.mark.parametrize("way", WAYS)
def test_parameters(device, way):
    parameter = nn.Parameter(numbers(device), requires_grad=False)
    twin = WAYS[way](parameter)
    assert type(twin) is nn.Parameter
    assert not twin.requires_grad
    assert twin.device == device
    buffer = WAYS[way](numbers(device).requires_grad_())
    assert buffer.requires_grad


class Tagged(torch.Tensor):
    """A subclass with an attribute."""


@pytest.mark.parametrize("way", [way for way in WAYS if way != "deepcopy"])
def test_subclasses(device, way):
    tagged = numbers(device).as_subclass(Tagged)
    tagged.tag = "mine"
    twin = WAYS[way](tagged)
    assert type(twin) is Tagged
    assert twin.tag == "mine"
    assert twin.device == device
    assert same(twin.as_subclass(torch.Tensor), numbers("cpu"))


def test_deepcopy_keeps_ties(device):
    with torch.device(device):
        net = Weighted()
    twin = copy.deepcopy(net)
    assert twin.tied is twin.inner[0].weight
    assert twin.tied is not net.tied
    assert twin.tied.device == device
    assert same(twin.tied, net.tied)


def test_deepcopy_of_what_was_computed_is_refused(device):
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(numbers(device).requires_grad_() * 2)


# PyTorch 2.5 saves tensors without storages as NumPy arrays, and checks them only on the CPU.
sparse = pytest.mark.skipif(
    RELEASE < (2, 6), reason="PyTorch 2.5 loads only sparse tensors of its own devices"
)


def coo(place):
    return numbers(place).to_sparse()


def csr(place):
    return numbers(place).to_sparse_csr()


def bsr(place):
    return torch.eye(4, device=place).to_sparse_bsr((2, 2))


SPARSE = [pytest.param(make, marks=sparse) for make in (coo, csr, bsr)]


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("make", [coo, csr, bsr])
def test_sparse_tensors_by_way_of_the_cpu(device, make):
    loaded = torch.load(saved(make(device).cpu()), weights_only=True).to(device)
    assert loaded.layout == make("cpu").layout
    assert same(loaded.to_dense(), make("cpu").to_dense())


def per_tensor(place):
    return torch.quantize_per_tensor(numbers(place), 0.5, 3, torch.qint8)


def per_channel(place):
    scales = torch.tensor([0.5, 0.25], device=place)
    return torch.quantize_per_channel(
        numbers(place), scales, torch.zeros(2, device=place), 0, torch.qint8
    )


@pytest.mark.filterwarnings("ignore:Sparse|torch.quantize")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [*SPARSE, per_tensor, per_channel])
def test_other_layouts(device, make, way):
    values = make(device)
    twin = WAYS[way](values)
    assert twin.device == device
    assert twin.layout == values.layout
    assert twin.dtype == values.dtype
    plain = "dequantize" if values.is_quantized else "to_dense"
    assert same(getattr(twin, plain)(), getattr(values, plain)())
    if values.is_quantized:
        assert twin.qscheme() == values.qscheme()


@pytest.mark.filterwarnings("ignore:Sparse|torch.quantize")
@pytest.mark.parametrize("location", ["cpu", SECOND])
@pytest.mark.parametrize("make", [*SPARSE, per_tensor, per_channel])
def test_other_layouts_elsewhere(name, device, make, location):
    place = torch.device(location.format(name))
    expected = make("cpu")
    plain = "dequantize" if expected.is_quantized else "to_dense"
    for source in ("cpu", device):
        loaded = torch.load(saved(make(source)), map_location=place, weights_only=False)
        assert loaded.device == place
        assert same(getattr(loaded, plain)(), getattr(expected, plain)())


def test_ragged_tensors(device):
    parts = [torch.ones(2, device=device), torch.ones(3, device=device)]
    ragged = torch.nested.nested_tensor(parts, layout=torch.jagged)
    loaded = torch.load(saved(ragged), weights_only=False)
    assert loaded.device == device
    assert same(loaded.values(), ragged.values())


def test_packed_sequences(device):
    packed = nn.utils.rnn.pack_sequence(
        [torch.ones(3, device=device), torch.ones(2, device=device)]
    )
    loaded = torch.load(saved(packed), weights_only=False)
    assert loaded.data.device == device
    assert same(loaded.data, packed.data)


def test_swap_tensors(device):
    there, here = numbers(device), numbers("cpu") + 1
    torch.utils.swap_tensors(there, here)
    assert there.device.type == "cpu"
    assert here.device == device
    assert same(here, numbers("cpu"))


def test_safetensors(tmp_path, device):
    """They are written from the device, and loaded to it or to the CPU."""
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    file = tmp_path / "numbers.safetensors"
    safetensors.save_file({"x": numbers(device)}, file)
    assert same(safetensors.load_file(file)["x"].to(device), numbers("cpu"))
    loaded = safetensors.load_file(file, device=str(device))["x"]
    assert loaded.device == device
    assert same(loaded, numbers("cpu"))
