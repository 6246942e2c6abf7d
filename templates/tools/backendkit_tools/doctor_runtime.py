# SPDX-License-Identifier: Apache-2.0
"""The package with the driver's libraries that a backend requires: [wheel.runtime]."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backendkit_tools.doctor_dists import find_module
from backendkit_tools.doctor_elf import damage, list_libraries, other_machine
from backendkit_tools.doctor_library import Report, judge_record
from backendkit_tools.doctor_python import Python
from backendkit_tools.requirement import admits

__all__ = ["Runtime", "judge"]


class Runtime:
    """Where the libraries are that a backend finds there; `usable` if it opens them."""

    def __init__(self, usable: bool = True, folders: tuple[str, ...] = ()) -> None:
        self.usable = usable
        self.folders = list(folders)


def judge(facts: dict[str, Any], python: Python, report: Report) -> Runtime:
    """`facts` are the names of the backend's _build.py."""
    name, requires = (str(facts.get(f"RUNTIME_{key}", "")) for key in ("PACKAGE", "REQUIRES"))
    if not name:
        return Runtime()
    wanted = f"{name}{requires}"
    pip = f"{python.executable} -m pip install"
    dist = python.dist(name.replace("-", "_"))
    if dist is None:
        text = f"needs {wanted}, which is not installed"
        report.bad("runtime.installed", text, f'`{pip} "{wanted}"`')
        return Runtime(usable=False)
    if not admits(requires, dist.version):
        text = f"needs {wanted}, but {dist.version} is installed"
        report.bad("runtime.version", text, f'`{pip} "{wanted}"`', f"it is in {dist.folder.parent}")
        return Runtime(usable=False)
    help_ = f"`{pip} --force-reinstall --no-deps --no-cache-dir {name}=={dist.version}`"
    judge_record(dist, help_, report)
    spec = find_module(name.replace("-", "_"), python.paths)
    folder = next(iter(spec.submodule_search_locations or []), "") if spec is not None else ""
    order = Path(folder, "load_order.txt")
    try:
        names = order.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        if str(order) not in report.damaged:
            text = f"{name} {dist.version} has no list of its libraries"
            report.bad("runtime.files", text, help_, f"{order} cannot be read")
        return Runtime(usable=False)
    libraries = Path(folder, "lib")
    whole = [_judge_library(libraries / one, help_, report) for one in names]
    usable = all(whole) and not _judge_missing([libraries / one for one in names], report)
    return Runtime(usable, (str(libraries),))


def _judge_library(path: Path, help_: str, report: Report) -> bool:
    """Whether it is one for this machine."""
    problem = damage(path)
    if problem:
        if str(path) not in report.damaged:
            report.bad("runtime.library", f"{path} {problem}", help_)
        return False
    machine = other_machine(path)
    if machine:
        text = f"{path} is for {machine}"
        report.bad("runtime.library", text, help_, "a wheel for another machine was installed")
    return not machine


def _judge_missing(paths: list[Path], report: Report) -> bool:
    """Whether they need a library that is nowhere. Each is reported once, whoever needs it."""
    missing: dict[str, str] = {}
    for path in paths:
        for name, who in list_libraries(str(path), [str(path.parent)]).missing.items():
            missing.setdefault(name, who or str(path))
    for name, who in missing.items():
        report.bad(
            "runtime.missing",
            f"{name} is missing",
            f"install what has {name}, or add its folder to LD_LIBRARY_PATH",
            f"{who} needs it",
        )
    return bool(missing)
