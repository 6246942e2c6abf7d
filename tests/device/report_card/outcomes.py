# SPDX-License-Identifier: Apache-2.0
"""The outcomes of a run's tests, from pytest's reports, in whatever order processes send them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: A test has the gravest of the outcomes of its set-up, call and tear-down.
_GRAVITY = {"passed": 0, "skipped": 1, "failed": 2}


@dataclass
class Outcome:
    state: str = "passed"
    seconds: float = 0.0
    ended: bool = False  # pytest also reports a set-up that passed, before the test itself
    line: str = ""  # the first line of the failure, or the reason of the skip


@dataclass
class Outcomes:
    """Of each test, and of each file that could not be collected, by pytest's name of it."""

    begun: dict[str, Outcome] = field(default_factory=dict)
    collected: int = 0
    deselected: int = 0

    def add(self, report: Any) -> None:
        """Adds a report of a test, or of a file that was skipped or cannot be imported."""
        state = report.outcome
        if state not in _GRAVITY:
            return  # of a plugin that runs a test again: its last report counts
        one = self.begun.setdefault(report.nodeid, Outcome())
        one.ended = one.ended or state != "passed" or report.when == "teardown"
        one.seconds += getattr(report, "duration", 0.0)
        if _GRAVITY[state] > _GRAVITY[one.state]:
            one.state = state
            one.line = _reason(report) if state == "skipped" else _first_line(report)

    def summary(self, suite: Path | None = None) -> dict[str, Any]:
        """The counts as JSON has them; names of files are relative to `suite`."""
        tests = {name: one for name, one in self.begun.items() if one.ended}
        states = Counter(one.state for one in tests.values())
        files: dict[str, dict[str, Any]] = {}
        for name, one in sorted(tests.items()):
            file = _file_of(name, suite)
            row = files.setdefault(
                file, {"file": file, "passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0}
            )
            row[one.state] += 1
            row["seconds"] += one.seconds
        for row in files.values():
            row["seconds"] = round(row["seconds"], 3)
        reasons = Counter(one.line for one in tests.values() if one.state == "skipped")
        failures = [
            {"test": _short(name, suite), "line": one.line}
            for name, one in sorted(tests.items())
            if one.state == "failed"
        ]
        in_tests = sum("::" in name for name in tests)
        return {
            **{state: states[state] for state in _GRAVITY},
            "not_run": max(0, self.collected - in_tests),
            "deselected": self.deselected,
            "seconds": round(sum(one.seconds for one in tests.values()), 3),
            "files": [files[name] for name in sorted(files)],
            "failures": failures,
            "skips": [
                {"reason": reason, "tests": count}
                for reason, count in sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
            ],
        }


def _file_of(name: str, suite: Path | None) -> str:
    """`test_streams.py` of `tests/device/test_streams.py::test_wait[1]`."""
    file = name.partition("::")[0]
    if suite is not None and (suite / Path(file).name).is_file():
        return Path(file).name
    return file


def _short(name: str, suite: Path | None) -> str:
    _, colons, test = name.partition("::")
    return _file_of(name, suite) + colons + test


def _reason(report: Any) -> str:
    expected = getattr(report, "wasxfail", None)
    if expected is not None:
        return f"expected to fail: {expected or 'no reason given'}"
    where = report.longrepr
    text = str(where[2]) if isinstance(where, tuple) else str(where)
    return " ".join(text.removeprefix("Skipped: ").split()) or "no reason given"


def _first_line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    message = str(crash.message if crash is not None else report.longrepr or "")
    if crash is None:  # a file that cannot be imported: Python's own lines begin with E
        told = [line[1:] for line in message.splitlines() if line.startswith("E  ")]
        message = told[-1] if told else message
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[0] if lines else "no message"
