# SPDX-License-Identifier: Apache-2.0
"""What a caller can see of an operator's result, and how two of them differ."""

from __future__ import annotations

import re
import warnings
from typing import Any, Callable, NamedTuple

import torch
from samples import tensors_in
from torch.utils import _pytree as pytree


class Look(NamedTuple):
    """What came of a call: `values` where it returned, `error` where it raised."""

    values: list[dict[str, Any]]
    error: str
    warnings: list[str]


class Difference(NamedTuple):
    aspect: str  # "value", "stride", "warnings", ...
    text: str


def plain(text: str, device: str) -> str:
    """The first line of a message, without the device's name and addresses."""
    text = text.partition("\n")[0]
    kind = device.partition(":")[0]
    for name, cpu in ((f"{kind}:0", "cpu"), (kind.upper(), "CPU"), ("PrivateUse1", "CPU")):
        text = text.replace(name, cpu)
    text = re.sub(rf"\b(privateuseone|{kind})\b", "cpu", text)
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def _look_at(one: Any, inputs: list[torch.Tensor], kind: str) -> dict[str, Any]:
    if not isinstance(one, torch.Tensor):
        return {"value": "a device" if isinstance(one, torch.device) else one}
    seen: dict[str, Any] = {
        "layout": one.layout,
        "dtype": one.dtype,
        "shape": tuple(one.shape),
        "gradient needed": one.requires_grad,
    }
    if not any(one is other for other in inputs):
        seen["device"] = "asked for" if one.device.type == kind else one.device.type
    if one.layout == torch.strided:
        seen["stride"] = one.stride()
        seen["offset"] = one.storage_offset()
        seen["conjugate bit"] = one.is_conj()
        seen["negative bit"] = one.is_neg()
        seen["aliases"] = [
            (number, one is other)
            for number, other in enumerate(inputs)
            if other.layout == torch.strided
            and one.untyped_storage()._cdata == other.untyped_storage()._cdata
        ]
    values = one.detach()
    values = values.to_dense() if values.layout != torch.strided else values
    seen["value"] = values.cpu().resolve_conj().resolve_neg()
    return seen


def look(call: Callable[[], Any], inputs: Any, device: str) -> tuple[Look, Any]:
    """Calls, and looks at what came of it; with the result, None where it raised."""
    leaves, kind = tensors_in(inputs), torch.device(device).type
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
            # A device may tell of what failed when somebody waits for it.
            found = [_look_at(one, leaves, kind) for one in pytree.tree_leaves(result)]
        except Exception as problem:  # an answer as well: it is compared
            text = plain(f"{type(problem).__name__}: {problem}", device)
            return Look([], text, _texts(caught, device)), None
    return Look(found, "", _texts(caught, device)), result


def _texts(caught: list[warnings.WarningMessage], device: str) -> list[str]:
    return [plain(f"{one.category.__name__}: {one.message}", device) for one in caught]


def _same_value(ours: Any, theirs: Any) -> bool:
    if not isinstance(theirs, torch.Tensor) or not isinstance(ours, torch.Tensor):
        if isinstance(theirs, (float, complex)) and isinstance(ours, (float, complex)):
            theirs, ours = torch.tensor(theirs), torch.tensor(ours)
        else:
            return type(ours) is type(theirs) and ours == theirs
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return True  # that is told already
    close = {"rtol": 1e-4, "atol": 1e-4} if theirs.dtype.itemsize > 2 else {}
    try:
        torch.testing.assert_close(ours, theirs, equal_nan=True, **close)
    except AssertionError:
        return False
    return True


def differences(ours: Look, theirs: Look, *, values: bool = True) -> list[Difference]:
    """How two looks differ; without `values`, numbers do not count."""
    found = []
    if ours.error != theirs.error:
        kinds = [one.error.partition(":")[0] for one in (ours, theirs)]
        aspect = "error" if kinds[0] != kinds[1] else "error's text"
        return [Difference(aspect, f"{ours.error or 'none'}, not {theirs.error or 'none'}")]
    if len(ours.values) != len(theirs.values):
        return [Difference("value", f"{len(ours.values)} values, not {len(theirs.values)}")]
    for number, (one, two) in enumerate(zip(ours.values, theirs.values)):
        for aspect in two:
            if aspect == "value":
                same = not values or _same_value(one.get("value"), two["value"])
            else:
                same = one.get(aspect) == two[aspect]
            if not same:
                text = f"result {number}: {one.get(aspect)}, not {two[aspect]}"
                found.append(Difference(aspect, text.replace("\n", " ")))
    if ours.warnings != theirs.warnings:
        found.append(Difference("warnings", f"{ours.warnings}, not {theirs.warnings}"))
    return found
