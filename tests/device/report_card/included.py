# SPDX-License-Identifier: Apache-2.0
"""Results of other runs, from files that name the package, its version and the PyTorch release."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from . import SCHEMA
from .about import release

CARD, SAMPLES, SUITE = "report card", "operator samples", "suite results"
_NAMED = ("device", "package", "version", "torch", "python", "date")


class WrongFile(Exception):
    """Why a file cannot be included, written for its user."""


def read(path: Path) -> list[dict[str, Any]]:
    """The results in a file, each with its `kind`. Raises WrongFile."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WrongFile(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise WrongFile(f"{path} is not JSON: {error}") from None
    try:
        if isinstance(document, list):
            return [_release_of_matrix(row) for row in document]
        return [_result(document)]
    except WrongFile as error:
        raise WrongFile(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"no `{error.args[0]}`" if isinstance(error, KeyError) else str(error)
        raise WrongFile(f"{path} has not the form of a result file: {what}") from None


def _result(document: dict[str, Any]) -> dict[str, Any]:
    kind = document.get("kind")
    if kind not in (CARD, SAMPLES, SUITE):
        raise WrongFile(f"it is no {CARD}, {SAMPLES} or {SUITE}: its `kind` is {json.dumps(kind)}")
    if document.get("schema") != SCHEMA:
        found = json.dumps(document.get("schema"))
        raise WrongFile(f"its `schema` is {found}, and this BackendKit reads {SCHEMA}")
    about = {name: str(document["about"][name]) for name in _NAMED}
    result = {"kind": kind, "about": about, "command": str(document["command"])}
    if kind == CARD:
        verdict, tests = document["verdict"], document["tests"]
        suite = {**_counts(tests), "problem": ""}
        if verdict["state"] not in ("passed", "failed"):
            suite["problem"] = str(verdict["text"])
        elif verdict["part"]:
            suite["problem"] = "a part of the tests"
        return {**result, "suites": {"device": suite}, "problem": ""}
    if kind == SUITE:
        result |= {"suite": str(document["suite"]), "whole": bool(document["whole"])}
        return {**result, **_tests(document["tests"])}
    rows = [
        {
            **{name: str(row[name]) for name in ("dtype", "calls")},
            **{name: int(row[name]) for name in ("operators", "made", "passed", "known", "failed")},
        }
        for row in document["rows"]
    ]
    wrong = [str(line) for line in document["wrong"]]
    samples = int(document["samples"])
    return {**result, "rows": rows, "crashed": int(document["crashed"]), "wrong": wrong,
            "samples": samples}  # fmt: skip


def _counts(tests: dict[str, Any]) -> dict[str, int]:
    return {name: int(tests[name]) for name in ("passed", "failed", "skipped")}


def _tests(tests: dict[str, Any]) -> dict[str, Any]:
    return {
        **_counts(tests),
        "not_run": int(tests["not_run"]),
        "failures": [
            {name: str(one[name]) for name in ("test", "line")} for one in tests["failures"]
        ],
        "skips": [
            {"reason": str(one["reason"]), "tests": int(one["tests"])} for one in tests["skips"]
        ],
    }


def _release_of_matrix(row: dict[str, Any]) -> dict[str, Any]:
    """A row of BackendKit's own matrix of releases, tests/pytorch/matrix/results.json."""
    package, _, version = str(row.get("package", "")).partition(" ")
    suites = {
        str(name): {
            "passed": int(one["passed"]),
            "failed": int(one["failed"]),
            "skipped": sum(int(count) for count in one["skipped"].values()),
            "problem": str(one["problem"]),
        }
        for name, one in sorted(row["suites"].items())
    }
    about = {"device": "", "package": package, "version": version, "torch": str(row["version"]),
             "python": str(row["python"]), "date": str(row["date"])}  # fmt: skip
    return {
        "kind": "matrix",
        "about": about,
        "command": f"./dev matrix {row['version']}  # BackendKit {row['commit']}",
        "suites": suites,
        "problem": str(row["error"]).partition("\n")[0],
    }


def mismatches(result: dict[str, Any], about: dict[str, str]) -> list[str]:
    """How what a result is of differs from what the card is of; the release may differ in cards of
    other releases, which is what they are for."""
    theirs = result["about"]
    if not theirs["package"]:
        return ["names no package: the project that `backendgen new` writes was tested"]
    names = ["package", "version"]
    names += ["device"] if theirs["device"] else []
    names += ["torch"] if result["kind"] in (SAMPLES, SUITE) else []
    what = {"torch": "PyTorch ", "device": "device ", "version": f"{theirs['package']} "}
    found = []
    for name in names:
        one, other = (release(about_[name]) if name == "torch" else about_[name]
                      for about_ in (theirs, about))  # fmt: skip
        if one != other:
            found.append(f"measured with {what.get(name, '')}{one}, not {other}")
    return found


def by_section(results: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The results of each section of the card, in an order that does not depend on the files'."""
    sections: dict[str, list[dict[str, Any]]] = {
        "samples": [], "torchcts": [], "other_suites": [], "releases": [],
    }  # fmt: skip
    for one in results:
        if one["kind"] == SAMPLES:
            sections["samples"].append(one)
        elif one["kind"] == SUITE:
            sections["torchcts" if one["suite"] == "torchcts" else "other_suites"].append(one)
        else:
            sections["releases"].append(one)
    for rows in sections.values():
        rows.sort(
            key=lambda one: (_numbers(one["about"]["torch"]), json.dumps(one, sort_keys=True))
        )
    return sections


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", release(version))]
