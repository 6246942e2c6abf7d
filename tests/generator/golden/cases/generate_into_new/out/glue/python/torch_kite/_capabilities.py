# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""What the device supports."""

import importlib
from typing import NamedTuple, Optional

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_build = importlib.import_module("._build", __package__)
_device = importlib.import_module("._device", __package__)

__all__ = ["Capabilities", "capabilities"]


class Capabilities(NamedTuple):
    """What the device supports, according to its runtime and backend.toml."""

    #: For each optional group of runtime functions, whether this runtime has it: "streams", ...
    runtime: dict[str, bool]
    #: The functions that enable each group.
    functions: dict[str, str]
    #: What happens to an operator without a kernel: "cpu" computes it, "error" raises an error.
    fallback: str
    #: The dtypes of all kernels together; None if any kernel accepts every dtype.
    kernel_dtypes: Optional[list[torch.dtype]]
    #: The dtypes that autocast may use, the default first.
    amp_dtypes: list[torch.dtype]

    def has(self, name: str) -> bool:
        """Whether the runtime has a group of functions; False for an unknown group."""
        return self.runtime.get(name, False)


def capabilities() -> Capabilities:
    """What the device supports, as compiled into the backend; does not call the driver.

    Raises a RuntimeError if the backend could not be loaded.
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
