# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's operator samples on a device and compares them with the CPU.

    python run_op_db.py --device foo [--samples 2] [--dtypes float32,int64] [PATTERN...]

Each operator runs in a process of its own, for each dtype, so that a crash is one answer. For
float32 the gradients are compared too. An operator that draws random numbers is compared by
shapes, dtypes and by giving the same numbers for the same seed. Prints a line for each operator
that did not pass, and totals. `expected.json` names what cannot pass; an operator there that
passes is a failure as well. The exit status is 0 when all went as expected, else 1.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import pickle
import re
import select
import signal
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

if importlib.util.find_spec("expecttest") is None:
    sys.exit("error: PyTorch's samples need the package `expecttest`")

import torch
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

EXPECTED = Path(__file__).with_name("expected.json")
SECONDS = 300  # for one operator
PASSED, FAILED, CRASHED, SKIPPED = "passed", "failed", "crashed", "skipped"

# Operators whose results hold whatever was in memory.
UNDEFINED = re.compile(r"(new_)?empty(_like|_permuted|_strided)?$")
# Operators of which PyTorch wants all tensors but the first on the CPU, on every device.
ARGUMENTS_ON_CPU = {"tensor_split"}
# PyTorch seeds such samples itself, always alike. Here the seed is ours: otherwise what they draw
# would not look random, and a device draws other numbers than the CPU.
common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)


@dataclass(frozen=True)
class Answer:
    """How an operator did with a dtype, and the reason unless it passed."""

    status: str
    reason: str = ""
    random: bool = False


