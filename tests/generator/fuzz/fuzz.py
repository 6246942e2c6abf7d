#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzzers side by side and prints what they did; `./dev fuzz` calls it.

Each target starts from the committed corpus, from what earlier runs found, and from seeds made of
the texts of this repository. The exit status is 1 when an input breaks a promise of the generator.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LIST = "native_functions.yaml"
LONGEST = {"schema": 512, "description": 4096, "native_functions": 2048}  # bytes of an input
MOST_FILES, MOST_BYTES = 300, 300_000  # of a target's committed corpus
SLOW = 10  # seconds that an input may take


# --- seeds ------------------------------------------------------------------------------------


def schemas() -> set[bytes]:
    """Every schema in the unit tests and in the tests' list of operators."""
    texts = set()
    for path in (ROOT / "tests/generator/unit").glob("*.cpp"):
        for literal in re.findall(r'"(?:[^"\\\n]|\\.)*"', path.read_text()):
            text = ast.literal_eval(literal)
            if re.fullmatch(r"[\w.]+\(.*\) -> .+", text):
                texts.add(text)
    for path in operator_lists():
        texts.update(re.findall(r"^- func: (.+)$", path.read_text(), re.MULTILINE))
    return {text.encode() for text in texts}


def operator_lists() -> list[Path]:
    return sorted((ROOT / "tests/generator/golden").rglob(LIST))


def descriptions() -> set[bytes]:
    folders = (ROOT / "tests/generator/golden/cases", ROOT / "examples")
    paths = [path for folder in folders for path in folder.rglob("backend.toml")]
    return {path.read_bytes() for path in paths if path.is_file()}


def lists() -> set[bytes]:
    """The tests' lists of operators, every entry of them alone, and those in the unit tests."""
    texts = set()
    for path in operator_lists():
        text = path.read_text()
        texts.update([text, *re.findall(r"^- func: (?:.+\n)+", text, re.MULTILINE)])
    for path in (ROOT / "tests/generator/unit").glob("*.cpp"):
        texts.update(re.findall(r'R"\(([^()]*- func: .*?)\)"', path.read_text(), re.DOTALL))
        for literal in re.findall(r'"- (?:[^"\\\n]|\\.)*"', path.read_text()):
            texts.add(ast.literal_eval(literal))
    return {text.encode() for text in texts}


SEEDS = {"schema": schemas, "description": descriptions, "native_functions": lists}


