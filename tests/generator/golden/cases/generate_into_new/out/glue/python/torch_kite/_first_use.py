# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Gives a process group that was made before the process used the device its part for it.

The group gets it before its first operation with a tensor on the device.
"""

import functools
import importlib
import sys
import threading
import types
import weakref
from typing import Any, Callable, NamedTuple, Optional

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)
_distributed = importlib.import_module("._distributed", __package__)

#: Of this thread. `before`: where a function checked its tensors, or its group, last, and whether
#: these are on the device, or the group.
_checked = threading.local()
_called: Optional[torch.library.Library] = None  # with what the library calls


def patch_groups(c10d: Any) -> None:
    """Calls `attach_late` where a group is used for a tensor on the device.

    PyTorch's collectives check the tensors first and then whether this process is in the group, or
    the other way round. The library sees all collectives besides, but for those of inference mode;
    see first_use.h.
    """
    global _called
    for check in ("_check_single_tensor", "_check_tensor_list"):
        _distributed.replace(c10d, check, _noting_tensors)
    _distributed.replace(c10d, "_rank_not_in_group", _noting_groups)
    _called = torch.library.Library(_device._ops.name, "FRAGMENT")
    _called.impl("use_group", _use_group, "CompositeExplicitAutograd")


def _use_group(boxed: Any) -> None:
    """Called by the library before an operator that uses a group for a tensor on the device."""
    _distributed.attach_late(_distributed._c10d.ProcessGroup.unbox(boxed))
    _device._ops.await_use(len(_distributed._late))


class _Place(NamedTuple):
    """A place in a call of a function, while it runs."""

    frame: int
    code: types.CodeType
    instruction: int

    @staticmethod
    def of(frame: types.FrameType) -> "_Place":
        return _Place(id(frame), frame.f_code, frame.f_lasti)

    def is_after(self, other: "_Place") -> bool:
        """Whether it comes later in the same call, rather than in a new one with the same frame."""
        return self[:2] == other[:2] and self.instruction > other.instruction


def _noting_tensors(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def check(param: Any, *arguments: Any, **options: Any) -> None:
        original(param, *arguments, **options)
        if not _distributed._late:
            return
        here, used = _Place.of(sys._getframe(1)), _distributed.is_on_device(param)
        place, group = getattr(_checked, "before", (here, None))
        if here.is_after(place) and isinstance(group, weakref.ref):
            if used and group() is not None:
                _distributed.attach_late(group())
        else:
            _checked.before = (here, used)

    return check


def _noting_groups(original: Callable[..., bool]) -> Callable[..., bool]:
    @functools.wraps(original)
    def _rank_not_in_group(group: Any) -> bool:
        outside = original(group)
        if _distributed._late and not outside:
            here = _Place.of(sys._getframe(1))
            given = _distributed._c10d._get_default_group() if group is None else group
            place, used = getattr(_checked, "before", (here, None))
            if here.is_after(place) and used is True:
                _distributed.attach_late(given)
            _checked.before = (here, weakref.ref(given))
        return outside

    return _rank_not_in_group
