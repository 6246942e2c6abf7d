# SPDX-License-Identifier: Apache-2.0
"""Making tensors, resizing them, looking at them: what cannot fall back to the CPU."""

import copy
import io
import pickle

import pytest
import torch
from torch.nn.functional import mse_loss


@pytest.mark.parametrize("make", [torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (2, 0, 3)], ids=str)
def test_factories(device, make, shape):
    tensor = make(shape, device=device)
    assert tensor.device == device
    assert tuple(tensor.shape) == shape
    assert tensor.cpu().shape == tensor.shape


def test_a_name_without_index_is_the_current_device(name, module, other):
    assert torch.empty(1, device=name).device.index == 0
    with module.device(1):
        assert torch.empty(1, device=name).device == other
    assert torch.empty(1, device=name).device.index == 0


def test_a_tensor_is_made_on_its_device_whatever_is_current(module, other):
    assert torch.ones(2, device=other).add(1).device == other
    assert module.current_device() == 0


@pytest.mark.parametrize("more", [0, 5, 98])
def test_an_index_out_of_range_is_an_error(name, beyond, more):
    index = beyond + more
    says = f"device index {index} is out of range: there (is|are) {beyond} {name} device"
    with pytest.raises(RuntimeError, match=says):
        torch.empty(1, device=f"{name}:{index}")


def test_resize_keeps_what_is_there(device):
    tensor = torch.arange(4.0).to(device)
    tensor.resize_(8)
    assert tensor.cpu()[:4].tolist() == [0.0, 1.0, 2.0, 3.0]
    tensor.resize_(2)
    assert tensor.cpu().tolist() == [0.0, 1.0]
    tensor.resize_(0)
    assert tensor.numel() == 0
    tensor.resize_(2, 2)
    assert tensor.cpu()[0].tolist() == [0.0, 1.0]


def test_resize_of_a_view_counts_its_offset(device):
    tensor = torch.arange(6.0).to(device)
    tail = tensor[4:]
    tail.resize_(5)
    assert tail.cpu()[:2].tolist() == [4.0, 5.0]
    assert tensor.cpu().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_resize_to_a_memory_format(device):
    tensor = torch.empty(0, device=device)
    tensor.resize_(2, 3, 4, 4, memory_format=torch.channels_last)
    assert tensor.is_contiguous(memory_format=torch.channels_last)


def test_storage_can_be_resized(device):
    tensor = torch.arange(4.0).to(device)
    storage = tensor.untyped_storage()
    storage.resize_(32)
    assert storage.nbytes() == 32
    assert tensor.cpu().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_set_shares_memory(device):
    tensor = torch.arange(6.0).to(device)
    view = torch.empty(0, device=device)
    view.set_(tensor)
    assert view.data_ptr() == tensor.data_ptr()
    view.set_(tensor.untyped_storage(), 2, (2, 2), (2, 1))
    assert view.cpu().tolist() == [[2.0, 3.0], [4.0, 5.0]]
    view.set_()
    assert view.numel() == 0
    assert view.device == device


def test_set_refuses_memory_of_another_device(device):
    with pytest.raises(RuntimeError):
        torch.empty(0, device=device).set_(torch.arange(3.0).untyped_storage(), 0, (3,), (1,))


@pytest.mark.parametrize("value", [3.5, -2, True, 1 + 2j], ids=str)
def test_item(device, value):
    assert torch.tensor(value, device=device).item() == value
    assert torch.tensor([[value]], device=device).item() == value


def test_item_of_a_conjugate_view(device):
    assert torch.tensor(1 + 2j, device=device).conj().item() == 1 - 2j


