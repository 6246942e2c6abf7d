# SPDX-License-Identifier: Apache-2.0
"""Every installed backend: each entry point of `torch.backends`."""

from __future__ import annotations

import configparser
import json
import os
import re
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backendkit_tools import doctor_driver, doctor_runtime
from backendkit_tools.doctor_dists import Dist, constants, defines, find_module, module_file
from backendkit_tools.doctor_library import Report, judge_library, judge_record
from backendkit_tools.doctor_python import Python
from backendkit_tools.doctor_report import Wishes, bad, doubtful, good, run, shown
from backendkit_tools.doctor_torch import Torch

__all__ = ["Backend", "judge"]

_GROUP = "torch.backends"
_LIMIT = 10.0


@dataclass
class Backend:
    """A distribution with entry points of the group."""

    dist: Dist
    entries: dict[str, str]
    folder: Path | None = None  # of its package
    facts: dict[str, Any] = field(default_factory=dict)  # of its _build.py, if BackendKit made it
    devices: list[str] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)  # libraries that it loads

    def reinstall(self, python: Python) -> str:
        return (
            f"`{python.executable} -m pip install --force-reinstall --no-deps --no-cache-dir "
            f"{self.dist.name}=={self.dist.version}`"
        )


def judge(python: Python, torch: Torch | None, wishes: Wishes) -> list[Backend]:
    _judge_leftovers(python)
    backends = _backends(python)
    wanted = re.sub(r"[-_.]+", "_", wishes.package).lower()
    if wanted:
        _judge_wanted(wanted, wishes.package, python, backends)
        backends = [backend for backend in backends if backend.dist.name == wanted]
    elif not backends:
        good("backends", "backends", "none is installed in this Python")
    for backend in backends:
        report = Report(backend.dist.name)
        _judge_one(backend, python, torch, report)
        if not report.wrong:
            device = f", device {backend.devices[0]}" if backend.devices else ""
            releases = _releases(backend)
            built = f", for PyTorch {' and '.join(releases)}" if releases else ""
            good("backend", backend.dist.name, f"{backend.dist.version}{device}{built}")
    _judge_rivals(python, backends)
    return backends


def _judge_wanted(wanted: str, typed: str, python: Python, backends: list[Backend]) -> None:
    if any(backend.dist.name == wanted for backend in backends):
        return
    dist = python.dist(wanted)
    names = ", ".join(backend.dist.name for backend in backends)
    why = [f"installed backends: {names}"] if names else []
    if dist is not None:
        text = f"{dist.version} is installed, but has no entry point in `{_GROUP}`"
        help_ = (
            f'its setup.py needs `entry_points={{"{_GROUP}": ["{wanted} = {wanted}:_autoload"]}}`'
        )
        bad("backend.entry_point", typed, text, help_, *why)
    else:
        help_ = f"`{python.executable} -m pip install {typed}`"
        bad("backend.installed", typed, "is not installed in this Python", help_, *why)


def _judge_leftovers(python: Python) -> None:
    for path in python.paths:
        try:
            names = sorted(os.listdir(path))
        except OSError:
            continue  # reported with the path
        for name in names:
            if name.startswith("~"):
                doubtful(
                    "leftovers",
                    "leftovers",
                    f"{name} in {path} is what an interrupted pip left",
                    f"`rm -r '{path}/{name}'`",
                )
    for dist in python.dists:
        help_ = f"`rm -r '{dist.folder}'`, then install {dist.name} again"
        if not (dist.folder / "METADATA").is_file():
            doubtful("leftovers", "leftovers", f"{dist.folder} has no METADATA", help_)
        elif dist.read("METADATA") is None:
            doubtful("metadata", dist.name, f"{dist.folder}/METADATA cannot be read", help_)


def _backends(python: Python) -> list[Backend]:
    found: dict[str, Backend] = {}
    for dist in python.dists:
        path = dist.folder / "entry_points.txt"
        try:
            entries = dist.entry_points(_GROUP)
        except configparser.Error as error:
            bad(
                "backend.entry_points",
                dist.name,
                f"{path} cannot be read",
                f"`{python.executable} -m pip install --force-reinstall --no-deps {dist.name}`",
                str(error).splitlines()[0],
            )
            continue
        if path.exists() and dist.read("entry_points.txt") is None:
            bad(
                "backend.entry_points",
                dist.name,
                f"{path} cannot be read",
                f"`{python.executable} -m pip install --force-reinstall --no-deps {dist.name}`",
                "PyTorch reads it when torch is imported",
            )
        if not entries:
            continue
        first = found.setdefault(dist.name, Backend(dist, entries))
        if first.dist is not dist:
            doubtful(
                "backend.twice",
                dist.name,
                f"is installed twice: {first.dist.version} in {first.dist.folder.parent}, "
                f"{dist.version} in {dist.folder.parent}",
                f"`rm -r '{dist.folder}'`",
                "Python imports the first",
            )
    return list(found.values())


