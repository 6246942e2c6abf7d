# SPDX-License-Identifier: Apache-2.0
"""What the CPU's results carry beside numbers, the device's carry as well."""

import gc
import pickle

import pytest
import torch
from backend import RELEASE
from likeness import assert_alike
from stream_tools import on
from torch import nn

pytestmark = [pytest.mark.filterwarnings("ignore")]


def complex_numbers(*size, device, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*size, dtype=torch.complex64, generator=generator).to(device)


@pytest.mark.needs("fallback")
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_solutions_of_complex_systems(device, left, adjoint):
    def compute(where):
        a = complex_numbers(3, 3, device=where)
        b = complex_numbers(3, 3, device=where, seed=1)
        a = a.mH if adjoint else a
        lu, pivots = torch.linalg.lu_factor(a)
        return (
            torch.linalg.solve(a, b, left=left),
            torch.linalg.lu_solve(lu, pivots, b, left=left, adjoint=adjoint),
            torch.linalg.solve(a, b, left=left, out=torch.empty_like(b)),
            torch.linalg.solve_ex(a, b, left=left)[0],
        )

    assert_alike(compute, device)


@pytest.mark.needs("fallback")
@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_gradients_of_reducing_products_of_sparse_matrices(device, reduce):
    def compute(where):
        dense = torch.tensor([[1.0, 0, 2], [0, 3, 0], [4, 0, 5]], device=where)
        a = dense.to_sparse_csr().requires_grad_()
        b = torch.arange(6.0, device=where).view(3, 2).requires_grad_()
        y = torch.sparse.mm(a, b, reduce)
        return y, *torch.autograd.grad(y.sum(), (a, b))

    assert_alike(compute, device)


def heads(where, layout):
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0)).to(where)
    return {
        "heads inside": lambda: x.view(2, 5, 3, 4).transpose(1, 2),
        "heads outside": lambda: x.view(2, 3, 5, 4),
        "expanded": lambda: x.view(2, 5, 3, 4).transpose(1, 2)[:, :1].expand(2, 3, 5, 4),
        "one head": lambda: x.view(2, 5, 1, 12).transpose(1, 2),
    }[layout]()


@pytest.mark.needs("fallback of bmm")
@pytest.mark.parametrize("layout", ["heads inside", "heads outside", "expanded", "one head"])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": "mask"}])
def test_attention_has_the_layout_of_the_cpu(device, layout, options):
    def compute(where):
        query = heads(where, layout).detach().requires_grad_()
        mask = torch.ones(5, 5, dtype=torch.bool, device=where).tril()
        given = {key: mask if value == "mask" else value for key, value in options.items()}
        result = nn.functional.scaled_dot_product_attention(query, query, query, **given)
        return result, torch.autograd.grad(result.sum(), query)

    assert_alike(compute, device)


@pytest.mark.parametrize("size", [(), (1,), (3,), (0,), (2, 2), (1, 1)])
@pytest.mark.parametrize(
    "read", [torch.Tensor.item, torch.ops.aten._local_scalar_dense, float, bool, int]
)
def test_numbers_out_of_tensors(device, read, size):
    if RELEASE < (2, 7) and size == (0,) and read is torch.ops.aten._local_scalar_dense:
        # The CPU's kernel ends the process there.
        with pytest.raises(RuntimeError, match="Empty tensor not supported"):
            read(torch.empty(size, device=device))
        return
    assert_alike(lambda where: read(torch.full(size, 2.0).to(where)), device)


def test_a_lazy_clone_shares_until_it_is_written_to(module, device):
    gc.collect()
    before = module.memory_allocated() if hasattr(module, "memory_allocated") else 0

    def compute(where):
        is_shared = torch._C._is_cow_tensor
        a = torch.arange(6.0).to(where).view(2, 3)
        b = torch._lazy_clone(a)
        c = torch._lazy_clone(b[0])
        found = [is_shared(a), is_shared(b), is_shared(c), a + b]
        b += 1
        found += [is_shared(a), is_shared(b), a.clone(), b.clone(), c.clone()]
        del b, c
        a += 1
        found += [is_shared(a), a.clone()]
        return found

    assert_alike(compute, device)
    gc.collect()
    if hasattr(module, "memory_allocated"):
        assert module.memory_allocated() == before


def test_gradients_go_through_a_lazy_clone(device):
    def compute(where):
        x = torch.ones(3).to(where).requires_grad_()
        return torch.autograd.grad((torch._lazy_clone(x) * 2).sum(), x)

    assert_alike(compute, device)


def test_a_lazy_clone_may_be_resized(device):
    a = torch.arange(6.0).to(device)
    b = torch._lazy_clone(a)
    a.resize_(12)[6:] = 7
    b.untyped_storage().resize_(8)
    assert a.tolist() == [0, 1, 2, 3, 4, 5] + [7] * 6
    assert torch.empty(0, device=device).set_(b.untyped_storage()).tolist() == [0, 1]


@pytest.mark.needs("devices")
@pytest.mark.parametrize(
    "read",
    [
        torch.Tensor.data_ptr,
        lambda one: one.untyped_storage().data_ptr(),
        lambda one: one.untyped_storage().fill_(7),
        pytest.param(
            torch.utils.dlpack.to_dlpack,
            marks=pytest.mark.skipif(
                RELEASE < (2, 6),
                reason="PyTorch 2.5 cannot export tensors of such a device with DLPack",
            ),
        ),
        pickle.dumps,
        lambda one: one.untyped_storage().resize_(64),
    ],
)
def test_a_lazy_clone_is_copied_on_its_own_device(name, read):
    source = torch.arange(4.0, device=f"{name}:1")
    clone = torch._lazy_clone(source)
    read(clone)
    source += 1
    assert clone.device.index == 1
    assert source.tolist() == [1, 2, 3, 4]
    del source
    clone.fill_(3)
    assert clone.tolist()[:4] == [3, 3, 3, 3]


def test_the_memory_of_lazy_clones_that_a_stream_uses_is_kept(device, streams, work):
    producer, consumer = streams
    with on(producer):
        source = torch.arange(1000.0).to(device)
        place = source.data_ptr()
        clone = torch._lazy_clone(source)
        del source
    work(consumer)
    clone.record_stream(consumer)
    del clone
    with on(producer):
        others = [torch.full((1000,), -1.0).to(device) for _ in range(5)]
        assert not consumer.query()
        assert place not in [one.data_ptr() for one in others]
    consumer.synchronize()
    with on(producer):
        torch.empty(1, device=device)
        assert torch.empty(1000, device=device).data_ptr() == place
