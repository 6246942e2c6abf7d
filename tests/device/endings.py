# SPDX-License-Identifier: Apache-2.0
"""Ways in which a program that uses the device ends, each with the status that it ends with.

    python endings.py --device foo --runs 20

runs each program that often on the CPU and on the device, and prints a table of the statuses. Fails
if the device has one that is neither the CPU's nor what the program asks for. `--write PAGE` puts
the table into a Markdown page, in place of the one between its markers.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ending_programs import PRELUDE, WAYS, Way

#: Seconds after which a program counts as one that hangs.
PATIENCE = 240
#: Seconds from a program's "ready" to the signal that it gets, so that it is in the middle of work.
INTO_THE_WORK = 0.15
HANGS = "hangs"


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _command(way: Way, device: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """What runs a way's program, and the variables of its environment."""
    cell = f"CELL = {PRELUDE + 'step()'!r}\n" if "CELL" in way.program else ""
    text = PRELUDE + cell + way.program
    command = [sys.executable, *way.arguments]
    environment = dict(os.environ)
    if way.arguments:  # the file is an argument of another program, which has its own
        text = text.replace("sys.argv[1]", "os.environ['ENDING_DEVICE']")
        environment["ENDING_DEVICE"] = device
    if way.file:
        file = folder / "test_ending.py"
        file.write_text(text, encoding="utf-8")
        command.append(str(file))
    else:
        command += ["-c", text]
    return (command if way.arguments else [*command, device]), environment


def _end(way: Way, device: str) -> tuple[int | str, str]:
    """What a process ends with, a status, minus the number of a signal or HANGS, and its stderr."""
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile() as errors:
        command, environment = _command(way, device, Path(name))
        process = subprocess.Popen(
            command,
            cwd=name,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        status: int | str = HANGS
        with process:
            if way.signal is not None and process.stdout.readline() == b"ready\n":
                time.sleep(INTO_THE_WORK)
                process.send_signal(way.signal)
            try:
                process.communicate(timeout=PATIENCE)
                status = process.returncode
            except subprocess.TimeoutExpired:
                process.kill()
        errors.seek(0)
        return status, errors.read().decode(errors="replace")


def run(way: Way, device: str, runs: int) -> list[tuple[int | str, str]]:
    """How `runs` processes of a way end, some of which run at the same time."""
    with ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda _: _end(way, device), range(runs)))


def _cell(statuses: Sequence[int | str]) -> str:
    counts = Counter(map(str, statuses))
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{status} ({count} times)" for status, count in counts.most_common())


def _rows(device: str, runs: int) -> Iterator[tuple[str, str, str, bool]]:
    from backend import lacking  # needs the backend

    for way in WAYS:
        if not has(way.module) or any(lacking(device, need) for need in way.needs):
            continue
        cpu, own = ([status for status, _ in run(way, on, runs)] for on in ("cpu", device))
        yield way.name, _cell(cpu), _cell(own), set(own) <= {way.status, *cpu}


def _write(page: Path, table: str) -> None:
    begin, end = "<!-- endings: begin -->\n", "<!-- endings: end -->\n"
    text = page.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"error: {page} has no place for the table, between `{begin.strip()}` and its end")
    new = re.sub(f"{begin}.*{end}", lambda _: begin + table + end, text, flags=re.DOTALL)
    beside = page.with_name(page.name + ".new")
    beside.write_text(new, encoding="utf-8")
    beside.replace(page)


def main() -> None:
    parser = argparse.ArgumentParser(description="How programs that use a device end.")
    parser.add_argument("--device", required=True)
    parser.add_argument("--runs", type=int, default=20, help="processes of a way: %(default)s")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a page that holds the table")
    options = parser.parse_args()
    table = "| a program ends | CPU | device |\n|---|---|---|\n"
    print(table, end="", flush=True)
    wrong = []
    for name, cpu, own, right in _rows(options.device, options.runs):
        row = f"| {name} | {cpu} | {own} |\n"
        print(row, end="", flush=True)
        table += row
        if not right:
            wrong.append(name)
    if wrong:
        sys.exit("error: the device's status is not the CPU's: " + "; ".join(wrong))
    if options.write is not None:
        _write(
            options.write,
            f"Processes for each way, on the CPU and on the device: {options.runs}.\n\n{table}",
        )


if __name__ == "__main__":
    main()
