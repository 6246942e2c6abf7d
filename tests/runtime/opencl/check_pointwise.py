# SPDX-License-Identifier: Apache-2.0
"""Activations, arithmetic, logic and choices, on the device and on the CPU."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator

import torch
from comparing import DTYPES, FLOATING, Call, check, check_errors, gradient, layouts, made, of
from torch.nn import functional as F

NAN, INF = float("nan"), float("inf")
SPECIAL = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0, 2.5, -0.5, 3.0, -3.0])
LIMITS = ((-1, 2), (None, 1), (0, None), (0.5, None), (2, -1), (NAN, 1), (0.1, 0.7))
ACTIVATIONS: dict[str, Callable[..., torch.Tensor]] = {
    "gelu": F.gelu,
    "gelu of tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardtanh": F.hardtanh,
    "relu6": F.relu6,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 0.7),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 0.6),
}


def activations() -> Iterator[Call]:
    for name, function in ACTIVATIONS.items():
        for dtype in FLOATING:
            tensor, grad = made((6, 7), dtype), made((6, 7), dtype)
            yield name, function, (tensor,)
            yield f"gradient of {name}", gradient(function), (tensor, grad)
        # PyTorch's CPU makes NaN of gelu(inf).
        yield name, function, (SPECIAL[3:] if "gelu" in name else SPECIAL,)
        yield f"gradient of {name}", gradient(function), (SPECIAL[3:], SPECIAL[3:])
        yield name, function, (made((5, 8), torch.float32).t()[1:, ::2],)
    yield "elu in place", lambda x: F.elu(x.clone(), 0.7, inplace=True), (SPECIAL,)
    in_place = gradient(lambda x: F.elu(x * 1, 0.7, inplace=True))
    yield "gradient of elu in place", in_place, (SPECIAL[3:], SPECIAL[3:])


def arithmetic() -> Iterator[Call]:
    for dtype in DTYPES:
        a, b = made((4, 5), dtype), made((4, 5), dtype)
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            for value in (1, 0.1, 2**40, True):
                yield f"{name} {value}", of(name, value), (a,)
        for name in ("logical_and", "logical_or"):
            yield name, getattr(torch, name), (a, b[:1])
            yield name, lambda x, y, n=name: getattr(x.clone(), n + "_")(y), (a, b)
        yield "logical_not", torch.logical_not, (a,)
        for name in ("isnan", "isneginf", "isposinf"):
            yield name, getattr(torch, name), (a,)
        for mask in (a > 0, (a > 0)[0], (a > 0)[:, :1]):
            yield "masked_fill", lambda x, m: x.masked_fill(m, 3), (a, mask)
            yield (
                "masked_fill",
                lambda x, m: x.masked_fill(m, torch.tensor(2).to(x.device)),
                (
                    a,
                    mask,
                ),
            )
            yield "where", torch.where, (mask, a, b)
            yield "where", lambda m, x: torch.where(m, x, 2.5), (mask, a)
            yield "where", lambda m, x: torch.where(m, 1, x[:, :1]), (mask, a)
        yield "where", torch.where, (a > 0, a, made((5,), torch.float32))
        positive = a if dtype == torch.bool else a.abs()
        for exponent in (2, 3, 0.5, 0, 1.7, 5):
            yield f"pow {exponent}", lambda x, e=exponent: x**e, (positive,)
            yield f"{exponent} ** x", lambda x, e=exponent: e**x, (a,)
        if dtype != torch.bool:
            for name in ("abs", "ceil", "floor", "round", "trunc"):
                yield name, getattr(torch, name), (a,)
            for limits in LIMITS:
                yield f"clamp {limits}", lambda x, m=limits: x.clamp(*m), (a,)
            yield "clamp by tensors", torch.clamp, (a, b, b + 1)
            yield "clamp by tensors", torch.clamp, (a, b + 1, b)
            yield "clamp_min", lambda x, y: x.clamp(min=y), (a, b[0])
            yield "clamp_max", lambda x, y: x.clamp(max=y), (a, b[:, :1])
            yield "pow", torch.pow, (a.abs(), b)
            yield "pow", torch.pow, (a, made((4, 5), torch.int64))
        if not dtype.is_floating_point:
            for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
                yield name, getattr(torch, name), (a, b)
                yield name, getattr(torch, name), (a, made((5,), torch.int64))
            yield "bitwise_not", torch.bitwise_not, (a,)
        else:
            for weight in (0.3, 0.8):
                yield "lerp", lambda x, y, w=weight: x.lerp(y, w), (a, b)
            yield "lerp", torch.lerp, (a, b, made((5,), dtype))


def special_cases() -> Iterator[Call]:
    tests = ("isnan", "isneginf", "isposinf", "logical_not")
    for name in ("abs", "ceil", "floor", "round", "trunc", *tests):
        yield name, getattr(torch, name), (SPECIAL,)
    for name, dtype in itertools.product(("isneginf", "isposinf"), FLOATING):
        yield name, getattr(torch, name), (SPECIAL.to(dtype),)
        yield name, lambda x, y, n=name: getattr(torch, n)(x, out=y > 9), (SPECIAL, SPECIAL)
    halves = torch.arange(-6, 7) / 2
    yield "round", torch.round, (halves,)
    for exponent in (2, 3, 0.5, -0.5, -1, -2, 0, 1.5, NAN):
        yield f"pow {exponent}", lambda x, e=exponent: x**e, (SPECIAL,)
    yield "pow", torch.pow, (SPECIAL, SPECIAL[:, None])
    powers = torch.arange(-3, 70)
    yield "pow", torch.pow, (torch.tensor([-3, -2, -1, 0, 1, 2, 3])[:, None], powers)
    for limits in ((NAN, None), (None, NAN), (0, 1), (-INF, INF)):
        yield f"clamp {limits}", lambda x, m=limits: x.clamp(*m), (SPECIAL,)
    yield "clamp", torch.clamp, (SPECIAL, SPECIAL[:, None], SPECIAL[:, None, None])
    for function in (torch.abs, torch.logical_not, torch.floor):
        yield "into", lambda x, out, f=function: f(x, out=out), (SPECIAL, torch.empty(0))
    for dtype in (torch.float32, torch.int64):
        for tensor in layouts(dtype):
            yield "abs", torch.abs, (tensor,)
            yield "gt", lambda x: x > 1, (tensor,)
            yield "where", lambda x: torch.where(x > 0, x, 7), (tensor,)
            yield "masked_fill", lambda x: x.clone().masked_fill_(x > 0, 2), (tensor,)
    yield "gradient of clamp", gradient(lambda x: x.clamp(-1, 1)), (SPECIAL[3:], SPECIAL[3:])
    yield "gradient of pow", gradient(lambda x: x.abs() ** 2.5), (SPECIAL[3:] + 1, SPECIAL[3:])


ERRORS: tuple[Callable[[torch.Tensor], object], ...] = (
    lambda x: x.masked_fill_((x > 0).long(), 1),
    lambda x: x.masked_fill_(x[None] > 0, 1),
    lambda x: x.masked_fill_(x > 0, x),
    lambda x: torch.where(x.long(), x, x),
    lambda x: F.hardtanh(x, 2, 1),
    lambda x: F.gelu(x.long()),
    lambda x: F.leaky_relu(x.int()),
    lambda x: x.bool().abs(),
    lambda x: x.long() ** -1,
    lambda x: x & 1,
    lambda x: torch.abs(x, out=torch.empty(3, dtype=torch.int64, device=x.device)),
    lambda x: x.long().masked_fill_(x > 0, 2**70),
    lambda x: torch.isneginf(x, out=x.clone()),
    lambda x: torch.isposinf(x.to(torch.complex64)),
)


def main() -> int:
    check(itertools.chain(activations(), arithmetic(), special_cases()), set())
    check_errors(ERRORS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
