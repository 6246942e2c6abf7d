# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The operators of torchvision under autocast on the device.

Imported when torchvision is, not by `import torch`, and does not need it; see `_integrations.py`.
"""

import importlib
import types
from typing import Any, Callable

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)

_NAME: str = _device._NAME
#: For autocast on its own devices, torchvision registers these to compute in float32.
_OPERATORS = "nms roi_align roi_pool ps_roi_align ps_roi_pool deform_conv2d".split()

_library = torch.library.Library("torchvision", "FRAGMENT")


def _in_float32(operator: Callable[..., Any]) -> Callable[..., Any]:
    def widened(one: Any) -> Any:
        is_half = isinstance(one, torch.Tensor) and one.dtype in (torch.float16, torch.bfloat16)
        return one.float() if is_half else one

    def narrowed(one: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return one.to(dtype) if one.is_floating_point() else one

    def compute(*arguments: Any) -> Any:
        dtype = arguments[0].dtype
        with torch.autocast(_NAME, enabled=False):
            result = operator(*(widened(one) for one in arguments))
        if isinstance(result, torch.Tensor):
            return narrowed(result, dtype)
        return tuple(narrowed(one, dtype) for one in result)

    return compute


def add_autocast(module: types.ModuleType) -> None:
    """Registers torchvision's operators for autocast on the device."""
    key = "AutocastPrivateUse1"
    for name in _OPERATORS:
        operator = getattr(torch.ops.torchvision, name, None)
        if operator is None or not _device._amp_dtypes():
            continue
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"torchvision::{name}", key):
            _library.impl(name, _in_float32(operator), key)
