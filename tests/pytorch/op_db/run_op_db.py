# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's operator samples on a device and compares all that a caller can see with the CPU.

    python run_op_db.py --device foo [--samples 2] [--dtypes float32,int64] [--kinds forward,out]
                        [--results op_db.json] [PATTERN...]

Each operator runs in a process of its own, so that a crash is one answer; after a crash, the other
dtypes get another process. The kinds of calls are

    forward, backward, twice   the operator, its gradients, and the gradients of those
    transposed, channels_last, stepped, expanded, conjugated, negative
                               forward and backward, with tensors that lie so in memory
    out, inplace               into given tensors: of the right kind and of wrong ones
    errors                     what PyTorch says has to raise

and what is compared are the values, dtype, shape, strides, storage offset, bits, layout and device
of results, what memory they share with the arguments, the arguments afterwards, the class and text
of errors and of warnings. Results that hold random numbers are compared but for their values.

Prints a line for each operator that differs, and totals. `differences.toml` has what differs and
why: what differs otherwise is a failure, and so is, where all that it tells of was run, an entry
that nothing needs. The exit status is 0 when all went as expected, else 1.
"""

from __future__ import annotations

import argparse
import fnmatch
import gc
import importlib.util
import os
import pickle
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Callable, NamedTuple

import tomllib

if importlib.util.find_spec("expecttest") is None:
    sys.exit("error: PyTorch's samples need the package `expecttest`")

import torch

sys.path.append(str(Path(__file__).resolve().parents[2] / "device"))
from looks import Difference, Look, differences, look
from report_card import SCHEMA
from report_card.about import about, as_json, command_line, why_not_writable, write_whole
from report_card.included import SAMPLES
from samples import LAYOUTS, Call, call_on, laid_out, outputs_to_write, tensors_in
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_methods_invocations import op_db

EXPECTED = Path(__file__).with_name("differences.toml")
SECONDS = 900  # for each dtype of an operator
DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "int64", "bool")
KINDS = ("forward", "backward", "twice", *LAYOUTS, "out", "inplace", "errors")

# Operators whose results hold whatever was in memory.
UNDEFINED = {
    f"{prefix}empty{suffix}"
    for prefix in ("", "new_")
    for suffix in ("", "_like", "_permuted", "_strided")
}
# PyTorch seeds such samples itself, always alike. Here the seed is ours: otherwise what they draw
# would not look random, and a device draws other numbers than the CPU.
common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)


class Answer(NamedTuple):
    """What came of one kind of calls of an operator."""

    kind: str
    calls: int
    passed: int
    random: bool
    differing: dict[str, tuple[int, str]]  # by aspect: how many calls, and how the first differs


def name_of(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def name_of_dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class Comparison:
    """Calls of one operator with one dtype, on the CPU and on a device."""

    def __init__(self, op: Any, dtype: torch.dtype, device: str) -> None:
        self.op = op
        self.dtype = dtype
        self.device = device
        self.seed_device = torch.get_device_module(device).manual_seed_all
        self.random = False

    def samples(self, wanted: int) -> list[Call]:
        gradients = (self.dtype.is_floating_point or self.dtype.is_complex) and bool(
            self.op.supports_dtype(self.dtype, "cpu") and self.op.supports_autograd
        )
        found = self.op.sample_inputs("cpu", self.dtype, requires_grad=gradients)
        return [Call(one.input, one.args, one.kwargs) for one in islice(found, wanted or None)]

    def both(self, call: Call, compute: Callable[[Call], Any], *, random: bool) -> list[Difference]:
        """How what `compute` makes of the call differs; of random numbers, between two calls on the
        device with the same seed."""
        self.run(call, compute, "cpu")  # PyTorch gives some warnings once in a process
        theirs = self.run(call, compute, "cpu")
        ours = self.run(call, compute, self.device)
        found = differences(ours, theirs, values=not random)
        if not random and any(one.aspect == "value" for one in found):
            random = self.is_random(call, compute, others=8)
            if random:
                found = differences(ours, theirs, values=False)
        if random and not found and self.op.name not in UNDEFINED:
            again = self.run(call, compute, self.device)
            found = [one for one in differences(again, ours) if one.aspect == "value"]
            found = [Difference("seed", f"the same seed: {one.text}") for one in found]
        return found

    def run(self, call: Call, compute: Callable[[Call], Any], device: str, seed: int = 7) -> Look:
        there = call_on(device, self.op.name, call)
        self.seed(seed)
        arguments = tensors_in(tuple(there))
        names_device = arguments or call.kwargs.get("device") is not None
        asked = device if names_device else "cpu"
        seen, _ = look(lambda: (compute(there), arguments), arguments, asked)
        return seen

    def seed(self, seed: int) -> None:
        """Does what `torch.manual_seed` does, but does not format the stack for each device that is
        not there."""
        torch.default_generator.manual_seed(seed)
        self.seed_device(seed)

    def is_random(self, call: Call, compute: Callable[[Call], Any], others: int) -> bool:
        """Whether one of so many other seeds has another result on the CPU."""
        if self.op.name in UNDEFINED:
            return True
        first = self.run(call, compute, "cpu")
        return any(
            one.aspect != "warnings"
            for number in range(others)
            for one in differences(first, self.run(call, compute, "cpu", 8 + number))
        )

    def forward(self, call: Call) -> Any:
        return self.op(call.input, *call.args, **call.kwargs)

    def inplace(self, call: Call) -> Any:
        with torch.no_grad():
            return self.op.get_inplace()(call.input, *call.args, **call.kwargs)

    def backward(self, call: Call) -> Any:
        return self._gradients(call, create_graph=False)

    def twice(self, call: Call) -> Any:
        first = [one for one in self._gradients(call, create_graph=True) if one is not None]
        leaves = [one for one in tensors_in(tuple(call)) if one.requires_grad]
        outputs = [one for one in first if one.requires_grad]
        if not outputs:
            return first
        return first, torch.autograd.grad(self._total(outputs), leaves, allow_unused=True)

    def _gradients(self, call: Call, create_graph: bool) -> Any:
        outputs = [one for one in tensors_in(self.forward(call)) if one.requires_grad]
        leaves = [one for one in tensors_in(tuple(call)) if one.requires_grad]
        if not (outputs and leaves):
            return []
        return torch.autograd.grad(
            self._total(outputs), leaves, allow_unused=True, create_graph=create_graph
        )

    @staticmethod
    def _total(outputs: list[torch.Tensor]) -> torch.Tensor:
        dense = [one.to_dense() if one.layout != torch.strided else one for one in outputs]
        real = [
            torch.view_as_real(one.resolve_conj()) if one.is_complex() else one for one in dense
        ]
        return sum(one.sum() * (1 + number) for number, one in enumerate(real))

    def into_given(self, call: Call) -> Iterator[tuple[Call, Callable[[Call], Any]]]:
        with torch.no_grad():
            there = call_on("cpu", self.op.name, call)
            self.seed(7)
            try:
                result = self.forward(there)
            except Exception:  # it has no result that one could be given for
                return
        if not tensors_in(result):
            return

        def compute(given: Call) -> Any:
            with torch.no_grad():
                return self.op(given.input, *given.args, **given.kwargs)

        for _, out in outputs_to_write(result):
            yield Call(call.input, call.args, {**call.kwargs, "out": out}), compute

    def calls(self, kind: str, samples: list[Call]) -> Iterator[tuple[Call, Callable[..., Any]]]:
        """The calls of a kind, with what is to be done with each."""
        has_gradient = any(one.requires_grad for call in samples for one in tensors_in(tuple(call)))
        if kind == "errors":
            if self.op.error_inputs_func is None or self.dtype != torch.float32:
                return
            for one in self.op.error_inputs("cpu"):
                sample = one.sample_input
                yield Call(sample.input, sample.args, sample.kwargs), self.forward
        elif kind == "out":
            if self.op.supports_out:
                for call in samples:
                    yield from self.into_given(call)
        elif kind == "inplace":
            if self.op.get_inplace() is not None:
                yield from ((call, self.inplace) for call in samples)
        elif kind in LAYOUTS:
            for call in samples:
                changed = laid_out(call, kind)
                if changed is not None:
                    yield changed, self.backward if has_gradient else self.forward
                    if has_gradient:
                        yield changed, self.forward
        elif kind == "forward" or has_gradient:
            if kind != "twice" or self.op.supports_gradgrad:
                compute = {
                    "forward": self.forward,
                    "backward": self.backward,
                    "twice": self.twice,
                }[kind]
                yield from ((call, compute) for call in samples)

    def answer(self, kind: str, samples: list[Call]) -> Answer:
        calls = passed = 0
        differing: dict[str, tuple[int, str]] = {}
        for call, compute in self.calls(kind, samples):
            found = self.both(call, compute, random=self.random)
            calls += 1
            passed += not found
            for aspect in dict.fromkeys(one.aspect for one in found):
                count, text = differing.get(aspect, (0, ""))
                text = text or next(one.text for one in found if one.aspect == aspect)
                differing[aspect] = (count + 1, text[:400])
        return Answer(kind, calls, passed, self.random, differing)


def check(
    op: Any, dtype: torch.dtype, device: str, wanted: int, kinds: list[str]
) -> Iterator[Answer]:
    comparison = Comparison(op, dtype, device)
    samples = comparison.samples(wanted)
    comparison.random = any(
        comparison.is_random(call, comparison.forward, others=1) for call in samples[:4]
    )
    for kind in kinds:
        yield comparison.answer(kind, samples)


Key = tuple[str, str]  # an operator and a dtype
Result = tuple[Key, list[Answer], str]  # the text says how the process ended if not well


@dataclass
class Child:
    """A process that checks one operator with some dtypes, one after another, kind by kind."""

    op: Any
    dtypes: list[torch.dtype]
    kinds: int
    process: int
    pipe: int
    before: str = ""  # how the process ended that was to check these dtypes before
    started: float = field(default_factory=time.monotonic)
    text: bytearray = field(default_factory=bytearray)
    answers: list[Answer] = field(default_factory=list)
    problem: str = ""

    def read(self) -> bool:
        """Reads what is there; whether the process has closed its end."""
        part = os.read(self.pipe, 1 << 16)
        self.text += part
        while len(self.text) >= 8:
            size = int.from_bytes(self.text[:8], "little")
            if len(self.text) < 8 + size:
                break
            self.answers.append(Answer(*pickle.loads(self.text[8 : 8 + size])))
            del self.text[: 8 + size]
            if len(self.answers) % self.kinds == 0:
                self.started = time.monotonic()  # of the next dtype
        return not part

    @property
    def late(self) -> bool:
        return time.monotonic() - self.started > SECONDS

    def finish(self) -> tuple[list[Result], list[torch.dtype], str]:
        """The result for each dtype that it checked, the dtypes for another process, and `before`
        of that process."""
        if self.late:
            os.kill(self.process, signal.SIGKILL)
            self.problem = f"not done after {SECONDS} s"
        os.close(self.pipe)
        _, status = os.waitpid(self.process, 0)
        done, rest = divmod(len(self.answers), self.kinds)
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            self.problem = self.problem or f"killed by {name}"
        elif os.WEXITSTATUS(status):
            self.problem = f"exit status {os.WEXITSTATUS(status)}"
        elif done < len(self.dtypes):
            self.problem = "it ended early"
        # Before its first answer, a dtype may suffer from the one before: another process tells.
        unclear = bool(self.problem) and rest == 0 and 0 < done < len(self.dtypes)
        checked = min(done + (bool(self.problem) and not unclear), len(self.dtypes))
        problems = [""] * checked
        if self.problem and not unclear:
            problems[-1] = self.problem
        elif self.before and problems:
            problems[0] = f"after another dtype: {self.before}"
        results = []
        for number, text in enumerate(problems):
            key = (name_of(self.op), name_of_dtype(self.dtypes[number]))
            first = number * self.kinds
            results.append((key, self.answers[first : first + self.kinds], text))
        return results, self.dtypes[checked:], self.problem if unclear else ""


def start(op: Any, dtypes: list[torch.dtype], before: str, options: argparse.Namespace) -> Child:
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return Child(op, dtypes, len(options.kinds), process, reader, before)
    os.close(reader)
    status = 1
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        if not options.verbose:
            os.dup2(silence, 2)
        torch.set_num_threads(1)
        for dtype in dtypes:
            for answer in check(op, dtype, options.device, options.samples, options.kinds):
                text = pickle.dumps(tuple(answer))
                os.write(writer, len(text).to_bytes(8, "little") + text)
        status = 0
    finally:
        if status and options.verbose:
            import traceback

            traceback.print_exc()
        os._exit(status)


class Cause(NamedTuple):
    """An entry of differences.toml: what differs, and why."""

    file: str
    cause: str
    operators: list[str]  # patterns
    aspects: list[str]
    kinds: list[str]
    dtypes: list[str]

    def covers(self, key: Key, kind: str, aspect: str) -> bool:
        return (
            aspect in self.aspects
            and (not self.kinds or kind in self.kinds)
            and (not self.dtypes or key[1] in self.dtypes)
            and self.names(key[0])
        )

    def names(self, operator: str) -> bool:
        return any(fnmatch.fnmatchcase(operator, pattern) for pattern in self.operators)


def read_causes(path: Path) -> list[Cause]:
    entries = tomllib.loads(path.read_text()).get("difference", [])
    return [
        Cause(
            path.name, one["cause"], one["operators"], one["aspects"], one.get("kinds", []),
            one.get("dtypes", []),
        )
        for one in entries
    ]  # fmt: skip


def table(causes: list[Cause]) -> str:
    """The causes as the table of docs/operators.md."""
    lines = ["| operators | calls | what differs | why |", "|---|---|---|---|"]
    for one in causes:
        operators = ", ".join(f"`{name}`" for name in one.operators)
        where = ", ".join(one.kinds) or "all"
        where += f"; {', '.join(one.dtypes)}" if one.dtypes else ""
        lines.append(f"| {operators} | {where} | {', '.join(one.aspects)} | {one.cause} |")
    return "\n".join(lines)


class Report:
    """What came of all operators."""

    def __init__(self, causes: list[Cause]) -> None:
        self.causes = causes
        self.used: set[int] = set()
        self.counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.crashed = 0
        self.wrong = 0
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        """A line of what is not as expected."""
        self.lines.append(line)
        print(line)

    def add(self, key: Key, answers: list[Answer], problem: str) -> None:
        name, dtype = key
        if problem:
            after = f" after {answers[-1].kind}" if answers else ""
            self.say(f"crashed   {name} {dtype}{after}: {problem}")
            self.crashed += 1
            self.wrong += 1
        for answer in answers:
            counts = self.counts[dtype, answer.kind]
            counts["calls"] += answer.calls
            counts["passed"] += answer.passed
            counts["operators"] += answer.calls > 0
            counts["random"] += answer.calls > 0 and answer.random
            unknown = [
                (aspect, count, text)
                for aspect, (count, text) in answer.differing.items()
                if not self.known(key, answer.kind, aspect)
            ]
            for aspect, count, text in unknown:
                what = f"{answer.kind}, {aspect}, {count} times: {text}"
                self.say(f"differs   {name} {dtype} {what}")
            self.wrong += bool(unknown)
            counts["failed"] += answer.calls - answer.passed if unknown else 0
            counts["known"] += 0 if unknown else answer.calls - answer.passed

    def known(self, key: Key, kind: str, aspect: str) -> bool:
        found = [i for i, one in enumerate(self.causes) if one.covers(key, kind, aspect)]
        self.used.update(found)
        return bool(found)

    def unneeded(self, names: set[str], dtypes: set[str]) -> list[Cause]:
        """Those of which all calls were made, and none differs so."""
        every = {name_of(op) for op in op_db}
        return [
            one
            for number, one in enumerate(self.causes)
            if number not in self.used
            and set(one.dtypes or DTYPES) <= dtypes
            and {name for name in every if one.names(name)} <= names
        ]

    def figures(self, dtypes: list[str], kinds: list[str]) -> str:
        """Of each kind and dtype the calls, and how many of them differ for a known cause."""

        def cell(dtype: str, kind: str) -> str:
            counts = self.counts[dtype, kind]
            return f"{counts['calls']}, {counts['known']}" if counts["calls"] else "-"

        lines = [f"| calls | {' | '.join(dtypes)} |", "|---" * (len(dtypes) + 1) + "|"]
        for kind in kinds:
            cells = " | ".join(cell(dtype, kind) for dtype in dtypes)
            lines.append(f"| {kind} | {cells} |")
        return "\n".join(lines)

    def document(self, device: str, samples: int) -> dict[str, Any]:
        """What a report card includes."""
        words = ["python", "tests/pytorch/op_db/run_op_db.py", *sys.argv[1:]]
        names = {"calls": "made"}
        columns = ("operators", "calls", "passed", "known", "failed")
        return {
            "schema": SCHEMA,
            "kind": SAMPLES,
            "about": about(device),
            "command": command_line(device, words, os.environ),
            "samples": samples,
            "rows": [
                {"dtype": dtype, "calls": kind}
                | {names.get(column, column): counts[column] for column in columns}
                for (dtype, kind), counts in sorted(self.counts.items())
                if counts["calls"]
            ],
            "crashed": self.crashed,
            "wrong": sorted(self.lines),
        }

    def totals(self, dtypes: list[str], kinds: list[str]) -> None:
        for dtype in dtypes:
            for kind in kinds:
                counts = self.counts[dtype, kind]
                if counts["calls"]:
                    print(
                        f"{dtype} {kind}: {counts['calls']} calls of {counts['operators']} "
                        f"operators ({counts['random']} random): {counts['passed']} passed, "
                        f"{counts['known']} differ for a known cause, {counts['failed']} failed"
                    )
        print(f"{self.crashed} crashed")


def run_all(
    tasks: list[tuple[Any, list[torch.dtype]]], options: argparse.Namespace
) -> Iterator[Result]:
    waiting, running = [(*task, "") for task in reversed(tasks)], []
    while waiting or running:
        while waiting and len(running) < options.jobs:
            running.append(start(*waiting.pop(), options))
        ready, _, _ = select.select([child.pipe for child in running], [], [], 1)
        for child in list(running):
            ended = child.pipe in ready and child.read()
            if ended or child.late:
                running.remove(child)
                results, rest, before = child.finish()
                if rest:
                    waiting.append((child.op, rest, before))
                yield from results


def main() -> int:
    parser = argparse.ArgumentParser(description="PyTorch's operator samples, device against CPU")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="operators, as `fft.*`")
    parser.add_argument("--device", default="foo", help="default: foo")
    parser.add_argument(
        "--samples", type=int, default=2, help="for each operator, 0 for all; default: 2"
    )
    parser.add_argument("--dtypes", default="float32,int64", help="default: float32,int64")
    parser.add_argument("--kinds", default=",".join(KINDS), help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument(
        "--expected", type=Path, action="append", help="what differs, and why (may be repeated)"
    )
    parser.add_argument("--figures", action="store_true", help="prints a table of totals besides")
    parser.add_argument("--table", action="store_true", help="prints what differs, and why, only")
    parser.add_argument("--results", type=Path, help="writes JSON that a report card includes")
    parser.add_argument("--verbose", action="store_true", help="shows what processes write")
    options = parser.parse_args()
    causes = [one for path in options.expected or [EXPECTED] for one in read_causes(path)]
    if options.table:
        print(table(causes))
        return 0
    why = "" if options.results is None else why_not_writable(options.results)
    if why:
        parser.error(f"{options.results} cannot be written: {why}")
    device, options.device = options.device, str(torch.device(options.device, 0))
    options.kinds = options.kinds.split(",")
    if not set(options.kinds) <= set(KINDS):
        parser.error(f"the kinds are {', '.join(KINDS)}")
    dtypes = options.dtypes.split(",")
    tasks = []
    for op in op_db:
        every = [getattr(torch, dtype) for dtype in dtypes]
        supported = [dtype for dtype in every if op.supports_dtype(dtype, "cpu")]
        if supported and (
            not options.patterns
            or any(fnmatch.fnmatch(name_of(op), pattern) for pattern in options.patterns)
        ):
            tasks.append((op, supported))
    names = {name_of(op) for op, _ in tasks}
    report = Report(causes)
    gc.freeze()  # or each process looks through all of PyTorch for garbage, and copies its memory
    for key, answers, problem in run_all(tasks, options):
        report.add(key, answers, problem)
    report.totals(dtypes, options.kinds)
    if options.figures:
        print(report.figures(dtypes, options.kinds))
    everything = not options.samples and set(options.kinds) == set(KINDS)
    for one in report.unneeded(names, set(dtypes)) if everything else []:
        report.say(f"unneeded  {one.file}: {one.cause}: {', '.join(one.operators)}")
        report.wrong += 1
    if options.results is not None:
        write_whole(options.results, as_json(report.document(device, options.samples)))
    return 1 if report.wrong or not tasks else 0


if __name__ == "__main__":
    sys.exit(main())