def write_seeds(target: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed in SEEDS[target]():
        if len(seed) <= LONGEST[target]:
            (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


# --- running ----------------------------------------------------------------------------------


@dataclass
class Target:
    """A fuzzer and what it has done so far."""

    name: str
    program: Path
    work: Path
    executions: int = 0
    edges: int = 0
    crashes: list[Path] = field(default_factory=list)
    failure: str = ""  # the end of its output, when it stopped

    @property
    def found(self) -> Path:
        return self.work / "corpus" / self.name

    @property
    def committed(self) -> Path:
        return HERE / "corpus" / self.name

    def inputs(self) -> list[Path]:
        return [self.found, self.committed, self.work / "seeds" / self.name]

    def prepare(self) -> None:
        for folder in (self.found, self.committed, self.crash_folder):
            folder.mkdir(parents=True, exist_ok=True)
        write_seeds(self.name, self.work / "seeds" / self.name)

    @property
    def crash_folder(self) -> Path:
        return self.work / "crashes" / self.name

    def options(self) -> list[str]:
        return [
            f"-dict={HERE / (self.name + '.dict')}",
            f"-max_len={LONGEST[self.name]}",
            f"-timeout={SLOW}",
            "-rss_limit_mb=2048",
        ]

    def run(self, seconds: int) -> None:
        """Fuzzes for some seconds; not again once an input broke it."""
        if self.failure:
            return
        before = set(self.crash_folder.iterdir())
        done = run(
            [
                self.program,
                *self.options(),
                f"-max_total_time={seconds}",
                f"-artifact_prefix={self.crash_folder}/",
                "-print_final_stats=1",
                *self.inputs(),
            ]
        )
        counted = re.search(r"number_of_executed_units: *(\d+)", done.stderr)
        self.executions += int(counted[1]) if counted else 0
        edges = re.findall(r"^#\d+\s.*?\bcov: (\d+)", done.stderr, re.MULTILINE)
        self.edges = max([self.edges, *map(int, edges)])
        self.crashes += sorted(set(self.crash_folder.iterdir()) - before)
        if done.returncode != 0:
            self.failure = "\n".join(done.stderr.splitlines()[-60:])

    def shrink(self) -> None:
        """Makes the committed corpus the fewest inputs that reach every edge known so far, and
        those that broke a promise once (`crash-...`)."""
        kept = self.work / "kept" / self.name
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        command = [self.program, *self.options(), "-set_cover_merge=1", "-use_counters=0"]
        done = run([*command, kept, *self.inputs()])
        if done.returncode != 0:
            sys.exit(f"error: cannot merge the corpus of {self.name}\n{done.stderr[-2000:]}")
        sizes = [path.stat().st_size for path in kept.iterdir()]
        if len(sizes) > MOST_FILES or sum(sizes) > MOST_BYTES:
            sys.exit(f"error: {len(sizes)} inputs of {sum(sizes)} bytes for {self.name}: too many")
        for path in self.committed.iterdir():
            if "-" not in path.name:
                path.unlink()
        shutil.copytree(kept, self.committed, dirs_exist_ok=True)


def run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "ASAN_OPTIONS": "detect_leaks=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    return subprocess.run(
        [str(word) for word in command],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
    )


def shares(targets: list[Target], jobs: int, seconds: int) -> list[list[tuple[Target, int]]]:
    """What each of `jobs` workers runs, one after the other, so that every target gets as much
    time and all end together. A target that two workers share is the last of one and the first of
    the next: it never runs twice at once."""
    share = max(seconds * min(jobs, len(targets)) // len(targets), 1)
    workers: list[list[tuple[Target, int]]] = []
    left = 0
    for target in targets:
        needed = share
        while needed:
            if left == 0:
                workers.append([])
                left = seconds
            now = min(needed, left)
            workers[-1].append((target, now))
            needed -= now
            left -= now
    return workers


def work(slices: list[tuple[Target, int]]) -> None:
    for target, seconds in slices:
        target.run(seconds)


def report(targets: list[Target]) -> None:
    print(f"{'target':<20}{'executions':>12}{'edges':>8}{'inputs':>8}{'kept':>6}{'crashes':>9}")
    for target in targets:
        found, kept = (len(list(folder.iterdir())) for folder in (target.found, target.committed))
        crashes = len(target.crashes) or int(bool(target.failure))
        print(
            f"{target.name:<20}{target.executions:>12}{target.edges:>8}{found:>8}{kept:>6}"
            f"{crashes:>9}"
        )
    for target in targets:
        if not target.failure:
            continue
        print(f"\nerror: {target.name} stopped\n{target.failure}", file=sys.stderr)
        for crash in target.crashes:
            print(
                f"help: `{target.program} {crash}` runs it alone; once the fault is repaired, put "
                f"the file into {target.committed}",
                file=sys.stderr,
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", nargs="?", type=int, default=600, help="wall time of the run")
    parser.add_argument("--programs", type=Path, required=True, help="folder of the fuzzers")
    parser.add_argument("--work", type=Path, required=True, help="folder for what they find")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    parser.add_argument("--keep", action="store_true", help="update the committed corpus")
    options = parser.parse_args()
    if options.seconds < 1 or options.jobs < 1:
        parser.error("seconds and jobs are 1 or more")
    targets = [Target(name, options.programs / f"fuzz_{name}", options.work) for name in SEEDS]
    for target in targets:
        target.prepare()
    workers = shares(targets, options.jobs, options.seconds)
    print(f"{len(targets)} targets, {len(workers)} at once, {options.seconds} s", flush=True)
    threads = [threading.Thread(target=work, args=(slices,)) for slices in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if options.keep:
        for target in targets:
            target.shrink()
    report(targets)
    return int(any(target.failure for target in targets))


if __name__ == "__main__":
    sys.exit(main())
