# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md, written whole from the rows that the release matrix has."""

from __future__ import annotations

from pathlib import Path

from results import ROOT, SUITES, Row, Suite, minor

PAGE = ROOT / "docs" / "compatibility.md"


def table(head: list[str], lines: list[list[str]]) -> str:
    rule = "|---" * len(head) + "|"
    return "\n".join(
        [f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(one)} |" for one in lines)]
    )


def cells(row: Row) -> list[str]:
    built = "-" if row.build_seconds is None else f"{row.build_seconds} s"
    if not row.suites and row.error:
        return [row.version, row.python, "**failed**", *("-" for _ in SUITES)]
    suites = [row.suites[name].cell if name in row.suites else "not run" for name in SUITES]
    return [row.version, row.python, built, *suites]


def without_failure(rows: list[Row]) -> tuple[list[str], list[str]]:
    """The minor releases of which all rows are good: with all suites, and with some."""
    whole, partly = [], []
    for release in dict.fromkeys(minor(row.version) for row in rows):
        ours = [row for row in rows if minor(row.version) == release]
        if all(row.good for row in ours):
            ran_all = any(set(row.suites) == set(SUITES) for row in ours)
            (whole if ran_all else partly).append(release)
    return whole, partly


def title(row: Row) -> str:
    return f"{row.version}, Python {row.python}"


def how(rows: list[Row]) -> str:
    """Where the rows come from; those of one state of the tree are told together."""
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.commit, row.date, row.machine, row.compiler), []).append(row)
    lines = []
    for (commit, date, machine, compiler), ours in groups.items():
        names = "all rows" if len(groups) == 1 else ", ".join(title(row) for row in ours)
        state = f"commit `{commit.removesuffix('+')}`"
        state += " with changes that were not committed" if commit.endswith("+") else ""
        lines.append(f"- {names}: {state}, {date}; {machine}; {compiler}")
    lines += [f"- {title(row)}: {row.note}" for row in rows if row.note]
    text = "\n".join(lines)
    if len({row.commit for row in rows}) > 1:
        text += "\n\nThe rows come from **different commits**."
    return text


def one_wheel(rows: list[Row]) -> str:
    """Rows in which the same wheel ran, byte for byte."""
    lines = []
    for row in rows:
        others = [one for one in rows if one.wheel == row.wheel and one.build_seconds is not None]
        if row.build_seconds is None and others:
            lines.append(
                f"- {title(row)}: the `py3-none` wheel that was built under Python "
                f"{others[0].python}, the same bytes (SHA-256 `{row.wheel[:16]}...`)"
            )
    return "\n".join(lines)


def skips(rows: list[Row]) -> str:
    lines = [
        [title(row), name, str(count), reason.replace("|", "\\|")]
        for row in rows
        for name, suite in row.suites.items()
        for reason, count in sorted(suite.skipped.items())
    ]
    if not lines:
        return "None."
    return table(["PyTorch", "suite", "tests", "reason"], lines)


def failures(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        if row.error:
            lines.append(f"- {row.error.replace(chr(10), chr(10) + '  ')}")
        for name, suite in row.suites.items():
            lines += [f"- {title(row)}, {name}: {what}" for what in problems(suite)]
    return "\n".join(lines) or "None."


def problems(suite: Suite) -> list[str]:
    return [suite.problem] if suite.problem else [f"`{one}`" for one in suite.failures]


def page(rows: list[Row]) -> str:
    suites = "\n".join(f"- *{name}*: {text}" for name, text in SUITES.items())
    whole, partly = (", ".join(one) for one in without_failure(rows))
    verdict = f"All suites without a failure: {whole or 'none'}."
    if partly:
        verdict += f" Those that ran, without a failure: {partly}."
    wheels = one_wheel(rows)
    return f"""# PyTorch releases

<!-- Written by `./dev matrix`; change tests/pytorch/matrix/page.py, not this file. -->

Every backend is built for one minor release of PyTorch, by the BackendKit that is installed. These
releases were tested, each in environments of its own, with PyTorch as pip installs it unless the
end of this page says otherwise:

{table(["PyTorch", "Python", "build", *SUITES], [cells(row) for row in rows])}

{verdict}

*build* is the time that `pip wheel` takes for the starter project, all of it compiled, beside
whatever else the machine does.

{suites}

What is not among them runs with one release, in `./dev test`: the device's tests of `transformers`,
and the samples of PyTorch's operator database.
{f"{chr(10)}## One wheel, several Pythons{chr(10)}{chr(10)}{wheels}{chr(10)}" if wheels else ""}
## Skipped

{skips(rows)}

## Failed

{failures(rows)}

## How this was made

`./dev matrix`, which writes this page whole. `./dev matrix 2.9.1` tests one release and keeps the
other rows, which `tests/pytorch/matrix/results.json` has. It leaves its wheel for another Python:

```text
./dev matrix --python EXE --wheel build/matrix/2.13.0/dist/torch_foo-*.whl 2.13.0
```

The rows:

{how(rows)}

A release newer than those above is not refused: building for it warns, and what differs is likely
to show as errors of the compiler.
"""


def write_page(rows: list[Row], path: Path = PAGE) -> None:
    path.write_text(page(rows), encoding="utf-8")
