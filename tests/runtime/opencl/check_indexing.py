# SPDX-License-Identifier: Apache-2.0
"""The same as check_kernels.py for operators that choose, move and make elements."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator

import torch
from comparing import DTYPES, FLOATING, Call, check
from torch.nn import functional as F


def whole(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randint(-3, 4, shape).to(dtype)


def indices(shape: tuple[int, ...], limit: int, least: int = 0) -> torch.Tensor:
    return torch.randint(least, limit, shape)


def layouts(dtype: torch.dtype) -> Iterator[torch.Tensor]:
    yield whole((4, 5, 6), dtype)
    yield whole((6, 5, 4), dtype).permute(2, 1, 0)
    yield whole((5, 10, 6), dtype)[1:, ::2]
    yield whole((5, 6), dtype).expand(4, 5, 6)


def along_a_dimension() -> Iterator[Call]:
    for dtype, dim in itertools.product(DTYPES, (0, 1, -1)):
        for data in layouts(dtype):
            size = data.size(dim)
            yield "index_select", torch.index_select, (data, dim, indices((7,), size))
            yield "gather", torch.gather, (data, dim, indices((4, 5, 6), size))
            yield "gather", torch.gather, (data, dim, indices((2, 3, 4), size))
            yield "scatter", scatter(dim), (data, permuted(data, dim), whole((4, 5, 6), dtype))
            yield "scatter", scatter(dim), (data, permuted(data, dim), 2)
            index = indices((3, 4, 5), size)
            yield "scatter_add", scatter_add(dim), (data, index, whole((3, 5, 6), dtype))
        chosen = indices((3,), 4).to(torch.int32)
        yield "int32", torch.index_select, (whole((4, 5), dtype), 0, chosen)
    number = torch.tensor([3.0])[0].clone()
    one = torch.zeros(1, dtype=torch.int64)
    yield "index_select", lambda x, i: torch.index_select(x[0], 0, i), (number[None], 0 * one)
    yield "index_select", torch.index_select, (whole((3, 0)), 0, indices((4,), 3))
    yield "index_select", torch.index_select, (whole((3, 2)), 0, indices((0,), 1))
    yield "index_select", torch.index_select, (whole((70_000, 2)), 0, indices((80_000,), 70_000))
    yield "index_select", torch.index_select, (whole((50, 700)), 0, indices((40,), 50))
    yield "gather", torch.gather, (whole((3, 4)), 1, indices((3, 0), 1))
    yield "scatter_add", scatter_add(0), (whole((5,)), indices((9999,), 5), whole((9999,)))


def permuted(data: torch.Tensor, dim: int) -> torch.Tensor:
    """Indices of which none is there twice, so that the result is certain."""
    order = torch.randperm(data.size(dim))
    shape = [1] * data.dim()
    shape[dim] = -1
    return order.view(shape).expand(data.shape)


def scatter(dim: int) -> Callable[..., torch.Tensor]:
    return lambda data, index, source: torch.scatter(data, dim, index, source)


def scatter_add(dim: int) -> Callable[..., torch.Tensor]:
    return lambda data, index, source: torch.scatter_add(data, dim, index, source)


def put(accumulate: bool) -> Callable[..., torch.Tensor]:
    def call(data: torch.Tensor, values: torch.Tensor, *index: object) -> torch.Tensor:
        places = [torch.arange(data.shape[0], device=data.device)] if index == () else index
        return data.clone().index_put_(places, values, accumulate=accumulate)  # type: ignore[arg-type]

    return call


def take(data: torch.Tensor, *index: object) -> torch.Tensor:
    return data[index]


def advanced() -> Iterator[Call]:
    colon = slice(None)
    for dtype in DTYPES:
        for data in layouts(dtype):
            row, column = indices((3,), 4, -4), indices((2, 1), 5, -5)
            yield "index", take, (data, row)
            yield "index", take, (data, colon, column)
            yield "index", take, (data, row, indices((2, 3), 5))
            yield "index", take, (data, row, colon, indices((3,), 6))
            yield "index", take, (data, colon, column, indices((4,), 6))
            yield "index", take, (data, row, indices((3,), 5), indices((1,), 6))
            yield "mask", take, (data, torch.rand(4, 5) > 0.5)
            yield "mask", take, (data, colon, torch.rand(5) > 0.5)
            yield "mask", take, (data, torch.rand(4, 5, 6) > 0.5)
            order = torch.randperm(4)
            yield "index_put", put(False), (data, whole((4, 5, 6), dtype), order)
            yield "index_put", put(False), (data, whole((6,), dtype), order[:2], indices((2,), 5))
            yield "index_put", put(False), (data, whole((1,), dtype), torch.rand(4, 5, 6) > 0.5)
            many = indices((20,), 4, -4)
            yield "accumulate", put(True), (data, whole((20, 5, 6), dtype), many)
            yield "accumulate", put(True), (data, whole((1,), dtype), many, indices((20,), 5))
    yield "index", take, (whole((3, 4)), indices((0,), 1))
    yield "index", take, (whole((0, 4)), indices((0,), 1))
    yield "index", take, (whole((300, 400)), indices((70_000,), 300), indices((70_000,), 400))
    yield "index", take, (whole((3, 4)), colon, None, indices((2,), 4))


def of_many_dimensions() -> Iterator[Call]:
    data, mask = whole((3, 4, 2, 3, 2)), torch.rand(3, 4, 2, 3, 2) > 0.5
    some = indices((2,), 2)
    yield "mask", take, (data, mask)
    yield "mask", take, (data, slice(None), mask[0])
    yield "mask", take, (data, mask[..., 0, 0], slice(None), indices((mask[..., 0, 0].sum(),), 2))
    yield "mask", take, (data[1:2, :, 1:], mask[1:2, :, 1:])
    yield "index", take, (data, *[some] * 4)
    yield "mask", put(False), (data, whole((int(mask.sum()),)), mask)
    for accumulate in (False, True):
        order = torch.randperm(2)
        yield "index_put", put(accumulate), (data, whole((2,)), *[order] * 4)
    for order in (range(9, -1, -1), (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)):
        ten = whole((2,) * 10).permute(*order)
        place = indices((2,) * 10, 2).permute(*order)
        yield "gather", torch.gather, (ten, 3, place)
        yield "index_select", torch.index_select, (ten, 4, indices((3,), 2))
        yield "scatter", scatter(5), (ten, permuted(ten, 5), whole((2,) * 10))
        yield "scatter_add", scatter_add(5), (ten, place, whole((2,) * 10))


def of_many_indices() -> Iterator[Call]:
    """More than a kernel takes: the CPU computes these."""
    data, some = whole((3, 4, 2, 3, 2)), indices((6,), 2)
    mask = torch.rand(3, 4, 2, 3, 2) > 0.5
    yield "mask", take, (data.transpose(0, 3), mask.transpose(0, 3))
    places = torch.tensor([[0, 1], [3, 1], [1, 0], [2, 0], [1, 1]])
    yield "index", take, (data, *[some] * 5)
    yield "index", take, (data.transpose(0, 3)[:, ::2], *[some] * 5)
    for accumulate in (False, True):
        yield "index_put", put(accumulate), (data, whole((2,)), *places)


def embeddings() -> Iterator[Call]:
    def call(weight: torch.Tensor, index: torch.Tensor, padding: int | None) -> tuple[object, ...]:
        leaf = weight.detach().requires_grad_()
        result = F.embedding(index, leaf, padding_idx=padding)
        result.backward(torch.ones_like(result))
        return result.detach(), leaf.grad

    for dtype in FLOATING:
        for shape in ((5,), (3, 4), (0,)):
            yield "embedding", call, (whole((9, 7), dtype), indices(shape, 9), None)
        yield "embedding", call, (whole((9, 7), dtype), indices((30,), 9), 2)
        yield "embedding", call, (whole((9, 7), dtype), indices((30,), 9).to(torch.int32), -1)


def makers() -> Iterator[Call]:
    for dtype in DTYPES:
        for data, diagonal in itertools.product(layouts(dtype), (0, 2, -1, 9)):
            yield "tril", torch.tril, (data, diagonal)
            yield "triu", torch.triu, (data, diagonal)
        for dim in (0, 1, -1):
            yield "cat", lambda x, y, d: torch.cat([x, y], d), (*list(layouts(dtype))[:2], dim)
    yield "cat", lambda x, y: torch.cat([x, y]), (whole((2, 3)), whole((4, 3), torch.int64))
    yield "cat", lambda x, y: torch.cat([x, y]), (whole((2, 3)), whole((0,)))
    yield "cat", lambda x: torch.cat([x] * 9, 1), (whole((70_000, 1)),)
    yield "stack", lambda x, y: torch.stack([x, y], 1), (whole((2, 3)), whole((2, 3)))
    yield "in place", lambda x: x.clone().tril_(), (whole((5, 5)).t(),)
    for dtype in (*FLOATING, torch.int64, torch.int32):
        for limits in ((7,), (2, 9), (9, 2, -2), (0, 0), (-3, 300, 7)):
            yield "arange", arange(dtype, *limits), (whole((1,)),)
    yield "arange", arange(torch.float32, 0.5, 70_000, 0.25), (whole((1,)),)
    yield "arange", arange(torch.int64, 2**40, 2**40 + 5), (whole((1,)),)
    yield (
        "arange",
        lambda x: torch.arange(3.0, device=x.device, out=x.new_ones(6)[::2]),
        (whole((1,)),),
    )


def arange(dtype: torch.dtype, *limits: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda beside: torch.arange(*limits, dtype=dtype, device=beside.device)


def calls() -> Iterator[Call]:
    yield from along_a_dimension()
    yield from advanced()
    yield from of_many_dimensions()
    yield from embeddings()
    yield from makers()


def main() -> int:
    check(calls(), {"nonzero", "masked_fill_.Tensor"})
    torch.ocl.reset_fallback_report()
    check(of_many_indices(), {"index.Tensor_out", "_index_put_impl_", "nonzero"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
