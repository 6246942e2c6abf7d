# SPDX-License-Identifier: Apache-2.0
"""Copies with strides and conversions, on the device and on the CPU; prints what differs."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

import torch

#: The last three have no kernel: the host copies them, or their bits are copied.
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16)
DTYPES += (torch.uint8, torch.bool, torch.int8, torch.float64, torch.complex64)
VIEWS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda x: x,
    lambda x: x.t(),
    lambda x: x[1:, ::2],
    lambda x: x[2].expand(3, 7),
)
COMPLEX: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda x: x.conj().t(),
    lambda x: x.conj()[:, ::2],
    lambda x: x.imag.t(),
    lambda x: x.conj().imag[:, ::3],
)


def compare(what: object, found: torch.Tensor, expected: torch.Tensor) -> int:
    """Returns 1 if they differ, and says so."""
    if torch.equal(found.cpu(), expected):
        return 0
    print(f"{what}: {found.cpu().tolist()} instead of {expected.tolist()}")
    return 1


def conversions() -> list[int]:
    differ = []
    for source, target in itertools.product(DTYPES, DTYPES):
        if source.is_complex and not target.is_complex:
            continue
        here = (torch.randn(6, 7) * 3).abs().to(source)
        there = here.to("ocl")
        for number, view in enumerate(VIEWS):
            what = (source, target, number)
            differ.append(compare(what, view(there).to(target), view(here).to(target)))
            written, expected = torch.zeros(8, 8, device="ocl").to(target), torch.zeros(8, 8)
            expected = expected.to(target)
            rows, columns = view(here).shape
            written.t()[:rows, :columns].copy_(view(there))
            expected.t()[:rows, :columns].copy_(view(here))
            differ.append(compare((*what, "written"), written, expected))
    return differ


def main() -> int:
    torch.manual_seed(1)
    differ = conversions()
    numbers = torch.randn(5, 6, dtype=torch.complex64)
    for number, view in enumerate(COMPLEX):
        there = view(numbers.to("ocl"))
        differ.append(compare(("complex", number), there, view(numbers)))
        differ.append(compare(("dense", number), there.contiguous(), view(numbers).contiguous()))

    large = torch.randn(3000, 40)
    there = large.to("ocl")
    differ.append(compare("a column to the host", there[:, ::3], large[:, ::3]))
    for one in (there, large):
        one[:, 1] = torch.ones(3000)
    differ.append(compare("a column from the host", there, large))
    expected = large.clone()
    expected[1:, :3] = large[:-1, :3]
    there[1:, :3] = there[:-1, :3]
    differ.append(compare("onto itself", there, expected))

    nan = (torch.full((8,), float("nan")).view(torch.int32) + 5).view(torch.float32)
    bits = nan.to("ocl")[::2].contiguous().cpu().view(torch.int32)
    differ.append(compare("the bits of a NaN", bits, nan[::2].view(torch.int32)))
    print(f"{len(differ)} copies, {sum(differ)} differ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