def _judge_one(backend: Backend, python: Python, torch: Torch | None, report: Report) -> None:
    for name, target in backend.entries.items():
        _judge_target(backend, name, target, python, report)
    if backend.folder is None:
        return
    _judge_here(backend, report)
    judge_record(backend.dist, backend.reinstall(python), report)
    if (backend.folder / "_build.py").is_file():
        try:
            backend.facts = constants(backend.folder / "_build.py")
        except (OSError, SyntaxError, ValueError) as error:
            path = backend.folder / "_build.py"
            report.bad(
                "backend.files", f"{path} cannot be read: {error}", backend.reinstall(python)
            )
            return
        backend.devices = [str(backend.facts.get("DEVICE", ""))]
        _judge_editable(backend, python, report)
        _judge_build(backend, python, torch, report)
    else:
        backend.devices = _claimed_devices(backend.folder)
    minor = torch.minor if torch is not None else ""
    runtime = doctor_runtime.judge(backend.facts, python, report)
    for path in _libraries(backend):
        in_release = re.search(r"/lib/(\d+\.\d+)/[^/]*$", str(path))
        # Without the driver's libraries, nothing can be said of what it needs.
        current = runtime.usable and (in_release is None or in_release[1] == minor)
        help_ = backend.reinstall(python)
        judge_library(path, torch if current else None, help_, python, report, runtime.folders)
    backend.paths = report.paths
    if backend.facts:
        doctor_driver.judge(backend.facts, report, runtime.folders)


def _judge_target(backend: Backend, name: str, target: str, python: Python, report: Report) -> None:
    module, _, attribute = (part.strip() for part in target.partition(":"))
    try:
        spec = find_module(module, python.paths)
    except (ImportError, ValueError):
        spec = None
    folder = _editable_folder(backend.dist)
    if spec is None:
        answer = _ask_real_python(module, python)
        if answer:
            backend.folder = Path(answer).parent
            path: Path | None = Path(answer)
        else:
            moved = folder and not os.path.isdir(folder)
            if moved:
                report.bad(
                    "backend.editable",
                    f"is an editable install of {folder}, which is not there any more",
                    "in the project's new folder: "
                    f"`{python.executable} -m pip install --no-build-isolation -e .`",
                )
            else:
                report.bad(
                    "backend.module",
                    f"entry point `{name}`: there is no module `{module}`",
                    backend.reinstall(python),
                    "`import torch` fails with it",
                )
            return
    else:
        path = module_file(spec)
    if path is None:
        return  # a module of another kind than source
    backend.folder = path.parent
    try:
        there = not attribute or defines(path, attribute)
    except (OSError, SyntaxError, ValueError) as error:
        text = f"{path} cannot be read: {error}"
        report.bad(
            "backend.module", text, backend.reinstall(python), "`import torch` fails with it"
        )
        return
    if not there:
        report.bad(
            "backend.module",
            f"entry point `{name}`: {path} has no `{attribute}`",
            backend.reinstall(python),
            "`import torch` fails with it",
        )


def _ask_real_python(module: str, python: Python) -> str:
    """Where a module is that an import hook finds, such as one of an editable install."""
    code = (
        "import sys, importlib.util as u; s = u.find_spec(sys.argv[1]); "
        "print('\\nBACKENDKIT-AT ' + (s.origin or '') if s else '')"
    )
    ended = run([python.executable, "-c", code, module.split(".")[0]], _LIMIT)
    found = re.search(r"^BACKENDKIT-AT (.+\.py)$", ended.out, re.M)
    return found[1] if found else ""


def _editable_folder(dist: Dist) -> str:
    """The project that an editable install refers to; "" for another install."""
    try:
        facts = json.loads(dist.read("direct_url.json") or "{}")
    except ValueError:
        return ""
    url = urllib.parse.urlparse(str(facts.get("url", "")))
    editable = isinstance(facts.get("dir_info"), dict) and facts["dir_info"].get("editable")
    return urllib.parse.unquote(url.path) if editable else ""


