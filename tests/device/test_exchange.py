# SPDX-License-Identifier: Apache-2.0
"""Exchange with NumPy and by DLPack."""

import numpy as np
import pytest
import torch
from backend import RELEASE
from torch.utils.dlpack import from_dlpack, to_dlpack

EXTENSION_DEVICE = 12  # DLPack's kDLExtDev
packs = pytest.mark.skipif(
    RELEASE < (2, 6), reason="PyTorch 2.5 cannot export tensors of such a device with DLPack"
)


def numbers(place):
    return torch.arange(6.0, device=place).reshape(2, 3)


TO_THE_DEVICE = {
    "tensor": lambda array, place: torch.tensor(array, device=place),
    "as_tensor": lambda array, place: torch.as_tensor(array, device=place),
    "asarray": lambda array, place: torch.asarray(array, device=place),
    "from_numpy": lambda array, place: torch.from_numpy(array).to(place),
    "frombuffer": lambda array, place: torch.frombuffer(array, dtype=torch.int32).to(place),
}


@pytest.mark.parametrize("way", TO_THE_DEVICE)
def test_from_numpy(other, way):
    array = np.arange(4, dtype=np.int32)
    there = TO_THE_DEVICE[way](array, other)
    assert there.device == other
    assert there.dtype == torch.int32
    array[0] = 9  # a copy, not the array's memory
    assert there.tolist() == [0, 1, 2, 3]


def test_from_a_strided_array(device):
    array = np.arange(6.0).reshape(2, 3)
    assert torch.tensor(array.T, device=device).tolist() == array.T.tolist()
    assert torch.from_numpy(array[:, ::2]).to(device).tolist() == array[:, ::2].tolist()


def test_to_numpy(device):
    array = numbers(device).cpu().numpy()
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert numbers(device).t().numpy(force=True).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert numbers(device).requires_grad_().numpy(force=True).shape == (2, 3)


@pytest.mark.filterwarnings("ignore:__array__ implementation")
@pytest.mark.parametrize("read", [torch.Tensor.numpy, np.asarray, np.array])
def test_numpy_does_not_read_the_device(device, read):
    with pytest.raises(TypeError, match=rf"can't convert {device} device type tensor to numpy"):
        read(numbers(device))


def test_numbers_leave_by_themselves(device):
    assert numbers(device).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert float(numbers(device)[1, 2]) == 5
    assert np.full(2, numbers(device)[1, 2].item()).tolist() == [5, 5]
    index = torch.tensor(1, device=device)
    assert [10, 20][index] == 20


@pytest.mark.parametrize("which", ["device", "other"])
def test_dlpack_names_the_device(request, which):
    place = request.getfixturevalue(which)
    assert numbers(place).__dlpack_device__() == (EXTENSION_DEVICE, place.index)


def test_dlpack_names_the_cpu_as_before(device):
    torch.ones(1, device=device)
    assert torch.ones(2).__dlpack_device__() == (1, 0)
    with pytest.raises(ValueError, match="Unknown device type meta for Dlpack"):
        torch.ones(2, device="meta").__dlpack_device__()


def test_pytorch_s_function_is_the_same_object(device):
    torch.ones(1, device=device)
    function = torch.Tensor.__dlpack_device__
    assert function.__module__ == "torch._tensor"
    assert function.__name__ == "__dlpack_device__"
    asked = []

    class Watching(torch.Tensor):
        @classmethod
        def __torch_function__(cls, called, types, args=(), kwargs=None):
            asked.append(called)
            return super().__torch_function__(called, types, args, kwargs or {})

    assert numbers(device).as_subclass(Watching).__dlpack_device__()[0] == EXTENSION_DEVICE
    assert numbers("cpu").as_subclass(Watching).__dlpack_device__() == (1, 0)
    assert asked.count(function) == 2


@packs
@pytest.mark.parametrize("way", ["tensor", "capsule", "capsule of the method"])
@pytest.mark.parametrize("which", ["device", "other"])
def test_from_dlpack_shares_memory(request, which, way):
    place = request.getfixturevalue(which)
    values = numbers(place)[:, 1:]
    given = {
        "tensor": lambda: values,
        "capsule": lambda: to_dlpack(values),
        "capsule of the method": values.__dlpack__,
    }[way]()
    twin = torch.from_dlpack(given) if way != "capsule" else from_dlpack(given)
    assert twin.device == place
    assert twin.data_ptr() == values.data_ptr()
    assert twin.stride() == values.stride()
    assert torch.equal(twin.cpu(), values.cpu())
    twin.fill_(9)
    assert values[0, 0] == 9


@packs
@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
    + [torch.complex64],
    ids=str,
)
def test_dlpack_dtypes(device, dtype):
    values = numbers("cpu").to(dtype)
    twin = torch.from_dlpack(values.to(device))
    assert twin.dtype == dtype
    assert torch.equal(twin.cpu(), values)


@packs
def test_memory_of_a_capsule_stays(module, device):
    twin = torch.from_dlpack(to_dlpack(torch.full((1000,), 3.0, device=device)))
    for _ in range(10):
        torch.zeros(1000, device=device)
    assert bool((twin == 3).all())


@packs
def test_a_capsule_that_nobody_takes_frees_its_memory(module, device):
    module.synchronize()
    before = module.memory_allocated()
    capsule = to_dlpack(torch.ones(1 << 16, device=device))
    assert module.memory_allocated() > before
    del capsule
    assert module.memory_allocated() == before


if RELEASE < (2, 6):

    def test_nothing_is_packed(device):
        with pytest.raises(RuntimeError, match=f"Cannot pack tensors on {device}"):
            to_dlpack(torch.empty(0, device=device))  # 2.5 never frees what it refuses


def test_gradients_and_conjugates_do_not_go(device):
    with pytest.raises((BufferError, RuntimeError), match="require gradient"):
        numbers(device).requires_grad_().__dlpack__()
    with pytest.raises((BufferError, RuntimeError), match="conjugate bit"):
        torch.ones(2, dtype=torch.complex64, device=device).conj().__dlpack__()
    with pytest.raises((BufferError, RuntimeError), match="layout"):
        numbers(device).to_sparse().__dlpack__()


def test_numpy_does_not_take_such_a_device(device):
    with pytest.raises((RuntimeError, BufferError), match="[Dd]evice|Cannot pack"):
        np.from_dlpack(torch.empty(0, device=device))  # 2.5 never frees what it refuses


if "device" in (torch.from_dlpack.__doc__ or ""):  # since PyTorch 2.9

    def test_from_dlpack_to_a_device(device, other):
        assert torch.from_dlpack(numbers("cpu"), device=device).device == device
        assert torch.from_dlpack(numbers(device), device="cpu").tolist() == numbers("cpu").tolist()
        assert torch.from_dlpack(numbers(device), device=other).device == other


def test_the_array_interfaces_are_not_there(device):
    assert not hasattr(numbers(device), "__array_interface__")
    assert not hasattr(numbers(device), "__cuda_array_interface__")