VIEWS = {
    "view": lambda t: t.view(6, 4),
    "reshape": lambda t: t.t().reshape(3, 8),
    "as_strided": lambda t: t.as_strided((2, 3), (1, 2), 1),
    "unfold": lambda t: t.unfold(1, 2, 2),
    "select": lambda t: t.select(0, 1),
    "permute": lambda t: t.permute(1, 0),
    "squeeze": lambda t: t[None].squeeze(0),
    "dtype": lambda t: t.view(torch.int32),
    "split": lambda t: t.split(2)[1],
    "chunk": lambda t: t.chunk(2, dim=1)[0],
    "unbind": lambda t: t.unbind()[2],
    "flatten": lambda t: t.flatten(),
    "movedim": lambda t: t.movedim(0, 1),
    "detach": lambda t: t.detach(),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_share_memory(device, view):
    here = torch.arange(24.0).reshape(4, 6)
    there = here.to(device)
    assert torch.equal(VIEWS[view](there).cpu(), VIEWS[view](here))
    if view != "reshape":  # of a transposed tensor: a copy
        assert VIEWS[view](there).untyped_storage().data_ptr() == there.untyped_storage().data_ptr()


def test_complex_views(device):
    here = torch.randn(3, 4, 2)
    there = torch.view_as_complex(here.to(device))
    assert torch.equal(there.cpu(), torch.view_as_complex(here))
    assert torch.equal(torch.view_as_real(there).cpu(), here)
    assert torch.equal(there.imag.cpu(), here[..., 1])


def test_indexing(device):
    here = torch.arange(24.0).reshape(4, 6)
    there = here.to(device)
    mask = here > 10
    index = torch.tensor([3, 0, 0])
    assert torch.equal(there[mask.to(device)].cpu(), here[mask])
    assert torch.equal(there[index.to(device)].cpu(), here[index])
    there[mask.to(device)] = -1
    here[mask] = -1
    there[index.to(device), 1] += 5
    here[index, 1] += 5
    assert torch.equal(there.cpu(), here)


def test_printing(device):
    text = repr(torch.arange(3.0).to(device))
    assert text == f"tensor([0., 1., 2.], device='{device}')"


def test_no_copy_to_numpy_without_asking(device):
    with pytest.raises(TypeError):
        torch.ones(2, device=device).numpy()
    assert torch.ones(2, device=device).cpu().numpy().tolist() == [1.0, 1.0]


def test_save_and_load(device, other):
    values = torch.randn(3, 4)
    file = io.BytesIO()
    torch.save({"w": values.to(device)}, file)
    for target in (None, "cpu", other):
        file.seek(0)
        loaded = torch.load(file, map_location=target)["w"]
        assert loaded.device == (device if target is None else torch.device(target))
        assert torch.equal(loaded.cpu(), values)


def test_pickle_and_deepcopy(device):
    tensor = torch.randn(3, device=device)
    assert torch.equal(pickle.loads(pickle.dumps(tensor)).cpu(), tensor.cpu())
    twin = copy.deepcopy(tensor)
    twin += 1
    assert twin.device == device
    assert not torch.equal(twin.cpu(), tensor.cpu())


def test_out_of_memory_is_pytorch_s_error(device):
    with pytest.raises(
        torch.OutOfMemoryError, match=r"Tried to allocate 4\.00 EiB(\. .*| on )\w+:0"
    ):
        torch.empty(1 << 60, device=device)


def test_operands_on_two_devices_are_refused(device, other):
    here, there = torch.ones(2, 2, device=device), torch.ones(2, 2, device=other)
    for operate in (torch.add, torch.mm, torch.cdist, mse_loss):
        with pytest.raises(RuntimeError, match="tensors to be on the same device"):
            operate(here, there)
    with pytest.raises(RuntimeError, match="tensors to be on the same device"):
        torch.mm(here, here, out=there)


def test_a_tensor_can_be_recorded_on_the_default_stream(device, stream):
    tensor = torch.ones(2, device=device)
    tensor.record_stream(stream)
    assert tensor.cpu().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64, torch.int32])
def test_new_memory_is_filled_where_results_must_be_deterministic(device, dtype):
    def make(place):
        return [
            torch.empty(100, dtype=dtype, device=place),
            torch.empty_strided((2, 3), (1, 2), dtype=dtype, device=place),
            torch.zeros(4, dtype=dtype, device=place).resize_(100),
        ]

    del make(device)[:]
    torch.use_deterministic_algorithms(True)
    try:
        made, wanted = make(device), make("cpu")
    finally:
        torch.use_deterministic_algorithms(False)
    for one, other in zip(made, wanted):
        assert one.stride() == other.stride()
        bits = [each.contiguous().view(torch.uint8) for each in (one.cpu(), other)]
        assert torch.equal(*bits)
