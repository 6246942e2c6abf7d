# SPDX-License-Identifier: Apache-2.0
"""What the release matrix has found: read from pytest's reports and compilers' logs, kept as JSON.

`results.json` beside this file holds a row for each release that was ever run, so that a run of
some releases keeps the rows of the others, in a new clone too. docs/compatibility.md is written
from it and from nothing else.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[3]
RESULTS = Path(__file__).resolve().parent / "results.json"

#: The last patch release of each minor one; the generator has the same list.
RELEASES = "2.5.1 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0 2.14.1 2.15.0".split()

SUITES = {
    "operators": "C++ signatures of all operators, compared with those of PyTorch's own torchgen",
    "starter": "the project that `backendgen new foo` writes: its own tests",
    "device": "`tests/device` on the starter project's wheel",
    "unchanged": "programs that use only the CPU: the same with the wheel as without it",
    "minimal": "`examples/minimal`: built, installed, its own tests and what it says it lacks",
    "dense": "`examples/kernels/dense`: 60 kernels, each compared with the CPU",
    "strided": "`examples/kernels/strided`: the same kernels on any strides",
    "vendor_library": "`examples/vendor_library`: the commands of its README, and no driver",
    "starts": "programs that `torchrun` and frameworks start, with process groups of the device",
    "collectives": "the tests of groups in `tests/device`, by a driver that has collectives: "
    "`examples/collectives`",
}


def release_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def is_newer_than_known(version: str) -> bool:
    """Whether the release is of a minor version that BackendKit has never been tested with."""
    return release_key(minor(version)) > release_key(minor(RELEASES[-1]))


@dataclass
class Suite:
    """The counts of one run of pytest; `skipped` maps each reason to how often it was given."""

    passed: int = 0
    failed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    problem: str = ""  # why pytest wrote no report

    @property
    def good(self) -> bool:
        return not self.problem and self.failed == 0 and self.passed > 0

    @property
    def cell(self) -> str:
        if self.problem:
            return "did not run"
        words = [f"{self.passed} passed"]
        if self.failed:
            words.append(f"**{self.failed} failed**")
        if self.skipped:
            words.append(f"{sum(self.skipped.values())} skipped")
        return ", ".join(words)


@dataclass
class Row:
    """All that is known of one release under one Python."""

    version: str
    python: str  # "3.11"
    commit: str  # of the tree that was run; ends in "+" where it was changed
    date: str
    machine: str
    compiler: str
    note: str = ""  # how PyTorch was installed, if not as pip does
    wheel: str = ""  # SHA-256 of the starter project's wheel
    package: str = ""  # that wheel's, "torch_foo 0.1.0"
    build_seconds: int | None = None  # of that wheel; None where another row's was installed
    suites: dict[str, Suite] = field(default_factory=dict)
    error: str = ""  # why there are no suites, or not all of them

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return release_key(self.version), release_key(self.python)

    @property
    def good(self) -> bool:
        return (
            not self.error
            and bool(self.suites)
            and all(suite.good for suite in self.suites.values())
        )


def read_report(path: Path) -> Suite:
    """The counts in a report that `pytest --junitxml` wrote."""
    try:
        root = ElementTree.parse(path).getroot()
    except FileNotFoundError:
        return Suite(problem="pytest wrote no report")
    except ElementTree.ParseError as error:
        return Suite(problem=f"pytest's report is broken: {error}")
    suite = Suite()
    for case in root.iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}".removeprefix("tests.")
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            suite.failed += 1
            suite.failures.append(name)
        elif skipped is not None:
            reason = reason_of(skipped)
            suite.skipped[reason] = suite.skipped.get(reason, 0) + 1
        else:
            suite.passed += 1
    if suite.passed + suite.failed + len(suite.skipped) == 0:
        suite.problem = "pytest found no tests"
    return suite


def reason_of(skipped: ElementTree.Element) -> str:
    message = skipped.get("message") or "no reason given"
    if message == "collection skipped":  # of a whole file: the reason stands in the text, quoted
        found = re.search(r"Skipped: (.*?)['\"]\)?\s*$", skipped.text or "", re.S)
        message = found.group(1) if found else message
    return " ".join(message.split())


def first_compiler_error(log: str) -> str | None:
    """The first line of a build's log in which a compiler or linker refuses something."""
    compiler = re.search(r"^.*?\S+:\d+(?::\d+)?: (?:fatal )?error: .*$", log, re.M)
    linker = re.search(r"^.*(?:undefined reference to|undefined symbol).*$", log, re.M)
    found = compiler or linker
    return found.group().strip() if found else None


def last_line(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def why_not_built(version: str, log: str, place: str) -> str:
    """What to say of a release that the starter project could not be built for."""
    error = first_compiler_error(log)
    if error is not None:
        what = f"the glue does not compile with it: {error}"
    else:
        what = f"the starter project could not be built with it: {last_line(log)}"
    return f"PyTorch {version}: {what}\nnote: the log is {place}\nnote: {known_releases(version)}"


def why_not_installed(version: str, log: str, place: str) -> str:
    errors = [line for line in log.splitlines() if line.startswith("ERROR:")]
    what = errors[-1].removeprefix("ERROR: ") if errors else last_line(log)
    return (
        f"PyTorch {version}: pip cannot install it: {what}\n"
        f"note: the log is {place}\nnote: {known_releases(version)}"
    )


def known_releases(version: str) -> str:
    text = f"BackendKit is tested with PyTorch {minor(RELEASES[0])} to {minor(RELEASES[-1])}"
    return f"{text}; {version} is newer" if is_newer_than_known(version) else text


def load(path: Path = RESULTS) -> list[Row]:
    """The rows of earlier runs, oldest release first."""
    if not path.is_file():
        return []
    rows = [row_of(one) for one in json.loads(path.read_text(encoding="utf-8"))]
    return sorted(rows, key=lambda row: row.key)


def row_of(values: dict[str, Any]) -> Row:
    suites = {name: Suite(**one) for name, one in values.pop("suites").items()}
    return Row(**values, suites=suites)


def save(row: Row, path: Path = RESULTS) -> list[Row]:
    """Puts a row in the place of an older one of its release and Python; returns all rows."""
    rows = [one for one in load(path) if one.key != row.key] + [row]
    rows.sort(key=lambda one: one.key)
    text = json.dumps([asdict(one) for one in rows], indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")
    return rows
