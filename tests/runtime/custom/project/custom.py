# SPDX-License-Identifier: Apache-2.0
"""Fake kernels and gradients of the custom operators."""

import torch


def fused_rms_norm_fake(x, weight, eps=1e-6):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def fused_rms_norm_context(ctx, inputs, output):
    x, weight, ctx.eps = inputs
    ctx.save_for_backward(x, weight)


def fused_rms_norm_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    factor = (x.square().mean(-1, keepdim=True) + ctx.eps).rsqrt()
    scaled = grad * weight
    grad_x = factor * (scaled - x * factor.square() * (scaled * x).mean(-1, keepdim=True))
    grad_weight = (grad * x * factor).flatten(0, -2).sum(0)
    return grad_x, grad_weight, None


def filled_fake(x, mode, sizes, dtype=None, order=(2, 1)):
    return x.new_empty(sizes, dtype=dtype or x.dtype)
