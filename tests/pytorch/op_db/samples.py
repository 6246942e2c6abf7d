# SPDX-License-Identifier: Apache-2.0
"""Samples of PyTorch's operator database, and the ways in which their tensors lie in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

import torch
from torch.utils import _pytree as pytree

#: Operators of which PyTorch wants all tensors but the first on the CPU, on every device.
ARGUMENTS_ON_CPU = {"tensor_split"}


class Call(NamedTuple):
    """What an operator is called with."""

    input: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def tensors_in(value: Any) -> list[torch.Tensor]:
    return [one for one in pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]


class Copies:
    """Copies of tensors on a device: with the same strides, offset and bits, and sharing memory
    where the originals do. Each is a leaf of a graph of its own."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._storages: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        self._tensors: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def of(self, value: Any) -> Any:
        return pytree.tree_map(self._one, value)

    def _one(self, one: Any) -> Any:
        if not isinstance(one, torch.Tensor):
            names_the_cpu = isinstance(one, torch.device) or one == "cpu"
            return torch.device(self.device) if names_the_cpu else one
        if one.device.type != "cpu":
            return one
        if id(one) not in self._tensors:
            made = self._strided(one) if one.layout == torch.strided else self._other(one)
            self._tensors[id(one)] = (one, made.requires_grad_(one.requires_grad))
        return self._tensors[id(one)][1]

    def _other(self, one: torch.Tensor) -> torch.Tensor:
        return one.detach().to(self.device, copy=True)

    def _strided(self, one: torch.Tensor) -> torch.Tensor:
        storage = one.untyped_storage()
        key = (storage._cdata, one.dtype)
        if key not in self._storages:
            whole = torch.empty(0, dtype=one.dtype)
            count = storage.nbytes() // one.dtype.itemsize
            whole.set_(storage, 0, (count,), (1,))
            self._storages[key] = whole.to(self.device, copy=True)
        made = self._storages[key].as_strided(one.shape, one.stride(), one.storage_offset())
        if one.is_conj():
            made = made.conj()
        if one.is_neg():
            made = torch._neg_view(made)
        return made.detach()


def call_on(device: str, name: str, call: Call) -> Call:
    """The call with its tensors on a device."""
    copies = Copies(device)
    others = Copies("cpu") if name in ARGUMENTS_ON_CPU else copies
    return Call(copies.of(call.input), others.of(call.args), others.of(call.kwargs))


def _transposed(one: torch.Tensor) -> torch.Tensor | None:
    return one.mT.contiguous().mT if one.dim() > 1 else None


def _swapped(one: torch.Tensor) -> torch.Tensor | None:
    """As the heads of attention lie: the second and third dimension the other way round."""
    return one.transpose(1, 2).contiguous().transpose(1, 2) if one.dim() > 2 else None


def _channels_last(one: torch.Tensor) -> torch.Tensor | None:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if one.dim() not in formats:
        return None
    return one.contiguous(memory_format=formats[one.dim()])


def _stepped(one: torch.Tensor) -> torch.Tensor | None:
    if one.dim() == 0 or one.numel() == 0:
        return None
    return one.repeat_interleave(2, -1)[..., ::2]


def _expanded(one: torch.Tensor) -> torch.Tensor | None:
    for dim in range(one.dim()):
        if one.size(dim) > 1:
            return one.narrow(dim, 0, 1).expand_as(one)
    return None


def _conjugated(one: torch.Tensor) -> torch.Tensor | None:
    return one.resolve_conj().conj_physical().conj() if one.is_complex() else None


def _negative(one: torch.Tensor) -> torch.Tensor | None:
    return torch._neg_view(-one) if one.is_floating_point() else None


#: How the tensors of a sample may lie in memory, beside as they are.
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "transposed": _transposed,
    "swapped": _swapped,
    "channels_last": _channels_last,
    "stepped": _stepped,
    "expanded": _expanded,
    "conjugated": _conjugated,
    "negative": _negative,
}


def laid_out(call: Call, layout: str) -> Call | None:
    """The call with tensors that lie otherwise in memory; None where that changes nothing."""
    change = LAYOUTS[layout]
    changed = False

    def lay(one: Any) -> Any:
        nonlocal changed
        if not isinstance(one, torch.Tensor) or one.layout != torch.strided:
            return one
        with torch.no_grad():
            made = change(one.detach())
        if made is None:
            return one
        changed = True
        return made.requires_grad_(one.requires_grad)

    result = Call(*pytree.tree_map(lay, tuple(call)))
    return result if changed else None


def outputs_to_write(result: Any) -> Iterator[tuple[str, Any]]:
    """What may be given as `out=` where the result is `result`, and what is wrong with it."""

    def each(make: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        def given(one: Any) -> Any:
            return make(one.detach()) if isinstance(one, torch.Tensor) else one

        return pytree.tree_map(given, result)

    def other_dtype(one: torch.Tensor) -> torch.Tensor:
        other = torch.int64 if one.dtype.is_floating_point or one.is_complex() else torch.float32
        return torch.zeros_like(one, dtype=other)

    if any(one.layout != torch.strided for one in tensors_in(result)):
        yield "right", each(torch.clone)
        return
    yield "right", each(torch.zeros_like)
    yield "empty", each(lambda one: one.new_zeros(0))
    yield "too large", each(lambda one: one.new_zeros((*one.shape, 2)))
    yield "of other strides", each(lambda one: one.new_zeros((*one.shape, 2))[..., 0])
    yield "of another dtype", each(other_dtype)
