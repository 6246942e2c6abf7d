# SPDX-License-Identifier: Apache-2.0
"""Calls operators on the device and on the CPU, and compares what they return."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

#: What is called, the function, and its arguments.
Call = tuple[str, Callable[..., object], tuple[object, ...]]


def gradient(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    def of(tensor: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        leaf = tensor.detach().clone().requires_grad_()
        function(leaf).backward(grad)
        assert leaf.grad is not None
        return leaf.grad

    return of


def on_device(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return type(value)(map(on_device, value))
    number = isinstance(value, torch.Tensor) and value.dim() == 0
    return value.to("ocl") if isinstance(value, torch.Tensor) and not number else value


def compare(calls: Iterable[Call]) -> tuple[int, list[str]]:
    """The number of calls, and what differs."""
    torch.manual_seed(1)
    count, different = 0, []
    for name, function, arguments in calls:
        count += 1
        what = f"{name} {[getattr(one, 'dtype', one) for one in arguments]}"
        expected = function(*arguments)
        found = function(*map(on_device, arguments))
        pairs = [(found, expected)] if isinstance(found, torch.Tensor) else zip(found, expected)
        for left, right in pairs:
            assert left.device.type == "ocl", what
            try:
                torch.testing.assert_close(left.cpu(), right, equal_nan=True)
            except AssertionError as error:
                different.append(f"{what}: {error}")
    return count, different


def report(compared: tuple[int, list[str]], kernels: set[str]) -> None:
    """Prints what differs. Fails if an operator that has a kernel fell back to the CPU."""
    count, different = compared
    print("\n".join(different[:20]), end="\n" * bool(different))
    names = [row.operator.split("::")[-1] for row in torch.ocl.fallback_report().rows]
    fell_back = {name.split(".")[0] for name in names}
    assert not fell_back & kernels, fell_back
    print(f"{count} calls, {len(different)} differ")
