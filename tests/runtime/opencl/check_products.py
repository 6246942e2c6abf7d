# SPDX-License-Identifier: Apache-2.0
"""The same as check_kernels.py for the operators of layers: products of matrices, convolutions."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from functools import partial

import torch
from comparing import FLOATING, Call, check, gradient
from torch.nn import functional as F


def whole(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Numbers of which sums are exact in float32, whatever their order."""
    return torch.randint(-3, 4, shape).to(dtype)


def layouts(rows: int, columns: int, dtype: torch.dtype) -> Iterator[torch.Tensor]:
    yield whole((rows, columns), dtype)
    yield whole((columns, rows), dtype).t()
    yield whole((rows + 1, 2 * columns), dtype)[1:, ::2]
    yield whole((columns,), dtype).expand(rows, columns)


def into(function: object, out: torch.Tensor) -> object:
    def call(*arguments: torch.Tensor) -> torch.Tensor:
        result = torch.empty_strided(out.shape, out.stride(), device=arguments[0].device)
        return function(*arguments, out=result)  # type: ignore[operator]

    return call


def addmm(beta: int, alpha: int) -> Callable[..., torch.Tensor]:
    return lambda more, a, b: torch.addmm(more, a, b, beta=beta, alpha=alpha)


def addmm_(more: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return more.clone().addmm_(a, b, beta=2)


def baddbmm(more: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.baddbmm(more, a, b, beta=2, alpha=3)


def products() -> Iterator[Call]:
    for dtype in (*FLOATING, torch.int64, torch.int32):
        for left, right in itertools.product(layouts(20, 50, dtype), layouts(50, 35, dtype)):
            yield "mm", torch.mm, (left, right)
        batches = whole((3, 7, 9), dtype), whole((3, 9, 5), dtype)
        yield "bmm", torch.bmm, batches
        yield "bmm", torch.bmm, (batches[0], whole((5, 3, 9), dtype).permute(1, 2, 0))
        yield "bmm", torch.bmm, (batches[0][:1].expand(3, 7, 9), batches[1])
        for shape in ((35,), (20, 35), (20, 1), (1, 35), (1, 1), (1,), (35, 20)):
            more = whole(shape, dtype)
            more = more.t() if shape == (35, 20) else more
            pair = whole((20, 50), dtype), whole((50, 35), dtype)
            for beta, alpha in ((1, 1), (2, 3), (0, 1)):
                yield "addmm", addmm(beta, alpha), (more, *pair)
        for shape in ((5,), (7, 5), (3, 7, 5), (3, 1, 5), (1, 7, 1)):
            yield "baddbmm", baddbmm, (whole(shape, dtype), *batches)
        for shape in ((20,), (1,)):
            yield "addmv", torch.addmv, (whole(shape, dtype), pair[0], whole((50,), dtype))
        for size in (1, 31, 64, 333):
            row, matrix = whole((1, size), dtype), whole((5, size), dtype)
            yield "a row", torch.mm, (row, matrix.t())
            yield "a row", addmm(2, 3), (whole((1, 5), dtype), row, matrix.t())
            yield "a row", torch.mm, (row, whole((size, 5), dtype))
            yield "a column", torch.mm, (matrix, row.t())
            yield "a column", torch.mm, (matrix, whole((size, 3), dtype)[:, 1:2])
        yield "mv", torch.mv, (pair[0], whole((50,), dtype))
        yield "in place", addmm_, (whole((20, 35), dtype), *pair)
    for sizes in ((1, 1, 1), (0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 700, 1), (129, 1, 257)):
        m, n, k = sizes
        yield "mm", torch.mm, (whole((m, k)), whole((k, n)))
        yield "addmm", torch.addmm, (whole((n,)), whole((m, k)), whole((k, n)))
    yield "mm", torch.mm, (whole((300, 513)), whole((513, 530)))
    yield "mm", torch.mm, (whole((513, 300)).t(), whole((530, 513)).t())
    yield "bmm", torch.bmm, (whole((0, 3, 4)), whole((0, 4, 5)))
    yield "bmm", torch.bmm, (whole((70_000, 1, 2)), whole((70_000, 2, 1)))
    yield "mm", torch.mm, (whole((70_000, 3)), whole((3, 2)))
    yield "mv", torch.mv, (whole((700, 900)), whole((900,)))
    nothing = torch.full((4,), float("nan"))
    yield "addmm", addmm(0, 1), (nothing, whole((3, 2)), whole((2, 4)))
    infinite = torch.tensor([[float("inf"), 1.0], [float("nan"), 2.0]])
    yield "mm", torch.mm, (infinite, whole((2, 4)))
    yield "out", into(torch.mm, torch.empty(4, 3).t()), (whole((3, 2)), whole((2, 4)))
    yield "out", into(torch.mm, torch.empty(6, 4)[::2]), (whole((3, 2)), whole((2, 4)))
    yield "linear", F.linear, (whole((2, 5, 9)), whole((4, 9)), whole((4,)))


Shapes = tuple[tuple[int, ...], tuple[int, ...], dict[str, object]]

#: Inputs, weights and options of convolutions.
CONVOLUTIONS: tuple[Shapes, ...] = (
    ((2, 3, 9, 11), (4, 3, 3, 3), {}),
    ((2, 3, 9, 11), (4, 3, 3, 3), {"padding": 1}),
    ((2, 3, 9, 11), (4, 3, 3, 2), {"padding": (2, 1), "stride": (2, 3), "dilation": (1, 2)}),
    ((2, 3, 10, 12), (5, 3, 3, 3), {"padding": 1, "stride": 2}),
    ((1, 3, 30, 31), (8, 3, 7, 7), {"padding": 3, "stride": 2}),
    ((3, 6, 7, 8), (4, 3, 3, 3), {"groups": 2, "padding": 1}),
    ((3, 6, 7, 8), (4, 6, 1, 1), {}),
    ((3, 6, 7, 8), (4, 6, 1, 1), {"stride": 2}),
    ((3, 6, 7, 8), (4, 3, 1, 1), {"groups": 2}),
    ((2, 1, 20, 20), (3, 1, 5, 5), {}),
    ((2, 6, 9, 70), (6, 1, 3, 3), {"groups": 6, "padding": 1}),
    ((2, 6, 9, 7), (12, 1, 3, 3), {"groups": 6, "padding": 1, "stride": 2}),
    ((2, 6, 9, 7), (12, 1, 2, 3), {"groups": 6, "dilation": (2, 1), "padding": (1, 0)}),
    ((2, 5, 3, 3), (4, 5, 3, 3), {"padding": 4, "dilation": 3}),
    ((2, 20, 30, 40), (300, 20, 3, 3), {"padding": 1}),
    ((2, 3, 20), (4, 3, 5), {"padding": 2, "stride": 2}),
    ((2, 6, 20), (6, 1, 5), {"padding": 2, "groups": 6}),
)

#: Of transposed ones.
TRANSPOSED: tuple[Shapes, ...] = (
    ((2, 4, 5, 6), (4, 3, 3, 3), {}),
    ((2, 4, 5, 6), (4, 3, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    ((2, 4, 5, 6), (4, 3, 2, 3), {"stride": (3, 1), "groups": 2, "dilation": 2}),
    ((2, 4, 5, 6), (4, 1, 3, 3), {"stride": 2, "groups": 4}),
    ((2, 4, 9), (4, 3, 3), {"stride": 2}),
)


def convolution(options: dict[str, object], transposed: bool) -> Callable[..., object]:
    """The result and all gradients."""
    dimensions = {3: "1d", 4: "2d"}
    kind = "conv_transpose" if transposed else "conv"

    def call(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        function = getattr(F, kind + dimensions[tensors[0].dim()])
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]
        result = function(*leaves, **options)
        # Small whole numbers: sums of halves are exact, whatever their order.
        grad = torch.arange(result.numel()).remainder(5).sub(2).view(result.shape)
        result.backward(grad.to(result))
        return (result.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None))

    return call


def convolutions() -> Iterator[Call]:
    kinds = [(False, one) for one in CONVOLUTIONS] + [(True, one) for one in TRANSPOSED]
    for transposed, (shape, weight_shape, options) in kinds:
        call = convolution(options, transposed)
        channels = weight_shape[1] * int(str(options.get("groups", 1)))
        bias = whole((channels if transposed else weight_shape[0],))
        dtypes = FLOATING if max(shape) < 30 else FLOATING[:1]  # the CPU rounds sums of halves
        for dtype in dtypes:
            tensors = whole(shape, dtype), whole(weight_shape, dtype)
            yield f"convolution {options}", call, tensors
            yield f"convolution {options}", call, (*tensors, bias.to(dtype))
        if len(shape) == 4:
            last = whole(shape).contiguous(memory_format=torch.channels_last)
            yield f"channels last {options}", call, (last, whole(weight_shape), bias)
            strided = whole((*shape[:-1], 2 * shape[-1]))[..., ::2]
            yield f"strided {options}", call, (strided, whole(weight_shape), bias)


def pools() -> Iterator[tuple[str, Callable[[torch.Tensor], object]]]:
    for options in (
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": (3, 2), "stride": (1, 3), "padding": (1, 0)},
        {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    ):
        yield f"max_pool2d {options}", partial(F.max_pool2d, **options)
        yield f"avg_pool2d {options}", partial(F.avg_pool2d, **options)
        uncounted = partial(F.avg_pool2d, **options, count_include_pad=False)
        yield f"avg_pool2d {options}, uncounted", uncounted
        divided = partial(F.avg_pool2d, **options, divisor_override=5)
        yield f"avg_pool2d {options}, divided", divided
    for dilation in (2, (3, 1)):
        yield "max_pool2d", partial(F.max_pool2d, kernel_size=3, padding=1, dilation=dilation)
    indices = partial(F.max_pool2d, kernel_size=3, return_indices=True)
    yield "max_pool2d", lambda x: indices(x)[1]
    for size in ((1, 1), (3, 4), (9, 2), (20, 17)):
        yield "adaptive_avg_pool2d", partial(F.adaptive_avg_pool2d, output_size=size)


def pooling() -> Iterator[Call]:
    for name, function in pools():
        for dtype in FLOATING:
            image = torch.randn(2, 3, 9, 11).to(dtype)
            yield name, function, (image,)
            yield name, function, (image[0],)
            yield name, function, (image[..., ::2],)
            yield name, function, (image.contiguous(memory_format=torch.channels_last),)
            if function(image).is_floating_point():
                grad = torch.randn(function(image).shape).to(dtype)
                yield f"gradient of {name}", gradient(function), (image, grad)
    yield "max_pool2d", partial(F.max_pool2d, kernel_size=2), (whole((2, 4, 4), torch.int64),)
    special = torch.tensor([float("nan"), 1.0, -float("inf"), float("inf")]).repeat(8).view(1, 4, 8)
    for image in (special, torch.full((1, 4, 8), -float("inf"))):
        both = partial(F.max_pool2d, kernel_size=2, padding=1, return_indices=True)
        yield "max_pool2d", both, (image,)
    yield "max_pool2d", partial(F.max_pool2d, kernel_size=2), (torch.empty(0, 3, 4, 4),)
    yield "max_pool1d", partial(F.max_pool1d, kernel_size=3), (torch.randn(2, 3, 10),)
    yield "avg_pool1d", partial(F.avg_pool1d, kernel_size=3, padding=1), (torch.randn(2, 3, 10),)


def calls() -> Iterator[Call]:
    yield from products()
    yield from convolutions()
    yield from pooling()


def main() -> int:
    check(calls(), set())
    return 0


if __name__ == "__main__":
    sys.exit(main())
