# SPDX-License-Identifier: Apache-2.0
"""Storages on the device, typed and untyped: made, copied, moved, changed, saved."""

import copy
import io

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


@pytest.fixture
def storage(device):
    """24 bytes, those of the numbers 0 to 5."""
    return torch.arange(6.0, device=device).untyped_storage()


@pytest.fixture
def typed(device):
    return torch.arange(6.0, device=device).storage()


def test_what_it_says_of_itself(name, device, storage):
    assert storage.device == device
    assert getattr(storage, f"is_{name}")
    assert not storage.is_cuda
    assert storage.get_device() == 0
    assert storage.nbytes() == storage.size() == len(storage) == 24
    assert torch.serialization.location_tag(storage) == f"{name}:0"
    assert not getattr(torch.UntypedStorage(4), f"is_{name}")


def test_it_moves_by_name(name, device, other, storage):
    move = getattr(storage, name)
    assert move() is storage
    there = getattr(storage, name)(1)
    assert there.device == other
    assert there.tolist() == storage.tolist()
    assert getattr(torch.UntypedStorage([1, 2, 3]), name)().device == device


def test_it_moves_by_to(other, storage):
    assert storage.to(device=other).device == other
    assert storage.cpu().device.type == "cpu"
    assert storage.cpu().tolist() == storage.tolist()


@pytest.mark.parametrize(
    "index", ["", ":0", pytest.param(":1", marks=pytest.mark.needs("devices"))]
)
def test_made_on_a_device(name, index):
    made = torch.UntypedStorage(16, device=name + index)
    assert made.device == torch.empty(0, device=name + index).device
    assert made.nbytes() == 16
    assert torch.UntypedStorage([1, 2, 255], device=name + index).tolist() == [1, 2, 255]


def test_made_on_no_device(name, beyond):
    with pytest.raises(RuntimeError, match=f"{beyond} is out of range: there (is|are) {beyond} "):
        torch.UntypedStorage(8, device=f"{name}:{beyond}")


def test_no_bytes(device):
    made = torch.UntypedStorage(0, device=device)
    assert made.nbytes() == 0
    assert made.tolist() == []
    assert made.clone().device == device


@pytest.mark.parametrize("source", ["cpu", "device", "other"])
@pytest.mark.parametrize("target", ["cpu", "device", "other"])
def test_copied_into(device, other, source, target):
    places = {"cpu": torch.device("cpu"), "device": device, "other": other}
    from_ = torch.UntypedStorage([1, 2, 3, 4], device=places[source])
    to = torch.UntypedStorage(4, device=places[target])
    assert to.copy_(from_) is to
    assert to.tolist() == [1, 2, 3, 4]
    assert to.device == places[target]


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda one: one.clone()])
def test_copies_are_their_own(device, storage, way):
    twin = way(storage)
    assert twin.device == device
    assert twin.tolist() == storage.tolist()
    twin.fill_(7)
    assert twin.tolist() == [7] * 24
    assert storage[0] == 0


def test_bytes_are_read_and_written(storage):
    storage[1] = 200
    assert storage[1] == 200
    storage[4:8] = 3
    assert storage.tolist()[:9] == [0, 200, 0, 0, 3, 3, 3, 3, 0]
    with pytest.raises(IndexError):
        storage[24]


def test_a_slice_shares_its_bytes(device, storage):
    part = storage[4:8]
    assert part.device == device
    part.fill_(0)
    assert storage.tolist()[4:8] == [0] * 4


@pytest.mark.parametrize("size", [0, 8, 24, 4096])
def test_resized(storage, size):
    before = storage.tolist()
    storage.resize_(size)
    assert storage.nbytes() == size
    kept = min(size, 24)
    assert storage.tolist()[:kept] == before[:kept]


@pytest.mark.needs("devices")
def test_a_size_that_no_device_has_changes_nothing(module, name):
    tensor = torch.arange(6.0, device=f"{name}:1")
    for grow in (
        lambda: tensor.untyped_storage().resize_(1 << 50),
        lambda: tensor.resize_(1 << 48),
        lambda: tensor.set_(tensor.untyped_storage(), 0, (1 << 48,)),
        lambda: tensor.set_(torch.empty(0, device=tensor.device).untyped_storage(), 0, (1 << 48,)),
    ):
        with pytest.raises(torch.OutOfMemoryError):
            grow()
        assert module.current_device() == 0
        assert tensor.cpu().tolist() == [0, 1, 2, 3, 4, 5]


