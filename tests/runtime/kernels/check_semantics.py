# SPDX-License-Identifier: Apache-2.0
"""Calls on the device against the same calls on the CPU: results, strides, errors, warnings.

Run by test_kernels.py in a process that has a backend, whose mode KERNELS_MODE tells.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

import pytest
import torch
import torch_foo  # noqa: F401  registers the device
from torch.nn.functional import embedding, layer_norm

DEVICE = "foo"
RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])
torch.set_warn_always(True)
DENSE = os.environ["KERNELS_MODE"] == "dense"
Call = Callable[[str], object]


def values(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """The same numbers each time."""
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(*shape, generator=generator, dtype=dtype)
    high = 2 if dtype == torch.bool else 9
    return torch.randint(0, high, shape, generator=generator).to(dtype)


def outcome(call: Call, device: str) -> tuple[object, list[str]]:
    """What a call gives, or the class of what it raises; and its warnings' classes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(device)
        except Exception as problem:
            result = problem
    return result, [one.category.__name__ for one in caught]


def same(call: Call, strides: bool = True) -> None:
    (here, here_warns), (there, there_warns) = outcome(call, "cpu"), outcome(call, DEVICE)
    if isinstance(here, Exception) or isinstance(there, Exception):
        # Before 2.8 the CPU raises RuntimeError for a dtype that it lacks, since then its subclass.
        assert isinstance(there, type(here)), f"CPU: {here!r}\ndevice: {there!r}"
        assert type(there) is type(here) or RELEASE < (2, 8), f"CPU: {here!r}\ndevice: {there!r}"
        return
    assert there_warns == here_warns
    ours = there if isinstance(there, (tuple, list)) else [there]
    theirs = here if isinstance(here, (tuple, list)) else [here]
    assert len(ours) == len(theirs)
    for one, two in zip(ours, theirs):
        assert one.device.type == DEVICE
        assert one.dtype == two.dtype
        assert one.shape == two.shape
        if strides:
            assert one.stride() == two.stride()
        torch.testing.assert_close(one.cpu(), two, equal_nan=True, rtol=1e-5, atol=1e-5)


def fails(call: Call) -> None:
    """The CPU refuses the call, and so does the device, with an error of the same class."""
    assert isinstance(outcome(call, "cpu")[0], Exception)
    same(call)


