# SPDX-License-Identifier: Apache-2.0
"""Random numbers: what is drawn, from where, and PyTorch's errors."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from comparing import FLOATING, check_errors
from torch.nn import functional as F

COUNT = 1 << 16


def philox(seed: int, offset: int, subsequence: int) -> list[int]:
    """Philox4x32-10, as in the paper of Salmon, Moraes, Dror and Shaw."""
    low = (1 << 32) - 1
    counter = [offset & low, offset >> 32, subsequence & low, subsequence >> 32]
    key = [seed & low, seed >> 32]
    for _ in range(10):
        one, other = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (other >> 32) ^ counter[1] ^ key[0],
            other & low,
            (one >> 32) ^ counter[3] ^ key[1],
            one & low,
        ]
        key = [(key[0] + 0x9E3779B9) & low, (key[1] + 0xBB67AE85) & low]
    return counter


def numbers_are_of_the_generator() -> None:
    assert philox(0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    generator = torch.Generator("ocl")
    for seed in (0, 7, 1 << 40):
        generator.manual_seed(seed)
        for turn in range(3):
            drawn = torch.empty(10, device="ocl").uniform_(generator=generator).tolist()
            bits = [one for t in range(3) for one in philox(seed, turn, t)][:10]
            assert drawn == [(one >> 8) / (1 << 24) for one in bits]
    generator.manual_seed(3)
    drawn = torch.empty(4, dtype=torch.int64, device="ocl").random_(5, 105, generator=generator)
    words = [philox(3, 0, 0), philox(3, 0, 1)]
    bits = [one[i] << 32 | one[i + 1] for one in words for i in (0, 2)]
    assert drawn.tolist() == [one % 100 + 5 for one in bits]
    strided = torch.empty(8, 6, device="ocl")[:, ::2]
    strided.uniform_(generator=generator.manual_seed(3))
    dense = torch.empty(8, 3, device="ocl").uniform_(generator=generator.manual_seed(3))
    assert torch.equal(strided.cpu(), dense.cpu())


def distributions() -> None:
    torch.manual_seed(1)
    for dtype in FLOATING:
        x = torch.empty(COUNT, dtype=dtype, device="ocl")
        uniform = x.uniform_(2, 3).cpu()
        assert uniform.min() >= 2
        assert uniform.max() < 3
        assert abs(uniform.double().mean() - 2.5) < 0.01
        normal = x.normal_(1, 2).cpu().double()
        assert abs(normal.mean() - 1) < 0.05
        assert abs(normal.std() - 2) < 0.05
        assert abs((normal > 3).double().mean() - 0.1587) < 0.01
        assert normal.isfinite().all()
    for dtype in (*FLOATING, torch.int64, torch.int32, torch.bool):
        x = torch.empty(COUNT, dtype=dtype, device="ocl")
        drawn = x.bernoulli_(0.3).cpu().double()
        assert set(drawn.tolist()) == {0, 1}
        assert abs(drawn.mean() - 0.3) < 0.01
        assert x.bernoulli_(0).cpu().double().sum() == 0
        assert x.bernoulli_(1).cpu().double().sum() == COUNT
        if dtype != torch.bool:
            assert set(x.random_(7).tolist()) == set(range(7))
            assert set(x.random_(-2, 3).tolist()) == {-2, -1, 0, 1, 2}
        drawn, here = x.random_().cpu().double(), torch.empty(COUNT, dtype=dtype).random_().double()
        assert drawn.min() >= 0
        assert abs(drawn.mean() / here.mean() - 1) < 0.02
        assert drawn.max() <= max(here.max() * 1.01, 1)
    wide = torch.empty(COUNT, dtype=torch.int64, device="ocl").random_(-(2**63), None).cpu()
    assert wide.min() < -(2**62)
    assert wide.max() > 2**62


def dropout() -> None:
    torch.manual_seed(2)
    x = torch.randn(300, 70, device="ocl", requires_grad=True)
    y = F.dropout(x, 0.25)
    y.backward(torch.ones_like(y))
    kept = (y != 0).cpu()
    assert abs(kept.double().mean() - 0.75) < 0.02
    torch.testing.assert_close(y.cpu(), x.cpu() * kept / 0.75)
    assert x.grad is not None
    torch.testing.assert_close(x.grad.cpu(), kept / 0.75)
    out, mask = torch.native_dropout(x.detach(), 0.25, True)
    torch.testing.assert_close(out.cpu(), x.detach().cpu() * mask.cpu() / 0.75)
    grad = torch.ops.aten.native_dropout_backward(torch.ones_like(out), mask, 4 / 3)
    torch.testing.assert_close(grad.cpu(), mask.cpu() / 0.75)
    assert torch.native_dropout(x.detach(), 1.0, True)[0].abs().sum() == 0
    same, mask = torch.native_dropout(x.detach(), 0.5, False)
    assert torch.equal(same.cpu(), x.detach().cpu())
    assert mask.all()


ERRORS: tuple[Callable[[torch.Tensor], object], ...] = (
    lambda x: x.uniform_(2, 1),
    lambda x: x.long().uniform_(),
    lambda x: x.normal_(0, -1),
    lambda x: x.long().normal_(),
    lambda x: x.bernoulli_(1.5),
    lambda x: x.random_(5, 5),
    lambda x: x.int().random_(0, 2**40),
    lambda x: x[:1].expand(3).uniform_(),
    lambda x: torch.native_dropout(x, 1.5, True),
)


def main() -> int:
    checks = (numbers_are_of_the_generator, distributions, dropout)
    for one in checks:
        one()
    names = {row.operator.split("::")[-1] for row in torch.ocl.fallback_report().rows}
    assert not names & {"uniform_", "normal_", "bernoulli_.float", "random_", "native_dropout"}
    check_errors(ERRORS)
    print(f"{len(checks) + len(ERRORS)} calls, 0 differ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
