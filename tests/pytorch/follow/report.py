# SPDX-License-Identifier: Apache-2.0
"""Rows of what changed between two releases, and their text and JSON."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from dataclasses import asdict, dataclass, field

#: BROKEN: our tree fails with the new release. LOOK: somebody has to decide. NOTE: good to know.
BROKEN, LOOK, NOTE = "broken", "look", "note"
LEVELS = (BROKEN, LOOK, NOTE)
SHOWN_LINES = 24  # of one diff; JSON has all of it


@dataclass(frozen=True)
class Row:
    """One thing of PyTorch that changed, and where our tree uses it."""

    step: str
    level: str
    name: str
    change: str
    before: str = ""
    after: str = ""
    places: tuple[str, ...] = ()  # "include/backendkit/guard.h:61"

    @property
    def order(self) -> tuple[int, str, str]:
        return LEVELS.index(self.level), self.name, self.change


@dataclass
class Report:
    """All rows of a comparison, with the steps that ran and those that could not."""

    before: str  # "2.14.1"
    after: str
    steps: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # step: why it did not run

    def add(self, step: str, rows: list[Row]) -> None:
        self.steps.append(step)
        self.rows += sorted(set(rows), key=lambda row: row.order)

    @property
    def needs_a_look(self) -> bool:
        return bool(self.left_out) or any(row.level != NOTE for row in self.rows)

    def json(self) -> str:
        values = {
            "format": 1,
            "before": self.before,
            "after": self.after,
            "steps": self.steps,
            "left_out": self.left_out,
            "rows": [{**asdict(row), "diff": diff(row)} for row in self.rows],
        }
        return json.dumps(values, indent=1, ensure_ascii=True) + "\n"

    def text(self, notes: bool) -> str:
        lines = []
        for step in self.steps:
            rows = [row for row in self.rows if row.step == step]
            lines.append(f"{step}: {counted(rows)}")
            for row in rows:
                if row.level != NOTE or notes:
                    lines += shown(row)
        lines += [f"{step}: not compared: {why}" for step, why in self.left_out.items()]
        lines += ["", f"PyTorch {self.before} -> {self.after}: {counted(self.rows)}"]
        return "\n".join(lines).encode("ascii", "backslashreplace").decode() + "\n"


def counted(rows: list[Row]) -> str:
    """Such as "1 broken, 3 to look at, 20 notes"."""
    counts = Counter(row.level for row in rows)
    words = {BROKEN: "broken", LOOK: "to look at", NOTE: "notes" if counts[NOTE] > 1 else "note"}
    parts = [f"{counts[level]} {words[level]}" for level in LEVELS if counts[level]]
    return ", ".join(parts) or "nothing changed"


def diff(row: Row) -> list[str]:
    """The lines that differ, with two lines around them; empty if there is nothing to compare."""
    if row.before == row.after:
        return []
    before, after = row.before.splitlines(), row.after.splitlines()
    if len(before) <= 1 and len(after) <= 1:
        return [f"- {one}" for one in before] + [f"+ {one}" for one in after]
    lines = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    return [line if line.startswith("@@") else f"{line[:1]} {line[1:]}" for line in lines]


def shown(row: Row) -> list[str]:
    lines = [f"  {row.level:<6}  {row.name}: {row.change}"]
    if row.level != NOTE:
        changes = diff(row)
        lines += [f"            {line}" for line in changes[:SHOWN_LINES]]
        if len(changes) > SHOWN_LINES:
            lines.append(f"            ... {len(changes) - SHOWN_LINES} more lines, in the JSON")
    lines += [f"          at {place}" for place in row.places]
    return lines