def test_a_tensor_sees_a_resized_storage(device):
    tensor = torch.arange(4.0, device=device)
    tensor.untyped_storage().resize_(0)
    tensor.untyped_storage().resize_(16)
    assert tensor.fill_(2).tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "work",
    [
        lambda view: view.zero_(),
        lambda view: torch._foreach_zero_([view]),
        lambda view: torch.sin(view, out=view),
        lambda view: view.add(1),
        lambda view: view.view(-1),
    ],
    ids=["in place", "foreach", "out", "read", "view"],
)
def test_an_empty_view_needs_no_memory(module, device, work):
    """Even one that begins behind all elements of a tensor whose memory was given up."""
    tensor = torch.ones(1_000_000, device=device)
    view = tensor[1_000_000:]
    tensor.untyped_storage().resize_(0)
    before = module.memory_allocated()
    work(view)
    size = tensor.untyped_storage().nbytes()
    assert size == 0
    assert module.memory_allocated() == before


def test_an_empty_view_among_others(device):
    tensor = torch.arange(4096.0, device=device)
    torch._foreach_add_([tensor[4096:], tensor[2048:], tensor[:0]], 1)
    assert tensor.sum().item() == sum(range(4096)) + 2048


def test_a_tensor_of_a_storage(device, storage):
    tensor = torch.empty(0, device=device).set_(storage, 1, (2,), (2,))
    assert tensor.tolist() == [1, 3]
    tensor.zero_()
    assert storage.tolist()[4:8] == [0] * 4
    with pytest.raises(RuntimeError, match="device"):
        torch.empty(0).set_(storage, 0, (2,), (1,))


def test_converted(device, storage):
    for made in (storage.float(), storage.long(), storage.bool()):
        assert made.device == device
        assert made.size() == 24


@pytest.mark.parametrize("weights_only", [True, False])
def test_saved(device, other, storage, weights_only):
    file = io.BytesIO()
    torch.save(storage, file)
    for place in (device, other, torch.device("cpu")):
        file.seek(0)
        loaded = torch.load(file, map_location=place, weights_only=weights_only)
        assert loaded.device == place
        assert loaded.tolist() == storage.tolist()


def test_saved_with_its_tensor(device):
    tensor = torch.arange(4.0, device=device)
    file = io.BytesIO()
    torch.save((tensor, tensor.storage()), file)
    file.seek(0)
    one, storage = torch.load(file, weights_only=False)
    one[0] = 9
    assert storage.tolist() == [9, 1, 2, 3]


def test_written_to_a_file(tmp_path, device, storage):
    with open(tmp_path / "bytes", "wb") as file:
        storage._write_file(file, True, False, 1)
    assert (tmp_path / "bytes").read_bytes() == bytes(storage.tolist())
    read = torch.UntypedStorage.from_file(str(tmp_path / "bytes"), False, 24)
    assert read.tolist() == storage.tolist()


def test_typed(name, device, other, typed):
    assert getattr(typed, f"is_{name}")
    assert typed.device == device
    assert typed.dtype == torch.float32
    assert typed.size() == len(typed) == 6
    assert typed[1] == 1
    typed[1] = 5
    assert typed.tolist() == [0, 5, 2, 3, 4, 5]
    assert getattr(typed, name)(1).device == other
    assert typed.cpu().tolist() == typed.tolist()
    assert typed.double().tolist() == typed.tolist()
    assert typed.double().device == device
    assert typed.clone().fill_(3.0).tolist() == [3] * 6
    assert copy.deepcopy(typed).tolist() == typed.tolist()
    assert torch.TypedStorage(4, device=device, dtype=torch.int16).device == device


def test_typed_is_saved(device, typed):
    file = io.BytesIO()
    torch.save(typed, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert loaded.device == device
    assert loaded.dtype == torch.float32
    assert loaded.tolist() == typed.tolist()


# What PyTorch does not allow of storages on such a device; docs/serialization.md lists it.


def test_pinning_is_for_the_cpu(storage):
    with pytest.raises(TypeError, match="only CPU memory can be pinned"):
        storage.pin_memory()
    assert not storage.is_pinned()


def test_sharing_does_nothing(storage):
    with pytest.warns(UserWarning, match="cannot share memory"):
        assert storage.share_memory_() is storage
    assert storage.tolist()[6:8] == [128, 63]


def test_a_copy_on_the_cpu_can_be_sent(device):
    import torch.multiprocessing

    queue = torch.multiprocessing.get_context("fork").SimpleQueue()
    queue.put(torch.arange(3.0, device=device).cpu())
    assert queue.get().to(device).tolist() == [0, 1, 2]
