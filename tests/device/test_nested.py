# SPDX-License-Identifier: Apache-2.0
"""Nested tensors: the strided layout, by fallback, and what PyTorch makes of it by itself."""

import copy
import io

import pytest
import torch
from torch import nn
from torch.nn import functional as F

pytestmark = [pytest.mark.needs("fallback"), pytest.mark.filterwarnings("ignore")]


def make(place, **options):
    parts = [torch.arange(8.0).view(2, 4) / 7, torch.arange(12.0).view(3, 4).cos()]
    return torch.nested.nested_tensor(parts, device=place, **options)


def assert_same(there, here):
    if isinstance(here, (list, tuple)):
        assert len(there) == len(here)
        for one, other in zip(there, here):
            assert_same(one, other)
    elif here.is_nested:
        assert there.is_nested
        assert_same(there.unbind(), here.unbind())
    else:
        torch.testing.assert_close(there.cpu(), here)


def weight(nested):
    return torch.arange(12.0, device=nested.device).view(3, 4) / 9


def heads(nested):
    return nested.reshape(2, -1, 2, 2).transpose(1, 2)


OPERATORS = {
    "unbind": lambda nested: nested.unbind(),
    "select": lambda nested: nested.select(0, 1),
    "chunk": lambda nested: nested.chunk(2, -1),
    "transpose": lambda nested: nested.transpose(1, 2),
    "contiguous": lambda nested: nested.transpose(1, 2).contiguous(),
    "heads": heads,
    "detach": lambda nested: nested.detach(),
    "clone": lambda nested: nested.clone(),
    "double": lambda nested: nested.double(),
    "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like,
    "to_padded_tensor": lambda nested: nested.to_padded_tensor(-1.0),
    "mul": lambda nested: nested * 2,
    "add": lambda nested: nested + nested,
    "add_": lambda nested: nested.clone().add_(nested),
    "add_ to a view": lambda nested: [nested, nested.unbind()[1].add_(1)][0],
    "fill_": lambda nested: nested.fill_(3.0),
    "copy_": lambda nested: torch.empty_like(nested).copy_(nested),
    "copy_ from the CPU": lambda nested: torch.zeros_like(nested).copy_(make("cpu")),
    "relu": lambda nested: nested.relu(),
    "gelu": F.gelu,
    "softmax": lambda nested: nested.softmax(-1),
    "sum": lambda nested: nested.sum(-1, keepdim=True),
    "linear": lambda nested: F.linear(nested, weight(nested)),
    "bmm": lambda nested: torch.bmm(nested, nested.transpose(1, 2)),
    "matmul": lambda nested: nested @ nested.transpose(1, 2),
    "narrow": lambda nested: nested.narrow(0, 1, 1),
    "narrow in a part": lambda nested: nested.chunk(2, -1)[1].clone(),
    "two over one storage": lambda nested: [
        nested,
        nested.chunk(2, -1)[0].unbind()[0].mul_(2),
        nested.chunk(2, -1)[1].unbind()[1].sub_(1),
    ],
    "of a part of a storage": lambda nested: torch.nested.as_nested_tensor(
        list(torch.arange(24.0, device=nested.device).view(6, 4)[1:].split([2, 3]))
    ).mul(2),
    "without elements": lambda nested: torch.nested.nested_tensor(
        [torch.ones(0, 4), torch.ones(2, 4)], device=nested.device
    ).add(1),
    "of scalars": lambda nested: torch.nested.nested_tensor(
        [torch.tensor(1.0), torch.tensor(2.0)], device=nested.device
    ).mul(3),
    "layer_norm": lambda nested: F.layer_norm(
        nested, (4,), weight(nested)[0].clone(), weight(nested)[1].clone()
    ),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(device, operator):
    there = OPERATORS[operator](make(device))
    assert_same(there, OPERATORS[operator](make("cpu")))
    assert (there[0] if isinstance(there, (list, tuple)) else there).device == device


def test_they_go_where_they_are_sent(device, other):
    there = make("cpu").to(device)
    assert there.device == device
    assert there.cpu().device.type == "cpu" and there.to(other).device == other
    assert torch.empty_like(there, device="cpu").device.type == "cpu"
    ones = torch.ones_like(there, device=other)
    assert ones.device == other
    assert_same(ones, torch.ones_like(make("cpu")))
    for moved in (there, there.cpu(), there.to(other), there.to(other).to(device)):
        assert_same(moved, make("cpu"))


def test_what_goes_to_the_host_is_no_memory_of_the_device(module, device):
    there = make(device)
    before = module.memory_allocated()
    kept = [there.cpu(), torch.ones_like(there, device="cpu")]
    assert module.memory_allocated() == before
    assert all(one.device.type == "cpu" for one in kept)


VIEWS = {
    "alias": torch.ops.aten.alias.default,
    "detach": lambda nested: nested.detach(),
    "unbind": lambda nested: nested.unbind()[1],
    "select": lambda nested: nested[1],
    "chunk": lambda nested: nested.chunk(2, -1)[1],
    "transpose": lambda nested: nested.transpose(1, 2),
    "heads": heads,
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_copies_nothing(module, device, view):
    if not hasattr(module, "fallback_report"):
        pytest.skip("this backend does not tell what its fallback copies")
    nested = make(device)
    module.reset_fallback_report()
    made = VIEWS[view](nested)
    assert sum(row.bytes_copied for row in module.fallback_report().rows) == 0
    assert made._version == nested._version
    nested.add_(1)
    assert made._version == nested._version


RANDOM = {
    "dropout": lambda nested: F.dropout(nested + 1, 0.5),
    "randn_like": torch.randn_like,
    "normal_": lambda nested: nested.clone().normal_(),
}


@pytest.mark.parametrize("draw", RANDOM)
def test_random_numbers_are_the_device_s(module, device, draw):
    before = torch.get_rng_state()
    module.manual_seed(3)
    first = RANDOM[draw](make(device))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(4)  # of the device too
    second = RANDOM[draw](make(device))
    assert not torch.equal(first.to_padded_tensor(9.0), second.to_padded_tensor(9.0))
    module.manual_seed(3)
    assert_same(RANDOM[draw](make(device)), first.cpu())


def test_a_parameter(device):
    parameter = nn.Parameter(make(device))
    assert parameter.requires_grad and parameter.device == device
    assert_same(parameter.detach(), make("cpu"))


def test_what_tells_of_their_parts_is_on_the_host(device):
    there, here = make(device).transpose(1, 2), make("cpu").transpose(1, 2)
    for ask in ("_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets"):
        assert torch.equal(getattr(there, ask)(), getattr(here, ask)())
    assert not there.is_contiguous() and there.size(0) == 2
    assert repr(there).count(f"device='{device}'") == 3


def test_gradients(device):
    def run(place):
        nested = make(place, requires_grad=True)
        matrix = weight(nested).requires_grad_()
        F.linear(nested, matrix).softmax(-1).to_padded_tensor(0.0).square().sum().backward()
        return nested.grad, matrix.grad

    assert_same(run(device), run("cpu"))


def test_gradients_of_the_parts(device):
    leaves = [torch.full((2,), 3.0, device=device, requires_grad=True) for _ in range(2)]
    nested = torch.nested.as_nested_tensor(leaves)
    (nested * nested).to_padded_tensor(0.0).sum().backward()
    assert [leaf.grad.tolist() for leaf in leaves] == [[6.0, 6.0]] * 2


@pytest.mark.parametrize("place", ["device", "cpu"])
def test_save_and_load(device, place):
    place = device if place == "device" else torch.device(place)
    file = io.BytesIO()
    torch.save(make(device), file)
    file.seek(0)
    loaded = torch.load(file, map_location=place, weights_only=False)
    assert loaded.device == place
    assert_same(loaded, make("cpu"))


MASK = torch.tensor([[False, False, True], [False, False, False]])


def test_a_transformer_s_encoder_with_padding(device):
    """PyTorch makes nested tensors of the inputs when such a model is not in training."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    inputs = torch.randn(2, 3, 8)
    with torch.no_grad():
        here = model(inputs, src_key_padding_mask=MASK)
        there = copy.deepcopy(model).to(device)(
            inputs.to(device), src_key_padding_mask=MASK.to(device)
        )
    assert there.device == device
    torch.testing.assert_close(there.cpu(), here)


@pytest.mark.parametrize("gradients", [False, True], ids=["plain", "gradients"])
def test_attention_of_ragged_tensors(device, gradients):
    """PyTorch computes it with nested tensors of the strided layout."""

    def run(place):
        parts = [torch.arange(16.0).view(2, 2, 4).sin(), torch.arange(24.0).view(3, 2, 4).cos()]
        ragged = torch.nested.nested_tensor(
            parts, device=place, layout=torch.jagged, requires_grad=gradients
        )
        query = ragged.transpose(1, 2)
        values = F.scaled_dot_product_attention(query, query, query).transpose(1, 2).unbind()
        if gradients:
            sum(value.square().sum() for value in values).backward()
            return [*values, ragged.grad.values()]
        return values

    assert_same([one.detach() for one in run(device)], [one.detach() for one in run("cpu")])
