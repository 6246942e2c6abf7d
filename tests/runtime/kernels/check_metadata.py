# SPDX-License-Identifier: Apache-2.0
"""What the backend keeps with a tensor is saved, pickled and copied with it."""

import copy
import io
import pickle

import pytest
import torch
import torch_foo  # noqa: F401

tiled = torch.ops.foo_metadata


def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    """One with metadata and one without."""
    one, other = torch.ones(2, device="foo"), torch.ones(2, device="foo")
    tiled.set_tiled(one)
    return one, other


def through_file(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


@pytest.mark.parametrize("weights_only", [True, False])
def test_saved(weights_only):
    one, other = through_file(tensors(), weights_only=weights_only)
    assert tiled.is_tiled(one)
    assert not tiled.is_tiled(other)


def test_pickled():
    one, other = pickle.loads(pickle.dumps(tensors()))
    assert tiled.is_tiled(one)
    assert not tiled.is_tiled(other)


def test_on_another_device():
    one, _ = through_file(tensors(), map_location="foo:1")
    assert one.device == torch.device("foo:1")
    assert tiled.is_tiled(one)


def test_the_cpu_has_none():
    one, _ = through_file(tensors(), map_location="cpu")
    assert one.tolist() == [1, 1]
    assert not tiled.is_tiled(one)


def test_a_conjugate_view_keeps_both():
    value = torch.ones(2, dtype=torch.complex64, device="foo").conj()
    tiled.set_tiled(value)
    loaded = through_file(value)
    assert loaded.is_conj()
    assert tiled.is_tiled(loaded)


def test_parameters():
    one, _ = tensors()
    assert tiled.is_tiled(through_file(torch.nn.Parameter(one)))


def test_pytorch_s_deepcopy_leaves_it_out():
    one, _ = tensors()
    assert not tiled.is_tiled(copy.deepcopy(one))
    assert tiled.is_tiled(copy.copy(one))


def test_detached_shares_it():
    one, _ = tensors()
    assert tiled.is_tiled(one.detach())
    assert tiled.is_tiled(one.data)
    assert not tiled.is_tiled(one + 1)


@pytest.mark.parametrize("place", ["cpu", "foo:0", "foo:1"])
def test_data_that_is_set_brings_its_own_or_none(place):
    one, other = tensors()
    parameter = torch.nn.Parameter(torch.ones(2, device=place))
    assert not tiled.is_tiled(parameter)
    parameter.data = one
    assert tiled.is_tiled(parameter)
    assert not tiled.is_tiled(other)
    parameter.data = torch.ones(2, device=place)
    assert not tiled.is_tiled(parameter)
    parameter.data = other
    assert not tiled.is_tiled(parameter)
    assert tiled.is_tiled(one)


def test_a_module_that_moves_leaves_it_behind():
    model = torch.nn.Linear(2, 2).to("foo")
    weight = model.weight
    tiled.set_tiled(weight)
    assert model.to("cpu").weight is weight
    assert not tiled.is_tiled(weight)
    assert not tiled.is_tiled(model.to("foo").weight)


def test_other_tensors_have_none():
    one, _ = tensors()
    for other in (one + 1, one[:1], one.view(2, 1), one.clone(), one.to("foo:1"), one.cpu()):
        assert not tiled.is_tiled(other)


def test_a_tensor_that_is_written_keeps_it():
    one, other = tensors()
    one.add_(1)
    one.copy_(other)
    torch.add(other, 1, out=one)
    assert tiled.is_tiled(one)
