# SPDX-License-Identifier: Apache-2.0
"""The report card as one HTML page, which needs no script, no network and no other file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import jinja2  # PyTorch requires it

from .about import release

_STATES = {
    "kernel": "a kernel of this backend computes it on the device",
    "built-in": "BackendKit computes it on the device: memory, views, copies",
    "free": "composed of other operators",
    "fallback": "the CPU computes it",
    "error": "raises an error: there is no kernel, and no fallback",
    "cannot": "PyTorch has it only for other devices",
}
_VERDICTS = {
    "passed": "Passed",
    "failed": "Failed",
    "interrupted": "Interrupted",
    "unfinished": "Not finished",
    "nothing": "Nothing tested",
}
_SAMPLE_COUNTS = ("made", "passed", "known", "failed")


def _number(value: int) -> str:
    return f"{value:,}"


def _time(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min"


def _bytes(count: int) -> str:
    value, unit = float(count), "B"
    for bigger in ("KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value, unit = value / 1024, bigger
    return f"{count:,} B" if unit == "B" else f"{value:.1f} {unit}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _bar(counts: dict[str, Any], total: int) -> list[dict[str, Any]]:
    """The parts of a bar, as wide as their share."""
    return [
        {"state": state, "count": counts[state], "percent": f"{100 * counts[state] / total:.2f}"}
        for state in _STATES
        if total and counts[state]
    ]


def _by_dtype(samples: dict[str, Any]) -> list[dict[str, Any]]:
    rows: dict[str, Counter[str]] = {}
    operators: dict[str, int] = {}
    for row in samples["rows"]:
        counts = rows.setdefault(row["dtype"], Counter())
        counts.update({name: row[name] for name in _SAMPLE_COUNTS})
        operators[row["dtype"]] = max(operators.get(row["dtype"], 0), row["operators"])
    return [
        {"dtype": dtype, "operators": operators[dtype], **{n: counts[n] for n in _SAMPLE_COUNTS}}
        for dtype, counts in rows.items()
    ]


def _share(row: dict[str, Any]) -> str:
    """The part of a training's time that fallbacks take."""
    spent = sum(one["seconds"] for one in row["fallbacks"])
    return f"{100 * min(1.0, spent / row['seconds']):.0f} %"


def page(card: dict[str, Any]) -> str:
    """The page, in ASCII: letters beyond are written as references."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "number": _number, "time": _time, "bytes": _bytes, "bar": _bar, "release": release,
        "by_dtype": _by_dtype, "share": _share, "plural": _plural,
    }  # fmt: skip
    text = environment.get_template("page.html").render(
        card, states=_STATES, verdict_word=_VERDICTS[card["verdict"]["state"]]
    )
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")
