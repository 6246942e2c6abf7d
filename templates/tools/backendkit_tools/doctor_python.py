# SPDX-License-Identifier: Apache-2.0
"""The Python: how it starts, its path, and what builds in it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backendkit_tools.doctor_dists import Dist, distributions, numbers
from backendkit_tools.doctor_report import Ended, Wishes, bad, doubtful, good, run, shown

__all__ = ["Python", "judge"]

_LIMIT = 10.0
_MARK = "BACKENDKIT-DOCTOR "
_ASK = (
    "import sys, json; sys.stdout.flush(); print('\\n"
    + _MARK
    + "' + json.dumps({'path': sys.path, 'prefix': sys.prefix, 'base': sys.base_prefix}), "
    "flush=True)"
)


@dataclass(frozen=True)
class Python:
    """The Python as a program of the user would find it."""

    executable: str
    paths: list[str]  # of modules, without the working folder
    prefix: str
    dists: list[Dist]

    def dist(self, name: str) -> Dist | None:
        return next((dist for dist in self.dists if dist.name == name), None)


def judge(wishes: Wishes) -> Python:
    version = ".".join(map(str, sys.version_info[:3]))
    ended = run([sys.executable, "-c", _ASK], _LIMIT)
    facts = _facts(ended.out)
    if facts is None:
        _report_start(ended)
        facts = _guess()
    else:
        kind = "virtual environment" if facts["prefix"] != facts["base"] else "no environment"
        good("python", "python", f"{version}, {shown(sys.executable)}, {kind}")
        _report_noise(ended)
    paths = list(dict.fromkeys(os.path.abspath(path) for path in facts["path"] if path))
    dists, unreadable = distributions(paths)
    for path in unreadable:
        bad(
            "python.path",
            "python",
            f"cannot read {path}, which is on Python's path",
            f"`sudo chmod -R a+rX {path}`",
        )
    python = Python(sys.executable, paths, facts["prefix"], dists)
    _judge_builders(python, wishes)
    return python


def _facts(out: str) -> dict[str, Any] | None:
    lines = [line for line in out.splitlines() if line.startswith(_MARK)]
    return json.loads(lines[-1][len(_MARK) :]) if lines else None


def _report_start(ended: Ended) -> None:
    if ended.status is None:
        text = f"does not start within {_LIMIT:.0f} s"
    elif ended.status < 0:
        text = f"is ended by signal {-ended.status} when it starts"
    else:
        text = f"ends with status {ended.status} when it starts"
    why = [ended.last_line] if ended.last_line else []
    why += ["with `-I -S`, without the code that runs at its start, it works"]
    culprit = _start_code()
    if culprit:
        why.append(f"this code runs at its start: {culprit}")
    help_ = (
        f"repair or remove {culprit}" if culprit else f"`{sys.executable} -v -c pass` shows where"
    )
    bad("python.start", "python", f"{shown(sys.executable)} {text}", help_, *why)


def _report_noise(ended: Ended) -> None:
    before = ended.out.split(_MARK)[0].strip()
    if not before and not ended.err.strip():
        return
    first = (ended.err.strip() or before).splitlines()[-1].strip()
    culprit = _start_code()
    doubtful(
        "python.start",
        "python",
        "prints something when it starts",
        f"repair or remove {culprit}" if culprit else f"`{sys.executable} -v -c pass` shows where",
        first,
    )


def _start_code() -> str:
    """The first file that runs when this Python starts, of those that people write."""
    folders = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    for path in folders + _guess()["path"]:
        for name in ("sitecustomize", "usercustomize"):
            for place in (f"{name}.py", f"{name}/__init__.py"):
                if os.path.isfile(os.path.join(path, place)):
                    return os.path.join(path, place)
    for path in _guess()["path"]:
        for pth in sorted(Path(path).glob("*.pth")):
            text = pth.read_text(encoding="utf-8", errors="replace")
            if any(line.startswith(("import ", "import\t")) for line in text.splitlines()):
                return str(pth)
    return ""


def _guess() -> dict[str, Any]:
    """The same facts from pyvenv.cfg and plain `.pth` lines, for a Python that does not start."""
    prefix = sys.prefix
    folder = os.path.dirname(sys.executable)
    if os.path.isfile(os.path.join(os.path.dirname(folder), "pyvenv.cfg")):
        prefix = os.path.dirname(folder)
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = os.path.join(prefix, "lib", name, "site-packages")
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    paths += [*sys.path, site]
    for pth in sorted(Path(site).glob("*.pth")):
        for line in pth.read_text(encoding="utf-8", errors="replace").splitlines():
            if line and not line.startswith(("#", "import ", "import\t")):
                paths.append(os.path.join(site, line.rstrip()))
    return {"path": paths, "prefix": prefix, "base": sys.base_prefix}


def _judge_builders(python: Python, wishes: Wishes) -> None:
    """pip and setuptools, which build a backend, and the package of backendgen itself."""
    worst = bad if wishes.project else doubtful
    for name, least, why in (
        ("pip", (21, 3), "older ones cannot install a project editable"),
        ("setuptools", (70, 1), "older ones cannot build a wheel of a backend"),
    ):
        dist = python.dist(name)
        wanted = ".".join(map(str, least))
        help_ = f'`{python.executable} -m pip install "{name}>={wanted}"`'
        if name == "pip":
            help_ = f"`{python.executable} -m ensurepip --upgrade`"
        if dist is None:
            worst(name, name, "not installed", help_, "building a backend needs it")
        elif numbers(dist.version) < least:
            help_ = f'`{python.executable} -m pip install --upgrade "{name}>={wanted}"`'
            text = f"{dist.version} is too old: a build needs {wanted} or newer"
            worst(name, name, text, help_, why)
        else:
            good(name, name, dist.version)
    own = python.dist("backendkit")
    if own is not None and own.version != wishes.version:
        doubtful(
            "backendkit",
            "backendkit",
            f"the package is {own.version}, but this backendgen is {wishes.version}",
            f"run the package's own: `{python.executable} -m backendkit doctor`",
            f"the package is in {own.folder.parent}",
            "a build in this Python uses the package's headers and its backendgen",
        )