def _judge_editable(backend: Backend, python: Python, report: Report) -> None:
    """The folder of the vendor's Python files that an editable build names."""
    assert backend.folder is not None
    path = backend.folder / "_editable.py"
    if not path.is_file():
        return
    try:
        source = str(constants(path).get("SOURCE", ""))
    except (OSError, SyntaxError, ValueError):
        source = ""
    if not os.path.isdir(source):
        report.bad(
            "backend.editable",
            f"is an editable install whose Python files were in {source or 'an unknown folder'}, "
            "which is not there any more",
            "in the project's new folder: "
            f"`{python.executable} -m pip install --no-build-isolation -e .`",
        )


def _judge_here(backend: Backend, report: Report) -> None:
    assert backend.folder is not None
    here = Path.cwd() / backend.folder.name
    shadows = [here.with_suffix(".py"), here / "__init__.py"]
    if os.path.realpath(here) == os.path.realpath(backend.folder):
        return
    for shadow in shadows:
        if shadow.is_file():
            report.doubtful(
                "backend.hidden",
                f"{shadow} hides the installed package from a Python that starts here",
                "`cd ..`",
            )


def _releases(backend: Backend) -> list[str]:
    if backend.folder is None:
        return []
    names = [p.name for p in backend.folder.glob("lib/*") if re.fullmatch(r"\d+\.\d+", p.name)]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")])


def _judge_build(backend: Backend, python: Python, torch: Torch | None, report: Report) -> None:
    """What _loader.py decides when it chooses a library."""
    assert backend.folder is not None
    releases = _releases(backend)
    package = str(backend.facts.get("PACKAGE", backend.folder.name))
    if not releases:
        report.bad(
            "backend.library",
            f"has no library in {backend.folder}/lib",
            backend.reinstall(python),
        )
    elif torch is not None and torch.minor and torch.minor not in releases:
        report.bad(
            "backend.release",
            f"was built for PyTorch {' and '.join(releases)}, but this is {torch.version}",
            f'`{python.executable} -m pip install "torch=={releases[-1]}.*"`, or '
            f"`{python.executable} -m pip install --upgrade {backend.dist.name}`",
        )
    for release in releases:
        library = backend.folder / "lib" / release / f"lib{package}.so"
        if not library.exists():
            report.bad("backend.library", f"{library} is missing", backend.reinstall(python))
    version = str(backend.facts.get("VERSION", backend.dist.version))
    if version != backend.dist.version:
        report.bad(
            "backend.version",
            f"pip installed {backend.dist.version}, but the files are of {version}",
            backend.reinstall(python),
        )


def _libraries(backend: Backend) -> list[Path]:
    assert backend.folder is not None
    if backend.folder.parent.name == "site-packages" or backend.facts:
        return sorted(
            p for p in backend.folder.rglob("*.so*") if re.search(r"\.so(\.\d+)*$", p.name)
        )
    listed = [path for path, _, _ in backend.dist.record()]
    return sorted(p for p in listed if re.search(r"\.so(\.\d+)*$", p.name) and p.exists())


def _claimed_devices(folder: Path) -> list[str]:
    """The devices that the Python of a package made by hand gives to PrivateUse1."""
    found: list[str] = []
    for path in sorted(folder.rglob("*.py"))[:500]:
        text = path.read_text(encoding="utf-8", errors="replace")
        for name in re.findall(r"rename_privateuse1_backend\(\s*[\"'](\w+)[\"']", text):
            if name not in found:
                found.append(name)
    return found


def _judge_rivals(python: Python, backends: list[Backend]) -> None:
    claims = [backend for backend in backends if backend.devices]
    first = claims[0] if claims else None
    for other in claims[1:]:
        assert first is not None
        same = first.devices[0] == other.devices[0]
        what = f"the device `{other.devices[0]}`" if same else "PrivateUse1"
        bad(
            "backend.rivals",
            other.dist.name,
            f"claims {what}, and so does {first.dist.name}",
            f"`{python.executable} -m pip uninstall {other.dist.name}`, or the other one",
            "a process has room for one such backend: the first that is imported",
            f"they are in {shown(str(first.folder))} and {shown(str(other.folder))}",
        )
