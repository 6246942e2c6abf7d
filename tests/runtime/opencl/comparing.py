# SPDX-License-Identifier: Apache-2.0
"""Calls functions on the device and on the CPU, and prints what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch

FLOATING = (torch.float32, torch.float16, torch.bfloat16)
DTYPES = (*FLOATING, torch.int64, torch.int32, torch.bool)

Call = tuple[str, Callable[..., object], tuple[object, ...]]


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


def gradient(function: Callable[..., torch.Tensor]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """The function's gradients for all of its tensors but the last one, which is the result's."""

    def of(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = [one.detach().clone().requires_grad_() for one in tensors[:-1]]
        function(*leaves).backward(tensors[-1])
        return tuple(one.grad for one in leaves if one.grad is not None)

    return of


def on_device(value: object) -> object:
    """The tensor with its strides; numbers stay on the CPU."""
    if not isinstance(value, torch.Tensor) or value.dim() == 0:
        return value
    return value.to("ocl")


def tensors_of(result: object) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)  # type: ignore[call-overload]


def is_as_exact(
    function: Callable[..., object],
    arguments: tuple[object, ...],
    found: list[torch.Tensor],
    expected: list[torch.Tensor],
) -> bool:
    """Whether results err no more than the CPU's do, which rounds elsewhere, or than the last digit
    of the largest one."""
    if any(one.dtype not in FLOATING for one in expected):
        return False
    double = [one.double() if isinstance(one, torch.Tensor) else one for one in arguments]
    for exact, ours, theirs in zip(tensors_of(function(*double)), found, expected, strict=True):
        errors = [(one.cpu().double() - exact).abs().max() for one in (ours, theirs)]
        digit = torch.finfo(ours.dtype).eps * exact.abs().max()
        if not errors[0] <= max(errors[1], digit):
            return False
    return True


def check(calls: Iterable[Call], fall_back: set[str]) -> None:
    """Prints how many calls differ. Fails if an operator fell back that is not in `fall_back`."""
    torch.manual_seed(1)
    count, different = 0, []
    for name, function, arguments in calls:
        count += 1
        what = f"{name} {[getattr(one, 'dtype', one) for one in arguments]}"
        expected = tensors_of(function(*arguments))
        try:
            found = tensors_of(function(*map(on_device, arguments)))
        except RuntimeError as error:
            different.append(f"{what}: {error}")
            continue
        assert {one.device.type for one in found} == {"ocl"}, what
        try:
            torch.testing.assert_close([one.cpu() for one in found], expected, equal_nan=True)
        except AssertionError as error:
            if is_as_exact(function, arguments, found, expected):
                continue
            shapes = [getattr(one, "shape", one) for one in arguments]
            different.append(f"{what} {shapes}: {error}")
    print("\n".join(different[:20]), end="\n" * bool(different))
    names = {row.operator.split("::")[-1] for row in torch.ocl.fallback_report().rows}
    assert names <= fall_back, names - fall_back
    print(f"{count} calls, {len(different)} differ")