BINARY = [torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum]
COMPARE = [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge]
UNARY = [
    torch.neg, torch.exp, torch.log, torch.sqrt, torch.rsqrt, torch.sin, torch.cos, torch.tanh,
    torch.sigmoid, torch.nn.functional.silu, torch.nn.functional.gelu,
    lambda x: torch.clamp(x, -0.5, 0.5), lambda x: torch.pow(x, 2), lambda x: torch.pow(x, 0.5),
]  # fmt: skip
# Not structured: in dense mode their kernels see contiguous tensors, and give such.
PLAIN = [torch.relu, torch.abs]
VIEWS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1),
    "permuted": lambda x: x.permute(2, 0, 3, 1),
    "flipped": lambda x: x.flip(0),
    "strided": lambda x: x[:, ::2],
    "narrowed": lambda x: x.narrow(2, 1, 2),
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "expanded": lambda x: x[:, :1].expand(-1, 3, -1, -1),
    "selected": lambda x: x[0, 0, 0, 0],
    "empty": lambda x: x[:, :0],
    "imag": lambda x: torch.complex(x, x).conj().imag,
}
DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool,
    torch.complex64,
]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("op", [*UNARY, *PLAIN])
def test_views_of_one_argument(op: Callable, view: str) -> None:
    same(
        lambda d: op(VIEWS[view](values(2, 4, 3, 5).to(d))),
        not (op in PLAIN and (DENSE or view == "empty")),
    )


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("op", [*BINARY, *COMPARE])
def test_views_of_two_arguments(op: Callable, view: str) -> None:
    def call(d: str) -> object:
        left, right = values(2, 4, 3, 5).to(d), values(2, 4, 3, 5, seed=1).to(d)
        return op(VIEWS[view](left), VIEWS[view](right))

    same(call)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    "op",
    [
        lambda x: x.sum(), lambda x: x.sum(-1), lambda x: x.mean((0, -1), keepdim=True),
        lambda x: x.amax(0), lambda x: x.amax(), lambda x: x.argmax(), lambda x: x.argmax(-1, True),
        lambda x: x.max(0), lambda x: x.cumsum(-1), lambda x: x.softmax(0),
        lambda x: x.log_softmax(-1), lambda x: x.tril(), lambda x: x.triu(1),
        lambda x: torch.cat([x, x], -1), lambda x: x[x > 0], lambda x: x[[0, -1]],
        lambda x: x[:, [0, 0]], lambda x: x.index_select(0, torch.tensor([0], device=x.device)),
        lambda x: torch.where(x > 0, x, 0), lambda x: x.masked_fill(x > 0, 3),
        lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    ],
)  # fmt: skip
def test_views_of_what_is_not_elementwise(op: Callable, view: str) -> None:
    same(lambda d: op(VIEWS[view](values(2, 4, 3, 5).to(d))), False)


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
@pytest.mark.parametrize("op", [torch.add, torch.mul, torch.div, torch.maximum, torch.lt])
def test_promotion(op: Callable, left: torch.dtype, right: torch.dtype) -> None:
    same(lambda d: op(values(3, 2, dtype=left).to(d), values(2, dtype=right, seed=1).to(d)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [True, 2, 2.5, 1j, torch.tensor(3), torch.tensor(2.5).double()])
@pytest.mark.parametrize("op", [torch.add, torch.mul, torch.div, torch.eq])
def test_numbers(op: Callable, number: object, dtype: torch.dtype) -> None:
    same(lambda d: op(values(2, 3, dtype=dtype).to(d), number))
    same(lambda d: op(number, values(2, 3, dtype=dtype).to(d)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "op",
    [
        *UNARY, *PLAIN, torch.sum, torch.mean, torch.amax, torch.argmax, torch.any,
        lambda x: x.cumsum(0), lambda x: x.max(0), lambda x: x.softmax(0), lambda x: x & x,
        lambda x: x @ x, lambda x: torch.addmm(x, x, x), lambda x: x.sum(dtype=torch.float32),
        lambda x: x.sum(dtype=torch.bool), lambda x: x.mean(dtype=torch.float64),
        lambda x: x.tril(), lambda x: x[[1, 0]], lambda x: x.fill_(2), lambda x: x.clamp(1, None),
        lambda x: x.gather(0, torch.zeros(1, 2, dtype=torch.long, device=x.device)),
    ],
)  # fmt: skip
def test_dtypes(op: Callable, dtype: torch.dtype) -> None:
    same(lambda d: op(values(3, 3, dtype=dtype).to(d)))


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 1), (1, 4)), ((), (2, 3)), ((2, 3), ()), ((4, 1, 3), (2, 1)), ((0, 3), (1, 3)), ((), ())],
)
@pytest.mark.parametrize("op", [*BINARY, *COMPARE])
def test_broadcasting(op: Callable, left: tuple, right: tuple) -> None:
    same(lambda d: op(values(*left).to(d), values(*right, seed=1).to(d)))


def with_out(op: Callable, out: Callable[[str], torch.Tensor]) -> Call:
    def call(d: str) -> object:
        tensors = [values(3, 4).to(d), values(3, 4, seed=1).to(d)]
        return op(*tensors, out=out(d))

    return call


OUTS = {
    "as it should be": lambda d: torch.empty(3, 4, device=d),
    "of no elements": lambda d: torch.empty(0, device=d),
    "too small": lambda d: torch.empty(2, 2, device=d),
    "too large": lambda d: torch.empty(5, 5, device=d),
    "transposed": lambda d: torch.empty(4, 3, device=d).t(),
    "strided": lambda d: torch.zeros(3, 8, device=d)[:, ::2],
    "float64": lambda d: torch.empty(3, 4, dtype=torch.float64, device=d),
    "int64": lambda d: torch.empty(3, 4, dtype=torch.int64, device=d),
    "bool": lambda d: torch.empty(3, 4, dtype=torch.bool, device=d),
    "complex": lambda d: torch.empty(3, 4, dtype=torch.complex64, device=d),
    "expanded": lambda d: torch.empty(3, 1, device=d).expand(3, 4),
    "meta": lambda d: torch.empty(3, 4, device="meta"),
}


