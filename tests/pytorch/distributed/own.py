# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own tests of torch.distributed, which are in its wheel, on a device.

They are written for CUDA and NCCL, and also run with other process groups. Here their text says
the device and its process group instead. Each test runs in processes of its own, forked from one
that has imported PyTorch, and writes a line of JSON to `--output`: name, outcome, why.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import re
import sys
import tempfile
import types
import unittest
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

HELPERS = "torch.testing._internal.common_distributed"
TESTS = "torch.testing._internal.distributed.distributed_test"
LIMIT = 200  # seconds of a test


def translated(text: str, device: str) -> str:
    """PyTorch's tests with the name of a device where they name CUDA."""
    group = f"{device}ccl"
    for pattern, instead in (
        (r"\bimport torch\.cuda(\.nccl)?\n", "import torch\n"),
        (r"\btorch\.cuda\.(?!amp|nccl)", f"torch.{device}."),
        (r"\.cuda\(", f".{device}("),
        (r"\bis_cuda\b", f"is_{device}"),
        (r"(?<=[\"'])cuda(?=[\"':])", device),
        (r"(?<=[\"'])nccl(?=[\"':])", group),
        (r"\bBackend\.NCCL\b", f"Backend.{group.upper()}"),
        (r"\bdist\.is_nccl_available\(\)", "True"),
        (r"\bDeviceType\.CUDA\b", "DeviceType.PrivateUse1"),
        (r"\bProfilerActivity\.CUDA\b", "ProfilerActivity.PrivateUse1"),
    ):
        text = re.sub(pattern, instead, text)
    return text


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module of PyTorch translated, and keeps no byte code of it."""

    device = ""

    def get_code(self, fullname: str) -> types.CodeType:
        text = self.get_data(self.path).decode()
        return compile(translated(text, self.device), self.path, "exec", dont_inherit=True)


class Finder(importlib.abc.MetaPathFinder):
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = None
        if name in (HELPERS, TESTS):
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            assert spec is not None and spec.origin is not None
            spec.loader = Loader(name, spec.origin)
        return spec


def loaded(device: str) -> Any:
    """PyTorch's tests as a class, each of whose tests starts its ranks."""
    Loader.device = device
    sys.meta_path.insert(0, Finder())
    helpers: Any = importlib.import_module(HELPERS)
    helpers.TEST_CUDA = True  # what it asks of CUDA, it asks of the device
    helpers.TIMEOUT_DEFAULT = LIMIT
    helpers.TIMEOUT_OVERRIDE.clear()
    tests: Any = importlib.import_module(TESTS)
    import torch

    class Own(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    return Own


class Outcomes(unittest.TestResult):
    """How the last test ended, and why."""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.last = ("passed", "")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.last = ("skipped", reason)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.last = ("failed", str(err[1]))

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self.last = ("failed", str(err[1]))


@contextmanager
def kept_output() -> Iterator[IO[str]]:
    """A file that gets what this process and those that it starts write."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = [os.dup(number) for number in (1, 2)]
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        try:
            yield file
        finally:
            for number, kept in zip((1, 2), before):
                os.dup2(kept, number)
                os.close(kept)


def why(text: str) -> str:
    """The line of a failure that says most: the last exception of a rank."""
    raised = re.findall(r"(?m)^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt): .+$", text)
    raised = [line for line in raised if not line.startswith("RuntimeError: Process ")] or raised
    return raised[-1] if raised else text.strip().splitlines()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="foo")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("names", nargs="*", help="of tests; all by default")
    options = parser.parse_args()
    os.environ["BACKEND"] = f"{options.device}ccl"
    os.environ["WORLD_SIZE"] = str(options.ranks)
    cases = loaded(options.device)
    names = options.names or unittest.TestLoader().getTestCaseNames(cases)
    outcomes = Outcomes()
    with options.output.open("w") as file:
        for name in names:
            with kept_output() as shown:
                cases(name).run(outcomes)
                shown.seek(0)
                text = shown.read()
            outcome, reason = outcomes.last
            reason = why(f"{reason}\n{text}") if outcome == "failed" else reason
            file.write(json.dumps([name, outcome, reason]) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
