"""What the scripts that compare the device with the CPU share."""

from __future__ import annotations

import torch

DEVICE = "ocl"


def difference(found: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    """The norm of the difference, relative to the norm of what is expected."""

    def square(one: torch.Tensor) -> float:
        return one.double().square().sum().item()

    pairs = zip(found, expected, strict=True)
    apart = sum(square(one.double() - other.double()) for one, other in pairs)
    return (apart / sum(map(square, expected))) ** 0.5


def fallbacks() -> str:
    """The names of the operators that fell back to the CPU since the report was reset."""
    rows = getattr(torch, DEVICE).fallback_report().rows
    return ", ".join(sorted(row.operator.split("::")[-1] for row in rows)) or "none"


def reset_fallbacks() -> None:
    getattr(torch, DEVICE).reset_fallback_report()
