# SPDX-License-Identifier: Apache-2.0
"""A kernel for fused attention is what `scaled_dot_product_attention` calls; docs/kernels.md."""

import pytest
import torch
import torch.nn.functional as F
import torch_foo  # noqa: F401
from torch.nn.attention import SDPBackend, sdpa_kernel

calls = torch.ops.foo_attention.calls
WAYS = {
    "plain": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.3},
    "bias": {"attn_mask": torch.randn(5, 6)},
    "mask": {"attn_mask": torch.rand(5, 6) > 0.3},
}


def attend(device, inputs, **options):
    """The result and the gradients of the inputs."""
    leaves = [one.to(device).detach().requires_grad_() for one in inputs]
    moved = {k: v.to(device) if torch.is_tensor(v) else v for k, v in options.items()}
    output = F.scaled_dot_product_attention(*leaves, **moved)
    output.square().sum().backward()
    return [output.detach().cpu(), *(one.grad.cpu() for one in leaves)]


def some_inputs():
    return [torch.randn(2, 4, length, 8) for length in (5, 6, 6)]


@pytest.mark.parametrize("way", WAYS)
def test_attention_takes_the_kernel(way):
    inputs = some_inputs()
    expected = attend("cpu", inputs, **WAYS[way])
    before = calls()
    results = attend("foo", inputs, **WAYS[way])
    assert calls() == before + 1
    torch.testing.assert_close(results, expected, rtol=1e-4, atol=1e-5)


def test_the_user_may_forbid_it():
    inputs = some_inputs()
    before = calls()
    with sdpa_kernel(SDPBackend.MATH):
        results = attend("foo", inputs)
    assert calls() == before
    torch.testing.assert_close(results, attend("cpu", inputs), rtol=1e-4, atol=1e-5)


def test_other_dtypes_fall_back():
    inputs = [one.double() for one in some_inputs()]
    before = calls()
    results = attend("foo", inputs)
    assert calls() == before
    torch.testing.assert_close(results, attend("cpu", inputs))


def test_a_module_takes_it():
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 5, 8)
    expected, _ = module(x, x, x, need_weights=False)
    before = calls()
    on_device = x.to("foo")
    result, _ = module.to("foo")(on_device, on_device, on_device, need_weights=False)
    assert calls() == before + 1
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-5)
