# SPDX-License-Identifier: Apache-2.0
"""Optimizers with `fused=True`, on the device and on the CPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import torch
from comparing import FLOATING, Call, check, made

OPTIMIZERS: list[tuple[type[torch.optim.Optimizer], dict[str, object]]] = [
    (torch.optim.Adam, {}),
    (torch.optim.Adam, {"weight_decay": 0.1, "amsgrad": True}),
    (torch.optim.AdamW, {"weight_decay": 0.1, "betas": (0.5, 0.9)}),
    (torch.optim.AdamW, {"maximize": True, "amsgrad": True}),
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.2}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
]


def steps(
    kind: type[torch.optim.Optimizer],
    options: dict[str, object],
    scale: float | None = None,
    not_finite: bool = False,
    rate: bool = False,
) -> Callable[..., list[torch.Tensor]]:
    """The parameter and its gradient after three steps. As torch.amp does, `scale` is what the
    gradient is too large by, and where it is not finite, nothing happens."""

    def call(parameter: torch.Tensor, grad: torch.Tensor) -> list[torch.Tensor]:
        leaf = parameter.detach().clone().requires_grad_()
        given = {**options, "lr": torch.tensor(0.1)} if rate else options
        # The CPU's fused kernels take tensors to have the same strides.
        fused = leaf.stride() == grad.stride() or leaf.device.type == "ocl"
        optimizer = kind([leaf, torch.zeros_like(leaf)], fused=fused, **given)  # type: ignore[call-arg]
        for step in range(3):
            leaf.grad = grad * (step + 1)
            if scale is not None:
                optimizer.grad_scale = torch.tensor(scale, device=leaf.device)  # type: ignore[attr-defined]
                stop = float(not_finite and step == 1)
                optimizer.found_inf = torch.tensor(stop, device=leaf.device)  # type: ignore[attr-defined]
            optimizer.step()
        assert leaf.grad is not None
        return [leaf.detach(), leaf.grad]

    return call


def calls() -> Iterator[Call]:
    for kind, options in OPTIMIZERS:
        name = f"{kind.__name__} {options}"
        for dtype in FLOATING:
            yield name, steps(kind, options), (made((6, 7), dtype), made((6, 7), dtype))
        both = made((6, 7), torch.float32), made((6, 7), torch.float32)
        yield f"{name} scaled", steps(kind, options, scale=4.0), both
        yield f"{name} not finite", steps(kind, options, scale=4.0, not_finite=True), both
        yield f"{name} rate", steps(kind, options, rate=True), both
        yield f"{name} strides", steps(kind, options), (both[0].t(), made((7, 6), torch.float32))
        yield f"{name} nothing", steps(kind, options), (both[0][:0], both[1][:0])
        large = made((300, 400), torch.float32), made((300, 400), torch.float32)
        yield f"{name} large", steps(kind, options), large


def main() -> int:
    check(calls(), set())
    return 0


if __name__ == "__main__":
    sys.exit(main())
