# SPDX-License-Identifier: Apache-2.0
"""PyTorch's allocator of pinned memory, asked by a vendor's own code."""

import torch
import torch_foo  # noqa: F401


def test_pinned_memory_is_kept():
    pinned = torch.empty(64, dtype=torch.int64).pin_memory()
    assert torch.ops.state.kept(pinned)
    assert torch.ops.state.kept(pinned[3:])


def test_other_memory_is_not_and_stays_as_it_is():
    torch.ones(1).pin_memory()
    for other in (torch.arange(64), torch.ones(4, device="foo"), torch.empty(0)):
        before = other.clone()
        assert not torch.ops.state.kept(other)
        assert torch.equal(other, before)
