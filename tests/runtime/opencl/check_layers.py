# SPDX-License-Identifier: Apache-2.0
"""The same as check_kernels.py for the operators of layers: products of matrices, convolutions."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator

import torch
from comparing import Call, compare, report

FLOATING = (torch.float32, torch.float16, torch.bfloat16)
KERNELS = {"mm", "bmm", "addmm", "baddbmm", "addmv"}


def made(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Numbers of which sums are exact in float32, whatever their order."""
    return torch.randint(-3, 4, shape).to(dtype)


def layouts(rows: int, columns: int, dtype: torch.dtype) -> Iterator[torch.Tensor]:
    yield made((rows, columns), dtype)
    yield made((columns, rows), dtype).t()
    yield made((rows + 1, 2 * columns), dtype)[1:, ::2]
    yield made((columns,), dtype).expand(rows, columns)


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
        batches = made((3, 7, 9), dtype), made((3, 9, 5), dtype)
        yield "bmm", torch.bmm, batches
        yield "bmm", torch.bmm, (batches[0], made((5, 3, 9), dtype).permute(1, 2, 0))
        yield "bmm", torch.bmm, (batches[0][:1].expand(3, 7, 9), batches[1])
        for shape in ((35,), (20, 35), (20, 1), (1, 35), (1, 1), (1,), (35, 20)):
            more = made(shape, dtype)
            more = more.t() if shape == (35, 20) else more
            pair = made((20, 50), dtype), made((50, 35), dtype)
            for beta, alpha in ((1, 1), (2, 3), (0, 1)):
                yield "addmm", addmm(beta, alpha), (more, *pair)
        for shape in ((5,), (7, 5), (3, 7, 5), (3, 1, 5), (1, 7, 1)):
            yield "baddbmm", baddbmm, (made(shape, dtype), *batches)
        for shape in ((20,), (1,)):
            yield "addmv", torch.addmv, (made(shape, dtype), pair[0], made((50,), dtype))
        yield "mv", torch.mv, (pair[0], made((50,), dtype))
        yield "in place", addmm_, (made((20, 35), dtype), *pair)
    for sizes in ((1, 1, 1), (0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 700, 1), (129, 1, 257)):
        m, n, k = sizes
        yield "mm", torch.mm, (made((m, k)), made((k, n)))
        yield "addmm", torch.addmm, (made((n,)), made((m, k)), made((k, n)))
    yield "mm", torch.mm, (made((300, 513)), made((513, 530)))
    yield "mm", torch.mm, (made((513, 300)).t(), made((530, 513)).t())
    yield "bmm", torch.bmm, (made((0, 3, 4)), made((0, 4, 5)))
    yield "bmm", torch.bmm, (made((70_000, 1, 2)), made((70_000, 2, 1)))
    yield "mm", torch.mm, (made((70_000, 3)), made((3, 2)))
    nothing = torch.full((4,), float("nan"))
    yield "addmm", addmm(0, 1), (nothing, made((3, 2)), made((2, 4)))
    infinite = torch.tensor([[float("inf"), 1.0], [float("nan"), 2.0]])
    yield "mm", torch.mm, (infinite, made((2, 4)))
    yield "out", into(torch.mm, torch.empty(4, 3).t()), (made((3, 2)), made((2, 4)))
    yield "out", into(torch.mm, torch.empty(6, 4)[::2]), (made((3, 2)), made((2, 4)))
    yield "linear", torch.nn.functional.linear, (made((2, 5, 9)), made((4, 9)), made((4,)))


def calls() -> Iterator[Call]:
    yield from products()


def main() -> int:
    report(compare(calls()), KERNELS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
