# SPDX-License-Identifier: Apache-2.0
"""Layers of networks and their gradients, on the device and on the CPU."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import torch
from comparing import FLOATING, Call, check, gradient, made
from torch.nn import functional as F


def layer_norms() -> Iterator[Call]:
    for dtype in FLOATING:
        x, grad = made((6, 5, 40), dtype), made((6, 5, 40), dtype)
        w, b = made((40,), dtype), made((40,), dtype)
        wide = [one.float() for one in (w, b)]
        yield "layer_norm", lambda x, w, b: F.layer_norm(x, (40,), w, b), (x, w, b)
        yield "layer_norm", lambda x: F.layer_norm(x, (5, 40), eps=0.1), (x,)
        yield "layer_norm", lambda x: F.layer_norm(x.transpose(0, 2), (5, 6)), (x,)
        both = gradient(lambda x, w, b: F.layer_norm(x, (40,), w, b))
        yield "gradient of layer_norm", both, (x, w, b, grad)
        yield "gradient of layer_norm without bias", gradient(
            lambda x, w: F.layer_norm(x, (40,), w)
        ), (x, w, grad)
        yield "gradient of layer_norm without both", gradient(
            lambda x: F.layer_norm(x, (5, 40))
        ), (x, grad)
        yield "gradient of layer_norm in two dtypes", both, (x, *wide, grad)
    for shape in ((70_000, 9), (3, 5000), (1, 1), (300, 768)):
        tensors = [made(shape, torch.float32), *(made(shape[1:], torch.float32) for _ in "wb")]
        function = gradient(lambda x, w, b, n=shape[1:]: F.layer_norm(x, n, w, b))
        yield "gradient of layer_norm", function, (*tensors, made(shape, torch.float32))
    far = made((20, 100), torch.float32) + 1000
    yield "layer_norm of far numbers", lambda x: F.layer_norm(x, (100,)), (far,)


def trained(*tensors: torch.Tensor, training: bool = True, momentum: float = 0.3) -> list[torch.Tensor]:
    """A step of batch_norm: the result, the new statistics and the gradients."""
    x, w, b, mean, var, grad = (one.detach().clone() for one in tensors)
    leaves = [one.requires_grad_() for one in (x, w, b)]
    out = F.batch_norm(x, mean, var, w, b, training, momentum)
    out.backward(grad)
    return [out.detach(), mean, var, *(one.grad for one in leaves if one.grad is not None)]


def batch_norms() -> Iterator[Call]:
    for dtype, shape in itertools.product(
        FLOATING, ((7, 5), (4, 5, 33), (4, 5, 6, 7), (2, 5, 3, 4, 5))
    ):
        x, grad = made(shape, dtype), made(shape, dtype)
        for wide in (dtype, torch.float32):
            parameters = [made((5,), wide) for _ in range(3)]
            arguments = (x, *parameters, made((5,), wide).abs(), grad)
            for training in (True, False):
                yield f"batch_norm {training}", lambda *all, t=training: trained(
                    *all, training=t
                ), arguments
        yield "batch_norm without parameters", gradient(
            lambda x: F.batch_norm(x, None, None, training=True)
        ), (x, grad)
    last = made((4, 5, 6, 7), torch.float32).to(memory_format=torch.channels_last)
    for norm in (
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.group_norm(x, 5),
    ):
        yield "channels last", norm, (last,)
        yield "strides", lambda x, n=norm: torch.tensor(n(x).stride()).to(x.device), (last,)
    x = made((64, 32, 20, 20), torch.float32) * 3 + 50
    yield "batch_norm", gradient(lambda x: F.batch_norm(x, None, None, training=True)), (x, x * 0.1)
    yield "instance_norm", F.instance_norm, (x,)


def group_norms() -> Iterator[Call]:
    for dtype, shape in itertools.product(FLOATING, ((4, 6), (4, 6, 33), (4, 6, 6, 7))):
        x, grad = made(shape, dtype), made(shape, dtype)
        w, b = made((6,), dtype), made((6,), dtype)
        for groups in (1, 2, 6):
            if shape == (4, 6) and groups == 6:
                continue  # groups of one element, of which PyTorch refuses to train
            yield "group_norm", lambda x, w, b, g=groups: F.group_norm(x, g, w, b), (x, w, b)
            yield "gradient of group_norm", gradient(
                lambda x, w, b, g=groups: F.group_norm(x, g, w, b)
            ), (x, w, b, grad)
        yield "gradient of group_norm", gradient(lambda x: F.group_norm(x, 2)), (x, grad)


def main() -> int:
    check(itertools.chain(layer_norms(), batch_norms(), group_norms()), set())
    return 0


if __name__ == "__main__":
    sys.exit(main())
