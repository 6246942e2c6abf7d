# SPDX-License-Identifier: Apache-2.0
"""Calls each operator that has a kernel, on the device and on the CPU; prints what differs."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import torch
from comparing import DTYPES, FLOATING, Call, check, gradient, layouts, made
from torch.nn import functional as F

UNARY = "cos erf exp expm1 log log1p log2 reciprocal rsqrt sigmoid sin sqrt tanh".split()
BINARY = "add sub mul div maximum minimum eq ne lt le gt ge".split()


def made(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return (torch.randn(shape) * 3).to(dtype)


def layouts(dtype: torch.dtype) -> Iterator[torch.Tensor]:
    whole = made((6, 7), dtype)
    yield whole
    yield whole.t()
    yield whole[1:, ::2]
    yield whole[2].expand(3, 7)
    yield made((0, 3), dtype)
    yield made((2, 1, 3), dtype).permute(2, 0, 1)
    yield made((2,) * 10, dtype).permute(*range(9, -1, -1))


def calls() -> Iterator[Call]:
    """Every operator for every dtype, and a few operators for every layout and pair of dtypes: a
    driver compiles a kernel for each of these."""
    for name, dtype in itertools.product(UNARY, DTYPES):
        yield name, getattr(torch, name), (made((6, 7), dtype),)
    for dtype in (torch.float32, torch.bfloat16, torch.bool):
        for tensor in layouts(dtype):
            yield "exp", torch.exp, (tensor,)
            yield "mul", torch.mul, (tensor, tensor)
            yield "fill", lambda x: x.clone().fill_(3), (tensor,)
    for dtype in (*FLOATING, torch.int64, torch.int32):
        for function in (torch.neg, torch.sign, torch.relu):
            yield function.__name__, function, (made((6, 7), dtype),)
    for name, dtype in itertools.product(BINARY, DTYPES):
        if (name, dtype) != ("sub", torch.bool):  # PyTorch refuses it
            yield name, getattr(torch, name), (made((4, 5), dtype), made((4, 5), dtype))
    for left, right in itertools.product(DTYPES, DTYPES):
        yield "add", torch.add, (made((4, 5), left), made((5,), right))
        yield "lt", torch.lt, (made((4, 5), left), torch.tensor(2, dtype=right))
    for name in BINARY:
        function = getattr(torch, name)
        yield name, function, (made((4, 1), torch.float32), made((3, 1, 5), torch.float32))
        yield name, function, (made((4, 5), torch.float32).t(), torch.tensor(2))
    for dtype in FLOATING:
        a, b, c = (made((4, 5), dtype) for _ in range(3))
        yield "alpha", lambda x, y: torch.add(x, y, alpha=0.5), (a, b)
        yield "rsub", lambda x, y: torch.rsub(x, y, alpha=2), (a, b)
        yield "in place", lambda x, y: x.clone().mul_(y), (a, b)
        yield "overlap", lambda x: x.clone()[:, 1:].add_(x[:, :-1]), (a,)
        yield "addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), (a, b, c)
        yield "addcdiv", lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), (a, b, c)
        for function in (torch.tanh, torch.sigmoid, torch.relu, F.silu):
            yield f"gradient of {function.__name__}", gradient(function), (a, b)
    for dtype in (torch.int64, torch.int32):
        yield "alpha", lambda x, y: torch.sub(x, y, alpha=3), (made((9,), dtype), made((9,), dtype))
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0])
    for name in (*UNARY, "neg", "sign", "relu"):
        yield name, getattr(torch, name), (special,)
    for name in BINARY:
        yield name, getattr(torch, name), (special, special[:, None])


def main() -> int:
    check(calls(), {"rsub.Tensor"})  # composed of sub
    return 0


if __name__ == "__main__":
    sys.exit(main())
