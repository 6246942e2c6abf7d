# SPDX-License-Identifier: Apache-2.0
"""The rows of `backendgen doctor`, and how its tools run other programs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Ended", "Wishes", "bad", "doubtful", "end", "good", "run", "shown"]


@dataclass(frozen=True)
class Wishes:
    """What backendgen passes on."""

    version: str  # of backendgen
    oldest: str
    newest: str  # the newest PyTorch tested, "2.15"
    package: str
    device: str
    timeout: int
    project: bool


def _line(*parts: str) -> None:
    # A control character would start another field or line.
    clean = ["".join(c if c.isprintable() else " " for c in part) for part in parts]
    print("\t".join(clean), flush=True)


def good(check: str, subject: str, text: str) -> None:
    _line("row", "ok", check, subject, text)


def doubtful(check: str, subject: str, text: str, help_: str, *why: str) -> None:
    """A row for what may be meant, or will only hurt in another case."""
    _line("row", "warn", check, subject, text)
    _explain(help_, why)


def bad(check: str, subject: str, text: str, help_: str, *why: str) -> None:
    """A row for what cannot work."""
    _line("row", "fail", check, subject, text)
    _explain(help_, why)


def _explain(help_: str, why: tuple[str, ...]) -> None:
    for one in why:
        _line("why", one)
    _line("help", help_)


def end() -> None:
    _line("end", "")


@dataclass(frozen=True)
class Ended:
    """How a program ended: its status, or minus a signal; None when it was ended at its limit."""

    status: int | None
    out: str
    err: str

    @property
    def last_line(self) -> str:
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        return lines[-1] if lines else ""


def run(words: list[str], limit: float, environment: Mapping[str, str] | None = None) -> Ended:
    """Runs a program in a process group of its own, which is killed as a whole afterwards."""
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return Ended(127, "", f"{words[0]}: {error.strerror}")
    status: int | None = None
    try:
        out, err = process.communicate(timeout=limit)
        status = process.returncode
    except subprocess.TimeoutExpired:
        _kill_group(process.pid)
        out, err = process.communicate()
    _kill_group(process.pid)
    return Ended(status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # all of it has ended


def shown(path: str) -> str:
    """A path for people: relative to where they are, when it lies below."""
    here = os.getcwd() + os.sep
    return path[len(here) :] if path.startswith(here) else path
