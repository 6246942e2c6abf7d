# SPDX-License-Identifier: Apache-2.0
"""Asks a backend what it has, in a process of its own, which may crash or hang.

That process writes JSON after each part, so that what was found stays when a later part ends it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

from .about import package_of, write_whole

#: For all parts together; a hanging driver ends there.
LIMIT_S = 600
PARTS = ("capabilities", "operators", "training")
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from report_card import measure
measure.main(*sys.argv[2:])
"""


def _capabilities(device: str, module: Any) -> dict[str, Any]:
    from backend import lacking

    from .unlocks import ENABLED_BY, OTHERS, UNLOCKS

    if hasattr(module, "capabilities"):
        known = module.capabilities()
        functions, there = known.functions, known.runtime
        dtypes = known.kernel_dtypes
        own = None if dtypes is None else [str(one).removeprefix("torch.") for one in dtypes]
    else:  # not made with BackendKit: by use, as the tests do
        asked = [name for name in UNLOCKS if not (lacking(device, name) or "").endswith("`")]
        functions = dict.fromkeys(asked, "")
        there = {name: lacking(device, name) is None for name in asked}
        own = None
    rows = [
        {"name": name, "there": there[name], "enabled_by": text, "unlocks": UNLOCKS[name]}
        for name, text in functions.items()
    ]
    for name, text in OTHERS.items():
        has = _has_generator(device) if name == "random" else lacking(device, name) is None
        rows.append({"name": name, "there": has, "enabled_by": ENABLED_BY[name], "unlocks": text})
    rows.sort(key=lambda row: [*UNLOCKS, *OTHERS].index(row["name"]))
    return {"groups": rows, "kernel_dtypes": own, **_devices(module)}


def _has_generator(device: str) -> bool:
    import torch

    try:
        torch.Generator(device=device).manual_seed(1)
    except (NotImplementedError, RuntimeError):
        return False
    return True


def _devices(module: Any) -> dict[str, Any]:
    count = module.device_count()
    names = []
    for index in range(count):
        try:
            names.append(str(module.get_device_name(index)))
        except (AttributeError, NotImplementedError):
            return {"devices": count, "device_names": []}
    return {"devices": count, "device_names": names}


def _operators(device: str, module: Any) -> dict[str, Any]:
    from .operators import operators

    made_here = hasattr(module, "capabilities")
    fallback = module.capabilities().fallback if made_here else "cpu"
    return operators(fallback, made_here, package_of(device)[0])


def _training(device: str, module: Any) -> list[dict[str, Any]]:
    from .training import MODELS, train

    return [train(name, device, module) for name in MODELS]


def main(device: str, file: str) -> None:
    import torch

    module = getattr(torch, device)
    if hasattr(module, "init"):
        module.init()
    found: dict[str, Any] = {}
    parts: list[Callable[[str, Any], Any]] = [_capabilities, _operators, _training]
    for name, part in zip(PARTS, parts):
        found[name] = part(device, module)
        write_whole(Path(file), json.dumps(found))


def measure(device: str, variables: dict[str, str]) -> dict[str, Any]:
    """What `main` finds, and in `problem` how its process ended if not well."""
    suite = str(Path(__file__).resolve().parents[1])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "found.json")
        command = [sys.executable, "-c", _PROGRAM, suite, device, str(file)]
        problem = ""
        try:
            done = subprocess.run(
                command,
                env=variables,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
            )
            if done.returncode:
                problem = _how_it_ended(done.returncode, done.stderr)
        except subprocess.TimeoutExpired:
            problem = f"not done after {LIMIT_S} s"
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {**{name: found.get(name) for name in PARTS}, "problem": problem}


def _how_it_ended(status: int, text: str) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit status {status}"
