# SPDX-License-Identifier: Apache-2.0
"""What computes each operator on the device, as PyTorch's dispatcher says in this process.

Nothing is taken from a description: the entry that the dispatcher would call, and who registered
it. The states are those of `backendgen ops`.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import torch

from .groups import GROUPS, group_operators, root_of

STATES = ("kernel", "free", "built-in", "fallback", "error", "cannot")
_KEY = "PrivateUse1"
#: The generated files whose registrations are the vendor's kernels.
_KERNELS = re.compile(r"\bregister_kernels_\w+\.cpp:")
#: Kernels for tensors in the host's memory.
_HOST = re.compile(r"^(CPU|SparseCPU|SparseCsrCPU|QuantizedCPU): ", re.M)


def _entry(name: str) -> str:
    """What the dispatcher calls for the device: `registered at FILE:LINE [kind]`."""
    (line,) = re.findall(rf"^{_KEY}: (.*)$", torch._C._dispatch_dump_table(name), re.M)
    return line


def states_of(names: list[str], fallback: str, made_here: bool) -> dict[str, str]:
    """The state of each operator of aten; `made_here` of a backend that BackendKit made."""
    states = {name: _state_of(name, fallback, made_here) for name in names}
    of_variants: dict[str, set[str]] = {}
    for name, state in states.items():
        of_variants.setdefault(root_of(name), set()).add(state.partition(" ")[0])
    for name, state in states.items():
        # PyTorch makes the variant of another one, which has nothing to call.
        if state == "free variant":
            others = of_variants[root_of(name)] - {"free"}
            states[name] = others.pop() if others in ({"cannot"}, {"error"}) else "free"
    return states


def _state_of(name: str, fallback: str, made_here: bool) -> str:
    entry = _entry(f"aten::{name}")
    if entry.endswith("[default backend kernel]"):
        return "free variant"
    if not entry.endswith(("[kernel]", "[backend fallback]")):
        return "free" if "[" in entry else "cannot"
    registered = torch._C._dispatch_dump(f"aten::{name}")
    if entry.endswith("[kernel]"):
        if re.search(rf"^{_KEY}: .* \[ boxed \]$", registered, re.M) is None:
            return "kernel" if not made_here or _KERNELS.search(entry) else "built-in"
    elif not _HOST.search(registered):
        return "cannot"
    return "fallback" if fallback == "cpu" else "error"


def operators(fallback: str, made_here: bool, namespace: str) -> dict[str, Any]:
    """The states of PyTorch's operators by group, and the operators of the vendor's own."""
    names = sorted(torch._C._dispatch_get_all_op_names())
    known = [name.removeprefix("aten::") for name in names if name.startswith("aten::")]
    states = states_of(known, fallback, made_here)
    groups = group_operators((name, is_pointwise(name)) for name in known)
    rows = []
    for key, title, _ in GROUPS:
        ours = [name for name in known if groups[root_of(name)] == key]
        counts = Counter(states[name] for name in ours)
        rows.append(
            {
                "group": key,
                "title": title,
                "operators": len(ours),
                **{state: counts[state] for state in STATES},
                "kernels": [name for name in ours if states[name] == "kernel"],
            }
        )
    total = Counter(states.values())
    return {
        "operators": len(known),
        **{state: total[state] for state in STATES},
        "groups": rows,
        "custom": [name for name in names if name.startswith(f"{namespace}::")],
    }


def is_pointwise(name: str) -> bool:
    """Whether PyTorch says so of the operator `add.out`."""
    base, _, overload = name.partition(".")
    found = torch._C._get_operation_overload(f"aten::{base}", overload)
    return found is not None and torch.Tag.pointwise in found[2]