def torch_tril(a: torch.Tensor, _: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    # The CPU does not notice that elements share their memory; what is there then is undefined.
    wanted = torch.empty(3, 4, device=a.device) if 0 in out.stride() else out
    return torch.tril(a, out=wanted)


@pytest.mark.parametrize("out", OUTS)
@pytest.mark.parametrize(
    "op",
    [
        torch.add, torch.lt, torch.maximum, torch.div,
        lambda a, b, out: torch.exp(a, out=out), lambda a, b, out: torch.cumsum(a, 0, out=out),
        torch_tril,
        lambda a, b, out: torch.cat([a[:1], b[1:]], out=out),
        lambda a, b, out: torch.addmm(a, a[:, :3], b, out=out),
        lambda a, b, out: torch.index_select(a, 0, torch.arange(3, device=a.device), out=out),
    ],
)  # fmt: skip
def test_out(op: Callable, out: str) -> None:
    same(with_out(op, OUTS[out]))


def test_out_of_another_device() -> None:
    for op in (torch.add, torch.mul):
        with pytest.raises(RuntimeError):
            op(values(2).to(DEVICE), values(2).to(DEVICE), out=torch.empty(2))
        with pytest.raises(RuntimeError):
            op(values(2).to("foo:0"), values(2).to("foo:0"), out=torch.empty(2, device="foo:1"))


def test_two_devices() -> None:
    one, other, here = (values(2, 2).to(d) for d in ("foo:0", "foo:1", "cpu"))
    for op in (torch.add, torch.mm, torch.maximum, torch.eq, torch.bmm):
        for left, right in ((one, other), (one, here), (here, one)):
            if op is torch.bmm:
                left, right = left[None], right[None]
            with pytest.raises(RuntimeError, match="same device"):
                op(left, right)
    assert (one + torch.tensor(1.0)).device == torch.device("foo:0")
    assert torch.add(other, other).device == torch.device("foo:1")


IN_PLACE = {
    "same tensor": lambda x: x.add_(x),
    "expanded": lambda x: x[:, :1].expand(4, 4).add_(1),
    "overlapping slices": lambda x: x[1:].add_(x[:-1]),
    "overlapping slices back": lambda x: x[:-1].mul_(x[1:]),
    "transposed": lambda x: x.add_(x.t()),
    "view": lambda x: x.view(-1).mul_(2),
    "strided": lambda x: x[:, ::2].add_(1),
    "broadcast": lambda x: x.add_(x[0]),
    "too small": lambda x: x[0].add_(x),
    "promotes": lambda x: x.long().add_(1.5),
    "int division": lambda x: x.long().div_(2),
    "bool": lambda x: (x > 0).add_(1),
    "wider": lambda x: x.add_(x.double()),
    "complex": lambda x: x.add_(1j),
    "bool to float": lambda x: x.add_(x > 0),
    "compare": lambda x: x.lt_(0),
    "clamp": lambda x: x.clamp_(0, 1),
    "clamp of int": lambda x: x.long().clamp_(0.5),
    "out is input": lambda x: torch.sub(x, x.flip(0), out=x),
    "out overlaps": lambda x: torch.add(x[1:], 1, out=x[:-1]),
    "cumsum": lambda x: x.cumsum_(1),
    "tril": lambda x: x.tril_(),
    "triu of a view": lambda x: x.t().triu_(),
    "addmm": lambda x: x.addmm_(x.clone(), x.clone()),
    "addmm of a view": lambda x: x.t().addmm_(x.clone(), x.clone(), beta=0.5, alpha=2),
    "scatter_add": lambda x: x.scatter_add_(0, (x > 0).long(), x.clone()),
    "fill expanded": lambda x: x[:1].expand(4, 4).fill_(2),
    "fill strided": lambda x: x[:, 1::2].fill_(2),
    "fill too large": lambda x: x.long().fill_(1e30),
    "masked_fill": lambda x: x.t().masked_fill_(x > 0, -1),
    "masked_fill of int": lambda x: x.masked_fill_(x.long(), -1),
    "masked_fill too large": lambda x: x[0].masked_fill_(x > 0, -1),
    "relu": lambda x: x.t().relu_(),
    "exp": lambda x: x[::2].exp_(),
    "exp of int": lambda x: x.long().exp_(),
}


@pytest.mark.parametrize("case", IN_PLACE)
def test_in_place(case: str) -> None:
    def call(d: str) -> object:
        tensor = values(4, 4).to(d)
        return IN_PLACE[case](tensor), tensor

    same(call)


INDICES = {
    "nothing": lambda x: x[torch.tensor([], dtype=torch.long, device=x.device)],
    "one": lambda x: x[torch.tensor(1, device=x.device)],
    "negative": lambda x: x[[-1, 0], [0, -2]],
    "matrix": lambda x: x[torch.tensor([[0, 1], [1, 0]], device=x.device)],
    "second": lambda x: x[:, [1, 0]],
    "apart": lambda x: x[[0, 1], :, [1, 0]],
    "last": lambda x: x[..., [0, 1]],
    "broadcast": lambda x: x[[[0], [1]], [0, 1]],
    "mask": lambda x: x[x > 0],
    "mask of rows": lambda x: x[x[:, 0, 0] > 0],
    "mask of columns": lambda x: x[:, x[0, :, 0] > 0],
    "empty mask": lambda x: x[x > 100],
    "mask and numbers": lambda x: x[x[:, 0, 0] > -100, [0, 1]],
    "int32": lambda x: x[torch.tensor([1, 0], dtype=torch.int32, device=x.device)],
    "uint8": lambda x: x[torch.tensor([1, 0], dtype=torch.uint8, device=x.device)],
    "on the CPU": lambda x: x[torch.tensor([1, 0])],
    "range": lambda x: x[[2]],
    "range below": lambda x: x[[-3]],
    "wrong mask": lambda x: x[torch.ones(3, dtype=torch.bool, device=x.device)],
    "too many": lambda x: x[[0], [0], [0], [0]],
    "floats": lambda x: x[torch.ones(1, device=x.device)],
    "do not fit": lambda x: x[[0, 1], [0, 1, 2]],
    "of nothing": lambda x: x[:0][torch.zeros(0, dtype=torch.long, device=x.device)],
    "select": lambda x: x.index_select(-1, torch.tensor([1, 1], device=x.device)),
    "select range": lambda x: x.index_select(0, torch.tensor([4], device=x.device)),
    "select matrix": lambda x: x.index_select(1, torch.tensor([[0]], device=x.device)),
    "select floats": lambda x: x.index_select(1, torch.ones(1, device=x.device)),
    "select dim": lambda x: x.index_select(3, torch.tensor([0], device=x.device)),
    "gather": lambda x: x.gather(1, torch.tensor([[[3, 0]]], device=x.device)),
    "gather range": lambda x: x.gather(1, torch.tensor([[[9]]], device=x.device)),
    "gather floats": lambda x: x.gather(1, torch.ones(1, 1, 1, device=x.device)),
    "gather of none": lambda x: x.gather(
        1, torch.zeros(0, dtype=torch.long, device=x.device)
    ),
    "scatter_add": lambda x: x.scatter_add(0, (x > 0).long(), x),
    "gather int32": lambda x: x.gather(1, (x > 0).int()),
    "scatter_add int32": lambda x: x.scatter_add(0, (x > 0).int(), x),
    "select int32": lambda x: x.index_select(0, torch.tensor([1, 0], device=x.device).int()),
    "embedding int32": lambda x: embedding(torch.tensor([1, 0], device=x.device).int(), x[0]),
    "scatter_add range": lambda x: x.scatter_add(0, (x > 0).long() + 9, x),
    "embedding": lambda x: torch.nn.functional.embedding(
        torch.tensor([[1, 0]], device=x.device), x[0]
    ),
    "embedding range": lambda x: torch.nn.functional.embedding(
        torch.tensor([9], device=x.device), x[0]
    ),
    "embedding of floats": lambda x: torch.nn.functional.embedding(
        torch.ones(1, device=x.device), x[0]
    ),
    "write": lambda x: x.clone().index_put_((torch.tensor([0], device=x.device),), x[1]),
}  # fmt: skip


@pytest.mark.parametrize("case", INDICES)
def test_indices(case: str) -> None:
    same(lambda d: INDICES[case](values(2, 4, 3).to(d)))


WRONG = {
    "broadcast": lambda d: torch.add(torch.ones(2, device=d), torch.ones(3, device=d)),
    "alpha": lambda d: torch.add(torch.ones(2, device=d).long(), 1, alpha=1.5),
    "bool sub": lambda d: torch.ones(2, device=d).bool() - torch.ones(2, device=d).bool(),
    "bool neg": lambda d: -torch.ones(2, device=d).bool(),
    "mm shapes": lambda d: torch.mm(torch.ones(2, 3, device=d), torch.ones(2, 3, device=d)),
    "mm of vectors": lambda d: torch.mm(torch.ones(2, device=d), torch.ones(2, device=d)),
    "mm dtypes": lambda d: torch.mm(torch.ones(2, 2, device=d), torch.ones(2, 2, device=d).long()),
    "mm bool": lambda d: torch.mm(*(torch.ones(2, 2, device=d).bool() for _ in range(2))),
    "bmm": lambda d: torch.bmm(torch.ones(2, 2, 2, device=d), torch.ones(3, 2, 2, device=d)),
    "addmm": lambda d: torch.addmm(*(torch.ones(n, n, device=d) for n in (3, 2, 2))),
    "dim": lambda d: torch.ones(2, device=d).sum(1),
    "dim twice": lambda d: torch.ones(2, device=d).sum((0, 0)),
    "amax of none": lambda d: torch.ones(0, device=d).amax(),
    "argmax of none": lambda d: torch.ones(0, device=d).argmax(),
    "max of none": lambda d: torch.ones(0, device=d).max(0),
    "mean of int": lambda d: torch.ones(2, device=d).long().mean(),
    "cat": lambda d: torch.cat([torch.ones(2, 2, device=d), torch.ones(2, 3, device=d)]),
    "softmax of int": lambda d: torch.ones(2, device=d).long().softmax(0),
    "softmax dim": lambda d: torch.ones(2, device=d).softmax(1),
    "layer_norm": lambda d: torch.nn.functional.layer_norm(torch.ones(2, 2, device=d), (3,)),
    "clamp": lambda d: torch.clamp(torch.ones(2, device=d)),
    "tril of a vector": lambda d: torch.ones(2, device=d).tril(),
    "and of floats": lambda d: torch.ones(2, device=d) & torch.ones(2, device=d),
    "where": lambda d: torch.where(torch.ones(2, device=d).bool(), torch.ones(3, device=d), 1),
    "where of floats": lambda d: torch.where(torch.ones(2, device=d), 1.0, 2.0),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls(case: str) -> None:
    fails(WRONG[case])


SHAPES = [(0,), (), (0, 3), (3, 0), (1,), (1, 1), (2, 0, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_of_few_or_none(shape: tuple, keepdim: bool) -> None:
    for dim in range(-max(len(shape), 1), max(len(shape), 1)):
        for op in (torch.sum, torch.mean, torch.amax, torch.argmax, torch.max):
            same(lambda d, o=op, k=dim: o(values(*shape).to(d), k, keepdim=keepdim))
        for op in (torch.cumsum, torch.softmax, torch.log_softmax):
            same(lambda d, o=op, k=dim: o(values(*shape).to(d), k))
    for op in (torch.sum, torch.mean, torch.amax, torch.argmax):
        same(lambda d, o=op: o(values(*shape).to(d)))


@pytest.mark.parametrize(("m", "k", "n"), [(2, 3, 4), (0, 3, 4), (2, 0, 4), (2, 3, 0), (1, 1, 1)])
def test_products(m: int, k: int, n: int) -> None:
    def tensors(d: str) -> list[torch.Tensor]:
        return [values(m, k).to(d), values(n, k, seed=1).to(d).t(), values(n).to(d)]

    same(lambda d: torch.mm(*tensors(d)[:2]))
    same(lambda d: torch.addmm(tensors(d)[2], *tensors(d)[:2], beta=0.5, alpha=2))
    same(lambda d: torch.addmm(tensors(d)[2] / 0, *tensors(d)[:2], beta=0))
    same(lambda d: torch.bmm(*(one.expand(2, *one.shape) for one in tensors(d)[:2])))
    same(
        lambda d: torch.baddbmm(
            tensors(d)[2], *(one.expand(2, *one.shape) for one in tensors(d)[:2])
        )
    )


def test_nan() -> None:
    nan = torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), 0.0])
    for op in (*UNARY, *PLAIN):
        # One number after another: some processors' vectors make gelu(inf) NaN in PyTorch.
        wanted = torch.stack([op(number) for number in nan])
        torch.testing.assert_close(op(nan.to(DEVICE)).cpu(), wanted, equal_nan=True)
    for op in (torch.amax, torch.argmax, torch.sum, lambda x: x.max(0)):
        same(lambda d, o=op: o(nan.to(d)))
    for op in (*BINARY, *COMPARE):
        same(lambda d, o=op: o(nan.to(d), nan.flip(0).to(d)))
        same(lambda d, o=op: o(nan.to(d)[:, None], nan.to(d)))
    # What PyTorch documents; its CPU kept the numbers before 2.12.
    assert nan.to(DEVICE).clamp(min=float("nan")).isnan().all()
    if RELEASE >= (2, 12):
        same(lambda d: nan.to(d).clamp(min=float("nan")))
    same(lambda d: nan.to(d).softmax(0))


def test_numbers_of_cat() -> None:
    same(lambda d: torch.cat([values(2).to(d), values(2, dtype=torch.int64).to(d)]))
    same(lambda d: torch.cat([torch.empty(0, device=d), values(2, 3).to(d)]))
    same(lambda d: torch.cat([values(2, 3).to(d).t(), values(2, 3).to(d).t()], -1))
    same(lambda d: torch.cat([values(2).to(d)], out=torch.empty(2, dtype=torch.int64, device=d)))


def trained(op: Callable, shapes: list[tuple]) -> Call:
    def call(d: str) -> object:
        leaves = [values(*s, seed=i).to(d).requires_grad_() for i, s in enumerate(shapes)]
        result = op(*leaves)
        return torch.autograd.grad((result * result).sum(), leaves)

    return call


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        (torch.tanh, [(3, 4)]), (torch.sigmoid, [(3, 4)]), (torch.relu, [(3, 4)]),
        (torch.nn.functional.gelu, [(3, 4)]),
        (lambda x: torch.nn.functional.gelu(x, approximate="tanh"), [(3, 4)]),
        (lambda x: x.softmax(0), [(3, 4)]), (lambda x: x.log_softmax(1), [(3, 4)]),
        (lambda x, w, b: layer_norm(x, (3, 4), w, b), [(2, 3, 4), (3, 4), (3, 4)]),
        (lambda x: layer_norm(x, (4,)), [(2, 3, 4)]),
        (lambda w: embedding(torch.tensor([1, 1, 2], device=w.device), w, 2), [(3, 4)]),
        (lambda w: embedding(torch.tensor([1, 1], device=w.device), w, None, None, 2.0, True),
         [(3, 4)]),
        (lambda x: x[[0, 0, 1]], [(3, 4)]), (lambda x: x.max(0)[0], [(3, 4)]),
        (lambda x, y: x @ y, [(3, 4), (4, 2)]), (lambda x: x.cumsum(0), [(3, 4)]),
        (lambda x: x.gather(0, torch.tensor([[0, 0]], device=x.device)), [(3, 4)]),
    ],
)  # fmt: skip
def test_gradients(op: Callable, shapes: list[tuple]) -> None:
    same(trained(op, shapes), False)


def test_sizes_beyond_32_bits() -> None:
    """Shapes and strides for 2**33 elements, of which none is allocated."""
    huge = torch.empty(2**33, device="meta")
    assert (huge + 1).shape == (2**33,)
    wide = torch.empty(2**17, 2**16, device="meta").t()
    for result in (wide * wide, wide.exp(), wide < 0):
        assert result.shape == (2**16, 2**17)
        assert result.stride() == (1, 2**16)
    assert huge.sum().shape == ()
    assert torch.mm(wide, wide.t()).shape == (2**16, 2**16)
    # On the device, broadcast from few elements: what is reduced is counted in 64 bits.
    one = torch.ones(1, device=DEVICE).expand(2**33)
    assert one.numel() == 2**33
    assert torch.empty(0, 2**33, device=DEVICE).add(1).shape == (0, 2**33)
