# SPDX-License-Identifier: Apache-2.0
"""Operators that compute rows: reductions and softmax, on the device and on the CPU."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import torch
from comparing import DTYPES, FLOATING, Call, check, gradient, layouts, made

NAN, INF = float("nan"), float("inf")
EXTREMES = ("amax", "amin", "max", "min", "argmax", "argmin")


def names_of(dtype: torch.dtype) -> tuple[str, ...]:
    extremes = EXTREMES[:4] if dtype == torch.bool else EXTREMES  # PyTorch refuses the rest
    return (*extremes, "any", "all")


def reductions() -> Iterator[Call]:
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        for tensor in layouts(dtype):
            yield "sum", torch.sum, (tensor,)
            for dim in (0, -1, [0, 1]):
                yield f"sum {dim}", lambda x, dim=dim: x.sum(dim), (tensor,)
                yield f"sum keep {dim}", lambda x, dim=dim: x.sum(dim, keepdim=True), (tensor,)
    for dtype in DTYPES:
        tensor = made((5, 40, 9), dtype)
        for dim in ([], [0], [1], [2], [0, 1], [1, 2], [0, 2], [-1, 0], [0, 1, 2]):
            yield f"sum {dim}", lambda x, dim=dim: x.sum(dim), (tensor,)
            yield f"amax {dim}", lambda x, dim=dim: x.amax(dim), (tensor,)
            yield f"amin {dim}", lambda x, dim=dim: x.amin(dim, keepdim=True), (tensor,)
        yield "prod", torch.prod, (tensor[:, :3, :1],)
        for dim in (0, 1, -1):
            yield f"prod {dim}", lambda x, dim=dim: (x.clamp(-1, 2) if x.dtype != torch.bool else x).prod(dim), (tensor[:, :3],)
            for name in names_of(dtype):
                yield f"{name} {dim}", lambda x, n=name, d=dim: getattr(torch, n)(x, d), (tensor,)
        for name in (*names_of(dtype), "sum"):
            yield name, getattr(torch, name), (tensor,)
        yield "sum of bool", lambda x: (x > 0).sum(1), (tensor,)
        yield "sum in int32", lambda x: x.sum(1, dtype=torch.int32), (tensor,)
        yield "sum in float", lambda x: x.sum((0, 2), dtype=torch.float32), (tensor,)
    for dtype in FLOATING:
        tensor = made((5, 40, 9), dtype)
        for dim in (0, 1, (0, 2), (1, 2), None):
            yield f"mean {dim}", lambda x, dim=dim: x.mean(dim), (tensor,)
            yield f"norm {dim}", lambda x, dim=dim: torch.linalg.vector_norm(x, dim=dim), (tensor,)
            for name in ("var", "std", "var_mean", "std_mean"):
                function = getattr(torch, name)
                yield f"{name} {dim}", lambda x, f=function, d=dim: f(x, d, keepdim=True), (tensor,)
        for order in (1, 3, 0.5, INF):
            yield f"norm {order}", lambda x, p=order: torch.linalg.vector_norm(x, p), (tensor,)
        yield "correction", lambda x: x.var(1, correction=3), (tensor,)
        yield "var of far numbers", lambda x: (x + 100).var((0, 2)), (tensor,)


def special_cases() -> Iterator[Call]:
    special = torch.tensor([[1, NAN, 3, NAN], [INF, -INF, 0, -INF], [-0.0, 0, 0, 0], [INF] * 4])
    for name, dim in itertools.product(EXTREMES, (0, 1)):
        yield name, lambda x, n=name, d=dim: getattr(torch, n)(x, d), (special,)
        for dtype in (torch.int64, torch.float32):
            equal = torch.ones((3, 50), dtype=dtype)
            yield name, lambda x, n=name, d=dim: getattr(torch, n)(x, d), (equal,)
    for name in ("sum", "mean", "amax", "amin", "max", "argmax", "argmin", "prod", "any", "all"):
        yield name, getattr(torch, name), (special,)
        yield name, getattr(torch, name), (torch.full((300,), -INF),)
    lowest = torch.tensor([torch.iinfo(torch.int64).min] * 20)
    yield "argmax", lambda x: x.max(0), (lowest,)
    empty = torch.empty((0, 3))
    for function in (torch.sum, torch.mean, torch.prod, torch.any, torch.all):
        yield "of nothing", lambda x, f=function: f(x, 0), (empty,)
        yield "of nothing", lambda x, f=function: f(x, 1), (empty,)
        yield "of nothing", function, (empty,)
        yield "of one", function, (torch.tensor([2.0])[0].expand(1),)
    yield "of nothing", lambda x: x.sum((0, 2)), (torch.empty((2, 3, 0))[:, :, :],)
    into = torch.empty((9, 4)).t()[:, 1:6]
    tensor = made((4, 6, 5), torch.float32)
    yield "out", lambda x, out: torch.sum(x, 1, out=out), (tensor, into)
    yield "out", lambda x, out: torch.amax(x, 1, out=out), (tensor, into)
    index = torch.empty((5, 4), dtype=torch.int64).t()
    yield "out", lambda x, a, b: torch.max(x, 1, out=(a, b)), (tensor, into, index)
    yield "channels last", lambda x: x.mean((2, 3)), (
        made((3, 5, 4, 6), torch.float32).to(memory_format=torch.channels_last),
    )


def large() -> Iterator[Call]:
    for shape in ((100_000, 3), (3, 100_000), (70_000,), (2, 70_000, 2), (1 << 20,)):
        tensor = made(shape, torch.float32).abs()  # a sum near 0 would have no digits
        for name in ("sum", "amax", "argmax", "var", "max", "argmin"):
            for dim in range(len(shape)):
                yield f"{name} {shape} {dim}", lambda x, n=name, d=dim: getattr(torch, n)(x, d), (tensor,)
            yield f"{name} {shape}", getattr(torch, name), (tensor,)
        yield "any", lambda x: (x > 14).any(), (tensor,)
        yield "sum of integers", torch.sum, (tensor.long(),)
    # Sums of which a float32 with a single running total has 3 digits.
    yield "exact", lambda x: x.sum(), (torch.full((1 << 24,), 0.1),)
    yield "exact", lambda x: x.sum(0), (torch.full((1 << 20, 9), 0.1),)
    yield "exact", lambda x: x.mean(), (torch.rand((1 << 22,), dtype=torch.float32),)


def softmaxes() -> Iterator[Call]:
    for name in ("softmax", "log_softmax"):
        for dtype in FLOATING:
            for dim in (0, 1, -1):
                function = lambda x, n=name, d=dim: getattr(torch, n)(x, d)
                tensor, grad = (made((5, 40, 9), dtype) for _ in range(2))
                yield f"{name} {dim}", function, (tensor,)
                yield f"gradient of {name} {dim}", gradient(function), (tensor, grad)
            for tensor in layouts(dtype):
                yield name, lambda x, n=name: getattr(torch, n)(x, -1), (tensor,)
        row = lambda x, n=name: getattr(torch, n)(x, -1)
        yield f"{name} of half in float32", lambda x, n=name: getattr(torch, n)(x, 1, dtype=torch.float32), (made((5, 40), torch.float32),)
        for shape in ((70_000, 3), (2, 50_000), (1, 1), (3, 4096)):
            tensors = tuple(made(shape, torch.float32) for _ in range(2))
            yield f"gradient of {name} {shape}", gradient(row), tensors
        special = torch.tensor([[1, NAN, 3], [INF, -INF, 0], [-INF] * 3, [-INF, 1, 2], [100, 3, -100]])
        yield f"{name} of special numbers", row, (special,)
        yield f"{name} into", lambda x, out, n=name: getattr(torch, n)(x, 0, out=out), (special, torch.empty((3, 5)).t().contiguous().t().t())


def main() -> int:
    check(itertools.chain(reductions(), softmaxes(), special_cases(), large()), {"clamp.out", "gt.Scalar_out"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
