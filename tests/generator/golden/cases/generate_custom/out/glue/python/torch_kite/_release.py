# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""What differs between releases of PyTorch for this package's Python; nothing else asks for it.

Each is asked of PyTorch itself, so that a release built from source, which has a number of its
own, is known as well. The library has its differences in <backendkit/torch_version.h>.
"""

import importlib
import types
from collections.abc import Iterable
from typing import Any

import torch

#: `torch.accelerator`, from 2.6 on.
HAS_ACCELERATOR: bool = hasattr(torch, "accelerator")
#: Names of dimensions: PyTorch means to take them out.
HAS_NAMED_TENSORS: bool = hasattr(torch.Tensor, "names")


def known_to_c(names: Iterable[str]) -> list[str]:
    """Those of the functions of `torch._C` that this release has; raises nothing."""
    return [name for name in names if hasattr(torch._C, name)]


def classes_of_interface(module: types.ModuleType) -> dict[str, Any]:
    """What an interface of `torch._dynamo.device_interface` calls its events and streams.

    From 2.6 on PyTorch's own classes. 2.5 wants subclasses of its bases for devices in its tree,
    and only compares with them what a graph calls: nobody makes one of these.
    """
    if not hasattr(module, "DeviceInterfaceMeta"):
        return {"Event": torch.Event, "Stream": torch.Stream}
    bases = importlib.import_module("torch._streambase")
    return {
        "Event": type("Event", (bases._EventBase,), {}),
        "Stream": type("Stream", (bases._StreamBase,), {}),
    }


def guarded_calls(dynamo: types.ModuleType) -> list[dict[Any, Any]]:
    """Dynamo's tables of functions that it calls while it traces, and again to see that they hold.

    Empty in releases without such guards, which call no function of a device in a graph.
    """
    known = importlib.import_module(f"{dynamo.__name__}.variables.torch")
    names = ("constant_fold_functions_need_guards", "constant_fold_functions")
    tables = [getattr(known, name, None) for name in names]
    return [one for one in tables if isinstance(one, dict)] if all(tables) else []


def asks_for_overrides(inductor: types.ModuleType) -> bool:
    """Whether `torch._inductor.codegen.common` looks for a device's overrides when it needs them.

    An older release would take what is registered there for its own devices' registration.
    """
    return hasattr(inductor, "_initialize_device_op_overrides")
