# SPDX-License-Identifier: Apache-2.0
"""Compares a new PyTorch release with the newest tested one; `./dev follow`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from follow import (
    bump,
    declarations,
    entry_points,
    install,
    operators,
    python_names,
    symbols,
    virtuals,
)
from follow.cpp import Program
from follow.releases import NoRelease, Release
from follow.report import Report

ROOT = Path(__file__).resolve().parents[3]
COMPARED = ("operators", "headers", "virtuals", "python", "entry-points")
STEPS = (*COMPARED, "build", "symbols")


def read_command_line(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev follow",
        description=__doc__.splitlines()[0],
        epilog="exit status: 0 nothing to do, 1 something needs a look, 2 command line",
    )
    option = parser.add_argument
    option("version", help="the new release, such as 2.16.0")
    option(
        "--from", dest="old", metavar="VERSION", help="the release before; else the newest known"
    )
    option("--only", metavar="STEPS", help=f"of {','.join(STEPS)}")
    option(
        "--with", dest="ready", type=Path, metavar="DIR", help="an environment or folder with it"
    )
    option("--from-dir", type=Path, metavar="DIR", help="the same with the release before")
    option("--suites", metavar="NAMES", help="of the matrix; else all")
    option(
        "--python", type=Path, metavar="EXE", help="a Python that has the release, to build with"
    )
    option("--library", type=Path, metavar="SO", help="a built backend, for the step symbols")
    option("--format", choices=("text", "json"), default="text")
    option("--notes", action="store_true", help="also list what needs nothing done")
    option("--write", action="store_true", help="make it the newest tested release, if it passes")
    option("--folder", type=Path, required=True, help=argparse.SUPPRESS)
    option("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.old = options.old or bump.newest(options.root)
    for version in (options.version, options.old):
        if not re.fullmatch(r"\d+\.\d+\.\d+", version):
            parser.error(f"not a release such as 2.16.0: {version}")
    if options.version == options.old:
        parser.error(f"{options.version} is the release to compare with; name another: --from")
    default = COMPARED if options.ready else STEPS
    options.steps = options.only.split(",") if options.only else list(default)
    if options.library and "symbols" not in options.steps and not options.only:
        options.steps.append("symbols")
    unknown = [name for name in options.steps if name not in STEPS]
    if unknown:
        parser.error(f"no step {', '.join(unknown)}; there are {', '.join(STEPS)}")
    if "symbols" in options.steps and not ("build" in options.steps or options.library):
        parser.error("symbols needs a built backend: name it with --library, or add the step build")
    if options.write and "build" not in options.steps:
        parser.error("--write needs the step build, whose results it writes")
    for path in (options.python, options.library):
        if path is not None and not path.is_file():
            parser.error(f"no file {path}")
    options.folder = options.folder.absolute()
    return options


def release(version: str, ready: Path | None, folder: Path) -> Release:
    made = install.unpacked(version, folder) if ready is None else Release(ready.absolute())
    if made.version != version:
        raise NoRelease(f"{made.torch} is PyTorch {made.version}, not {version}")
    return made


def program(options: argparse.Namespace, one: Release) -> Program:
    """Our headers, and with backendgen the glue of a new project, in one release's eyes."""
    backendgen = os.environ.get("BACKENDGEN")
    if backendgen is None:
        return Program(options.root, one.include)
    texts, project = install.glue(backendgen, one, options.folder / f"glue-{one.version}")
    return Program(options.root, one.include, texts, project)


def compare(options: argparse.Namespace, report: Report, before: Release, after: Release) -> None:
    root, steps, library = options.root, options.steps, options.library
    if "operators" in steps:
        rows = operators.compare(root, before, after, os.environ["BACKENDGEN"])
        report.add("operators", rows)
    if {"headers", "virtuals"} & set(steps):
        programs = [program(options, one) for one in (before, after)]
        for name, part in (("headers", declarations), ("virtuals", virtuals)):
            if name in steps:
                report.add(name, part.compare(*programs))
    if "python" in steps:
        report.add("python", python_names.compare(root, before, after))
    if "entry-points" in steps:
        report.add("entry-points", entry_points.compare(root, before, after))
    if "build" in steps:
        rows, wheel = install.build(
            options.version, options.folder, options.suites, options.python, options.write
        )
        report.add("build", rows)
        if library is None and wheel is not None:
            library = install.library_of(wheel, options.folder / "library")
    if "symbols" in steps:
        if library is None:
            report.left_out["symbols"] = "no library was built"
        else:
            report.add("symbols", symbols.compare(root, after, library))


def main(arguments: list[str]) -> int:
    options = read_command_line(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        before = release(options.old, options.from_dir, options.folder)
        after = release(options.version, options.ready, options.folder)
        report = Report(before.version, after.version)
        compare(options, report, before, after)
    except (NoRelease, install.Failed, operators.Failed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(report.json() if options.format == "json" else report.text(options.notes), end="")
    passed = not any(row.step == "build" for row in report.rows)
    if options.write and passed:
        for path in bump.write(options.root, options.version):
            print(f"wrote {path}", file=sys.stderr)
    return 1 if report.needs_a_look else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
