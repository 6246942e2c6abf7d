# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The configuration that other test suites need, derived from what the device supports.

PyTorch's own device-generic tests: load this module as a pytest plugin, `python -m pytest -p
torch_foo.testing test_torch.py`, or call `configure_pytorch_tests()` before pytest collects them.
torchcts: `torchcts_manifest()` is its `manifest.py`.

Only tests import this module: nothing in the package needs it.
"""

import importlib
import re
from collections.abc import Collection
from typing import Any, Optional

import torch

_build = importlib.import_module("._build", __package__)
_device = importlib.import_module("._device", __package__)
_release = importlib.import_module("._release", __package__)

__all__ = ["configure_pytorch_tests", "pytest_configure", "torchcts_manifest"]

#: Names of the dtypes that test suites use.
_DTYPES = (
    "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool "
    "complex32 complex64 complex128"
).split()


def _has(group: str) -> bool:
    return bool(_device.capabilities().has(group))


def _supported_dtypes() -> list[str]:
    """The dtypes that operators support: all with the fallback, otherwise those of the kernels."""
    dtypes = None if _build.FALLBACK == "cpu" else _build.KERNEL_DTYPES
    return [name for name in _DTYPES if hasattr(torch, name) and (not dtypes or name in dtypes)]


def _operators_with_kernels() -> list[str]:
    """The name that PyTorch's tests use: "add" for "add.out" and "add_.Tensor"."""
    names = {re.sub(r"(?<=\w)_$", "", one.split(".")[0]) for one in _build.KERNELS}
    return sorted(names)


def configure_pytorch_tests(
    op_overrides: Optional[dict[str, Any]] = None,
    op_allowlist: Optional[Collection[str]] = None,
    test_exclusions: Optional[dict[str, Collection[str]]] = None,
) -> type:
    """Configures PyTorch's device-generic tests for the device; returns their class for it.

    The arguments are those of `PrivateUse1TestBase.set_test_configs`. Without a fallback, only
    operators with a kernel are tested, unless `op_allowlist` is given. Releases without such a
    field of the class ignore it.
    """
    from torch.testing._internal.common_device_type import PrivateUse1TestBase

    if op_allowlist is None and _build.FALLBACK != "cpu":
        op_allowlist = _operators_with_kernels()
    configs = {
        "op_overrides": op_overrides,
        "op_allowlist": op_allowlist,
        "test_exclusions": test_exclusions,
    }
    set_test_configs = getattr(PrivateUse1TestBase, "set_test_configs", None)
    if set_test_configs is not None:
        set_test_configs(**configs)
    else:
        for name, value in configs.items():
            setattr(PrivateUse1TestBase, name, value)
    return PrivateUse1TestBase


def pytest_configure(config: Any) -> None:
    """Makes this module a pytest plugin."""
    configure_pytorch_tests()


def torchcts_manifest(**changes: Any) -> dict[str, Any]:
    """The manifest of torchcts; `changes` replace its entries.

    Raises like the device module's `init`, because it reads the number of devices and their memory.
    """
    _device.init()
    falls_back = _build.FALLBACK == "cpu"
    count = _device.device_count()
    autocast = bool(_build.AMP_DTYPES)
    fused = any(name.startswith("_fused_") for name in _build.KERNELS)
    memory: Any = "auto"
    if _has("memory_info"):
        gibibyte = 1 << 30
        memory = [_device.mem_get_info(index)[1] / gibibyte for index in range(count)]
    manifest = {
        "manifest_version": 1,
        "device_name": _device._NAME,
        "backend_import": _build.MODULE,
        "supported_dtypes": {getattr(torch, name): True for name in _supported_dtypes()},
        "device_count": count,
        "hardware": {
            "memory_model": "unified" if _has("host_accessible") else "discrete",
            "device_memory_gb": memory,
            "system_memory_gb": "auto",
            "oom_recoverable": True,
        },
        "capabilities": {
            "inference": True,
            "training": True,
            "serialization": True,
            "rng": True,
            "device_generator": True,
            "rng_distributions": falls_back,
            "double_backward": falls_back,
            "gradcheck": falls_back,
            "gradient_checkpointing": True,
            "autocast": autocast,
            # Without a kernel, the CPU's is used, which is wrong for half precision.
            "fused_optimizer": fused,
            "dataloader": True,
            "module_hooks": True,
            "channels_last": True,
            "sparse": falls_back,
            "nested": falls_back,
            "named_tensor": _release.HAS_NAMED_TENSORS,
            "foreach": True,
            "fp8": False,
            "quantized_container_plumbing": True,
            "native_quantization": falls_back,
            "custom_quantized_decode": False,
            "compile": True,
            "pinned_memory": _has("pinned_memory"),
            "streams": _has("streams") and _has("events"),
            "events": _has("events") and _has("timing"),
            "deterministic": falls_back,
            "guard_alloc": False,
            "device_api": True,
            "multi_device": count > 1,
            "ieee754": falls_back,
        },
    }
    return {**manifest, **changes}