def name_of(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def moved(value: Any, device: str) -> Any:
    """The same arguments on a device, as leaves of a graph of their own."""

    def move(one: Any) -> Any:
        if isinstance(one, torch.Tensor):
            return one.detach().to(device, copy=True).requires_grad_(one.requires_grad)
        if isinstance(one, torch.device) or one == "cpu":
            return torch.device(device)
        return one

    return pytree.tree_map(move, value)


def tensors_in(value: Any) -> list[torch.Tensor]:
    return [one for one in pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]


def run_sample(op: Any, sample: Any, device: str, seed: int, backward: bool) -> tuple[Any, Any]:
    """The results, and the gradients of all floating inputs, of a sample on a device."""
    inputs = moved(sample.input, device)
    elsewhere = "cpu" if op.name in ARGUMENTS_ON_CPU else device
    arguments, options = moved((sample.args, sample.kwargs), elsewhere)
    if "device" in options:
        options["device"] = device
    torch.manual_seed(seed)
    result = op(inputs, *arguments, **options)
    outputs = [one for one in tensors_in(result) if one.requires_grad]
    leaves = [one for one in tensors_in((inputs, arguments, options)) if one.requires_grad]
    if not (backward and outputs and leaves):
        return result, []
    outputs = [one.to_dense() if one.layout != torch.strided else one for one in outputs]
    total = sum((one.abs() if one.is_complex() else one).sum() for one in outputs)
    return result, list(torch.autograd.grad(total, leaves, allow_unused=True))


def compare(actual: Any, expected: Any, where: str) -> None:
    """Raises an AssertionError where two results differ."""
    ours, theirs = pytree.tree_leaves(actual), pytree.tree_leaves(expected)
    assert len(ours) == len(theirs), f"{where}: {len(ours)} values, not {len(theirs)}"
    for number, (one, two) in enumerate(zip(ours, theirs)):
        label = f"{where} {number}"
        if not isinstance(two, torch.Tensor) or not isinstance(one, torch.Tensor):
            if isinstance(two, (float, complex)):
                torch.testing.assert_close(one, two, equal_nan=True)
            else:
                same = one == two or isinstance(two, torch.device)
                assert same, f"{label}: {one}, not {two}"
            continue
        compare_kind(one, two, label)
        assert one.is_conj() == two.is_conj(), f"{label}: the conjugate bit differs"
        close = {"rtol": 1e-4, "atol": 1e-4, "equal_nan": True}
        try:
            torch.testing.assert_close(one.detach().cpu(), two.detach().cpu(), **close)
        except AssertionError as problem:
            raise AssertionError(f"{label}: {problem}") from None


def compare_kind(one: torch.Tensor, two: torch.Tensor, label: str) -> None:
    for attribute in ("layout", "dtype", "shape"):
        ours, theirs = getattr(one, attribute), getattr(two, attribute)
        assert ours == theirs, f"{label}: {attribute} {ours}, not {theirs}"


def differs(actual: Any, expected: Any) -> bool:
    try:
        compare(actual, expected, "")
    except AssertionError:
        return True
    return False


def check_sample(op: Any, sample: Any, device: str, backward: bool) -> bool:
    """Compares a sample; returns whether its results are random, and compares their kind then."""
    expected, expected_grads = run_sample(op, sample, "cpu", 7, backward)
    actual, grads = run_sample(op, sample, device, 7, backward)
    if UNDEFINED.match(op.name):
        for number, (one, two) in enumerate(zip(tensors_in(actual), tensors_in(expected))):
            compare_kind(one, two, f"result {number}")
        return True
    if differs(run_sample(op, sample, "cpu", 8, False)[0], expected):
        for number, (one, two) in enumerate(zip(tensors_in(actual), tensors_in(expected))):
            compare_kind(one, two, f"result {number}")
        again, _ = run_sample(op, sample, device, 7, False)
        compare(again, actual, "the same seed: result")
        return True
    for one, two in zip(tensors_in(actual), tensors_in(expected)):
        where = torch.device(device) if two.device.type == "cpu" else two.device
        assert one.device.type == where.type, f"a result is on {one.device}"
    compare(actual, expected, "result")
    compare(grads, expected_grads, "gradient")
    return False


def works_on_cpu(op: Any, sample: Any, backward: bool) -> str:
    """Empty where the CPU computes a sample; else what it says."""
    try:
        run_sample(op, sample, "cpu", 7, backward)
    except Exception as problem:  # whatever the CPU says, the device need not do better
        return f"{type(problem).__name__}: {problem}".partition("\n")[0]
    return ""


def check(op: Any, dtype: torch.dtype, device: str, wanted: int) -> Answer:
    backward = dtype.is_floating_point and op.supports_autograd
    if not op.supports_dtype(dtype, "cpu"):
        return Answer(SKIPPED, "the CPU has no such dtype")
    done, random, complaint = 0, False, ""
    for sample in islice(op.sample_inputs("cpu", dtype, requires_grad=backward), wanted):
        complaint = works_on_cpu(op, sample, backward)
        if complaint:
            continue
        try:
            random |= check_sample(op, sample, device, backward)
        except Exception as problem:  # an answer as well: the report goes on
            return Answer(FAILED, f"{type(problem).__name__}: {problem}".replace("\n", " "))
        done += 1
    if not done:
        return Answer(SKIPPED, f"fails on the CPU: {complaint}" if complaint else "no samples")
    return Answer(PASSED, random=random)


@dataclass
class Child:
    """A process that checks one operator."""

    key: tuple[str, str]
    process: int
    answers: int  # the end of a pipe
    started: float


def start(op: Any, dtype: torch.dtype, device: str, samples: int) -> Child:
    reader, writer = os.pipe()
    key = (name_of(op), str(dtype).removeprefix("torch."))
    process = os.fork()
    if process:
        os.close(writer)
        return Child(key, process, reader, time.monotonic())
    os.close(reader)
    status = 1
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        answer = check(op, dtype, device, samples)
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(answer, pipe)
        status = 0
    finally:
        os._exit(status)


def finish(child: Child) -> Answer:
    """The answer of a child that has closed its pipe, or that has had its time."""
    late = time.monotonic() - child.started > SECONDS
    if late:
        os.kill(child.process, signal.SIGKILL)
    with os.fdopen(child.answers, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child.process, 0)
    if late:
        return Answer(CRASHED, f"not done after {SECONDS} s")
    if os.WIFSIGNALED(status):
        return Answer(CRASHED, f"killed by {signal.Signals(os.WTERMSIG(status)).name}")
    if os.WEXITSTATUS(status):
        return Answer(CRASHED, f"exit status {os.WEXITSTATUS(status)}")
    return pickle.loads(text)


def run_all(tasks: list[tuple[Any, torch.dtype]], options: argparse.Namespace) -> dict:
    """The answers by operator and dtype, in the order of the tasks."""
    waiting, running, answers = list(reversed(tasks)), [], {}
    while waiting or running:
        while waiting and len(running) < options.jobs:
            running.append(start(*waiting.pop(), options.device, options.samples))
        ready, _, _ = select.select([child.answers for child in running], [], [], 1)
        for child in list(running):
            if child.answers in ready or time.monotonic() - child.started > SECONDS:
                answers[child.key] = finish(child)
                running.remove(child)
    return answers


def read_expected(path: Path, keys: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What cannot pass, with the cause, among the operators that are run."""
    entries = json.loads(path.read_text())
    causes = {
        (entry["operator"], dtype): entry["cause"] for entry in entries for dtype in entry["dtypes"]
    }
    return {key: cause for key, cause in causes.items() if key in keys}


def main() -> int:
    parser = argparse.ArgumentParser(description="PyTorch's operator samples, device against CPU")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="operators, as `fft.*`")
    parser.add_argument("--device", default="foo", help="default: foo")
    parser.add_argument("--samples", type=int, default=2, help="for each operator; default: 2")
    parser.add_argument("--dtypes", default="float32,int64", help="default: float32,int64")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--expected", type=Path, default=EXPECTED, help="what cannot pass")
    options = parser.parse_args()
    dtypes = [getattr(torch, name) for name in options.dtypes.split(",")]
    tasks = [
        (op, dtype)
        for op in op_db
        for dtype in dtypes
        if not options.patterns
        or any(fnmatch.fnmatch(name_of(op), pattern) for pattern in options.patterns)
    ]
    answers = run_all(tasks, options)
    expected = read_expected(options.expected, set(answers))
    wrong = 0
    for (name, dtype), answer in sorted(answers.items()):
        cause = expected.get((name, dtype))
        bad = answer.status in (FAILED, CRASHED)
        if bad and cause is not None:
            print(f"expected  {name} {dtype}: {cause}")
        elif bad or answer.status == SKIPPED:
            print(f"{answer.status:<9} {name} {dtype}: {answer.reason[:400]}")
        elif cause is not None:
            print(f"failed    {name} {dtype}: passes, but {options.expected.name} says it cannot")
        elif answer.random:
            print(f"random    {name} {dtype}: compared by shape, dtype and seed")
        wrong += bad == (cause is None) and (bad or cause is not None)
    for dtype in options.dtypes.split(","):
        of_dtype = {key: one for key, one in answers.items() if key[1] == dtype}
        counts = Counter(one.status for one in of_dtype.values())
        random = sum(one.random for one in of_dtype.values())
        known = sum(key in expected for key in of_dtype)
        print(
            f"{dtype}: {counts[PASSED]} passed ({random} random), {counts[FAILED]} failed, "
            f"{counts[CRASHED]} crashed, {counts[SKIPPED]} skipped, {known} expected to fail; "
            f"{len(of_dtype)} operators"
        )
    return 1 if wrong or not answers else 0


if __name__ == "__main__":
    sys.exit(main())
