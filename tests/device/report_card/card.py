# SPDX-License-Identifier: Apache-2.0
"""The report card as data, which its JSON shows as it is; docs/report-card.md lists its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import SCHEMA
from .included import CARD, by_section, mismatches

SUITE = Path(__file__).resolve().parents[1]
#: How the reasons begin with which `backend.lacking` explains skips.
_SKIPPED_FOR = {
    "devices": "there is one device:",
    "autocast": "there is no autocast:",
    "fallback": "there is no fallback:",
}


def suite_files() -> list[str]:
    return sorted(path.name for path in SUITE.glob("test_*.py"))


def make_card(
    about: dict[str, str],
    command: str,
    measured: dict[str, Any],
    tests: dict[str, Any],
    end: str,
    named_tests: bool,
    included: list[dict[str, Any]],
) -> dict[str, Any]:
    """`end` is how the run ended: "finished", "unfinished", "interrupted" or "broken";
    `named_tests` whether the command names single tests."""
    verdict = _verdict(about, tests, end, named_tests)
    capabilities = measured["capabilities"]
    if capabilities is not None:
        groups = [
            {**one, "skipped_tests": _skipped_for(one["name"], tests)}
            for one in capabilities["groups"]
        ]
        capabilities = {**capabilities, "groups": groups}
    sections = by_section([{**one, "mismatches": mismatches(one, about)} for one in included])
    return {
        "schema": SCHEMA,
        "kind": CARD,
        "about": about,
        "command": command,
        "verdict": verdict,
        "problem": measured["problem"],
        "capabilities": capabilities,
        "operators": measured["operators"],
        "training": measured["training"],
        "tests": tests,
        **sections,
    }


def _skipped_for(name: str, tests: dict[str, Any]) -> int:
    starts = _SKIPPED_FOR.get(name, f"this backend has no {name}:")
    return sum(one["tests"] for one in tests["skips"] if one["reason"].startswith(starts))


def _verdict(
    about: dict[str, str], tests: dict[str, Any], end: str, named_tests: bool
) -> dict[str, Any]:
    ran = {row["file"] for row in tests["files"]}
    files = suite_files()
    part = named_tests or tests["deselected"] > 0 or not ran >= set(files)
    counts = f"{tests['passed']:,} passed, {tests['failed']:,} failed, {tests['skipped']:,} skipped"
    if tests["not_run"]:
        counts += f", {tests['not_run']:,} not run"
    if end == "unfinished":
        state, text = (
            "unfinished",
            "the tests have not ended: they still run, or their process died",
        )
    elif end == "interrupted":
        state, text = "interrupted", f"interrupted: {counts}"
    elif end == "broken":
        state, text = "interrupted", f"pytest ended with an error of its own: {counts}"
    elif tests["failed"]:
        state, text = "failed", counts
    elif tests["not_run"]:
        state, text = "interrupted", f"stopped before the end: {counts}"
    elif not tests["passed"]:
        state, text = "nothing", f"no test passed: {counts}"
    else:
        state, text = "passed", counts
    some = len(ran & set(files))
    scope = f"{some} of {len(files)} files of the suite"
    if tests["deselected"]:
        scope += f", {tests['deselected']:,} tests deselected"
    elif named_tests and some:
        scope += ", single tests"
    return {"state": state, "text": text, "part": part, "scope": scope}
