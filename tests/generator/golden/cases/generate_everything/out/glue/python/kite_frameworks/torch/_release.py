# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Everything that differs between PyTorch releases for this package's Python code.

Each function tests PyTorch itself, so that a release built from source with its own version number
works too. For the library, <backendkit/torch_version.h> does this.
"""

import importlib
import types
from collections.abc import Iterable
from typing import Any

import torch

#: `torch.accelerator`, since 2.6.
HAS_ACCELERATOR: bool = hasattr(torch, "accelerator")
#: Names of dimensions, which PyTorch plans to remove.
HAS_NAMED_TENSORS: bool = hasattr(torch.Tensor, "names")


def known_to_c(names: Iterable[str]) -> list[str]:
    """Those of the functions of `torch._C` that this release has; never raises."""
    return [name for name in names if hasattr(torch._C, name)]


def listed(releases: list[str]) -> str:
    """Names of releases for people: "2.5 to 2.15", or "2.5, 2.7 and 2.8"."""
    numbers = [tuple(map(int, release.split("."))) for release in releases]
    row = [(numbers[0][0], numbers[0][1] + place) for place in range(len(numbers))]
    if len(releases) > 2 and numbers == row:
        return f"{releases[0]} to {releases[-1]}"
    return " and ".join(filter(None, [", ".join(releases[:-1]), releases[-1]]))


def classes_of_interface(module: types.ModuleType) -> dict[str, Any]:
    """The event and stream classes of an interface in `torch._dynamo.device_interface`.

    From 2.6 on these are PyTorch's own classes. 2.5 needs subclasses of its bases for in-tree
    devices, which it only compares with the calls in a graph: no objects of them are created.
    """
    if not hasattr(module, "DeviceInterfaceMeta"):
        return {"Event": torch.Event, "Stream": torch.Stream}
    bases = importlib.import_module("torch._streambase")
    return {
        "Event": type("Event", (bases._EventBase,), {}),
        "Stream": type("Stream", (bases._StreamBase,), {}),
    }


def guarded_calls(dynamo: types.ModuleType) -> list[dict[Any, Any]]:
    """Dynamo's tables of functions that it calls while it traces, and again to check the results.

    Empty in releases without such guards; their graphs call no functions of a device.
    """
    known = importlib.import_module(f"{dynamo.__name__}.variables.torch")
    names = ("constant_fold_functions_need_guards", "constant_fold_functions")
    tables = [getattr(known, name, None) for name in names]
    return [one for one in tables if isinstance(one, dict)] if all(tables) else []


def asks_for_overrides(inductor: types.ModuleType) -> bool:
    """Whether `torch._inductor.codegen.common` looks up a device's overrides when it needs them.

    An older release would mistake an entry there for the registration of its own devices.
    """
    return hasattr(inductor, "_initialize_device_op_overrides")
