# SPDX-License-Identifier: Apache-2.0
"""The files of a backend: RECORD, and each of its libraries."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from backendkit_tools import doctor_report
from backendkit_tools.doctor_dists import Dist
from backendkit_tools.doctor_elf import damage, list_libraries, other_machine
from backendkit_tools.doctor_python import Python
from backendkit_tools.doctor_torch import Torch

__all__ = ["Report", "judge_library", "judge_record"]

_SHOWN = 3


class Report:
    """The rows of one backend."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.wrong = False
        self.damaged: set[str] = set()  # files that have a row
        self.paths: dict[str, str] = {}  # libraries that it loads, by name

    def bad(self, check: str, text: str, help_: str, *why: str) -> None:
        self.wrong = True
        doctor_report.bad(check, self.subject, text, help_, *why)

    def doubtful(self, check: str, text: str, help_: str, *why: str) -> None:
        self.wrong = True
        doctor_report.doubtful(check, self.subject, text, help_, *why)


def judge_record(dist: Dist, help_: str, report: Report) -> None:
    """Compares the installed files with RECORD."""
    missing, changed = [], []
    if not dist.record():
        report.doubtful("backend.files", f"{dist.folder} has no RECORD of its files", help_)
    for path, digest, _ in dist.record():
        if path.suffix == ".pyc":
            continue
        if not path.exists():
            missing.append(str(path))
        elif digest.startswith("sha256="):
            try:
                found = hashlib.sha256(path.read_bytes()).digest()
            except OSError as error:
                report.bad(
                    "backend.files",
                    f"{path} cannot be read: {error.strerror}",
                    f"`sudo chmod a+r '{path}'`",
                )
                report.damaged.add(str(path))
                continue
            if base64.urlsafe_b64encode(found).rstrip(b"=").decode() != digest[7:]:
                changed.append(str(path))
    for paths, what in ((missing, "missing"), (changed, "changed since it was installed")):
        for path in paths[:_SHOWN]:
            report.bad("backend.files", f"{path} is {what}", help_)
            report.damaged.add(path)
        if len(paths) > _SHOWN:
            report.bad("backend.files", f"{len(paths) - _SHOWN} more files are {what}", help_)


def judge_library(
    path: Path,
    torch: Torch | None,
    help_: str,
    python: Python,
    report: Report,
    folders: Sequence[str] = (),
) -> None:
    """Judges a library; without `torch`, for another release, only whether it is whole.

    Libraries in `folders` are open when it is loaded.
    """
    if not path.exists():
        return
    problem = damage(path)
    if problem:
        if str(path) not in report.damaged:
            report.bad("backend.library", f"{path} {problem}", help_)
        return
    machine = other_machine(path)
    if machine:
        report.bad(
            "backend.machine",
            f"{path} is for {machine}, and this is {os.uname().machine}",
            f"install a wheel for {os.uname().machine}: {help_}",
        )
        return
    if torch is None or not torch.whole:
        return
    loaded = list_libraries(str(path), [torch.libraries, *folders])
    if loaded.trouble:
        report.doubtful(
            "backend.loader",
            f"{path} could not be checked: {loaded.trouble}",
            f'`{python.executable} -c "import torch"` shows whether it loads',
        )
        return
    report.paths.update(loaded.paths)
    for name, who in loaded.missing.items():
        report.bad(
            "backend.missing",
            f"{name} is missing",
            f"install what has {name}, or add its folder to LD_LIBRARY_PATH",
            f"{who or path} needs it",
        )
    for version, library, who in loaded.versions:
        report.bad(
            "backend.versions",
            f"needs {version} of {library}, which is older here",
            "use a newer system, or a wheel that was built on an older one",
            f"{who} needs it",
        )
    # A missing library takes its symbols along.
    undefined = [] if loaded.missing else loaded.undefined
    foreign = sorted(
        {
            name
            for name, who in undefined
            if not name.startswith(("Py", "_Py")) and os.path.dirname(who) != torch.libraries
        }
    )
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        abi = any("Ss" in name or "cxx11" in name for name in foreign)
        why = ["it was built with the other std::string: _GLIBCXX_USE_CXX11_ABI"] if abi else []
        report.bad(
            "backend.symbols",
            f"{path} needs {foreign[0]}{more}, which PyTorch {torch.version} does not have",
            help_ + f", a wheel built for PyTorch {torch.minor}",
            *why,
        )
    roots = (str(path.parent), python.prefix, *python.paths)
    for place, who in dict.fromkeys(loaded.places):
        if not os.path.isdir(place) and not place.startswith(roots):
            report.doubtful(
                "backend.rpath",
                f"{who} looks for libraries in {place}, which does not exist",
                "build it again with the RPATH `$ORIGIN`, as add_torch_backend() does",
                "whoever can make that folder can put a library there",
            )
