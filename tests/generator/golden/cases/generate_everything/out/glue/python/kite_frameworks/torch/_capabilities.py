# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""What the device can do."""

import importlib
from typing import NamedTuple, Optional

import torch

# Not `from . import`: that would wait for the package, which may be waiting for this module.
_build = importlib.import_module("._build", __package__)
_device = importlib.import_module("._device", __package__)

__all__ = ["Capabilities", "capabilities"]


class Capabilities(NamedTuple):
    """What the device can, by what its runtime implements and backend.toml says."""

    #: For each group of functions that a runtime may have, whether this one does: "streams", ...
    runtime: dict[str, bool]
    #: The functions that unlock each group.
    functions: dict[str, str]
    #: What computes an operator without a kernel: "cpu" or, where that raises, "error".
    fallback: str
    #: The dtypes that kernels compute, all of them together; None where one takes any dtype.
    kernel_dtypes: Optional[list[torch.dtype]]
    #: The dtypes that autocast may use, the default first.
    amp_dtypes: list[torch.dtype]

    def has(self, name: str) -> bool:
        """Whether the runtime implements a group of functions; False for one it never heard of."""
        return self.runtime.get(name, False)


def capabilities() -> Capabilities:
    """What the device can, as it was compiled: no device is asked.

    Raises a RuntimeError where the backend could not be loaded.
    """
    if _device._failure is not None:
        text = f"device `{_device._NAME}` is not available: {_device._failure}"
        raise RuntimeError(text) from _device._failure
    names, there, functions = _device._library().capabilities()
    dtypes = _build.KERNEL_DTYPES
    return Capabilities(
        runtime={name: one != 0 for name, one in zip(names, there)},
        functions=dict(zip(names, functions)),
        fallback=_build.FALLBACK,
        kernel_dtypes=None if dtypes is None else [getattr(torch, name) for name in dtypes],
        amp_dtypes=_device._amp_dtypes(),
    )
