# SPDX-License-Identifier: Apache-2.0
"""The plugin `backendkit.results`: any pytest suite's results as a file for a report card.

torchcts run --device foo --level 1 -p backendkit.results --results=torchcts.json
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from . import SCHEMA
from .about import about, as_json, command_line, why_not_writable, write_whole
from .included import SUITE
from .outcomes import Outcomes


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--results",
        metavar="FILE.json",
        help="write the results for a report card of the device tests, which includes them",
    )


def pytest_configure(config: pytest.Config) -> None:
    text = config.getoption("--results")
    if text is None or hasattr(config, "workerinput"):
        return
    path = config.invocation_params.dir / text
    why = "it has to end in .json" if path.suffix != ".json" else why_not_writable(path)
    if why:
        raise pytest.UsageError(f"--results {text} cannot be written: {why}")
    config.pluginmanager.register(_Results(config, path, _device(config)), "backendkit-results")


def _device(config: pytest.Config) -> str:
    import torch

    name = torch._C._get_privateuse1_backend_name()
    if not hasattr(torch, name):
        raise pytest.UsageError("--results: no backend is installed: `import torch` found none")
    return name


class _Results:
    def __init__(self, config: pytest.Config, path: Path, device: str) -> None:
        self._config = config
        self._path = path
        self._device = device
        self._outcomes = Outcomes()
        self._interrupted = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._outcomes.add(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._outcomes.add(report)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._outcomes.deselected += len(items)

    def pytest_keyboard_interrupt(self) -> None:
        self._interrupted = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self._outcomes.collected = session.testscollected
        tests = self._outcomes.summary()
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "kind": SUITE,
            "suite": "torchcts" if "torchcts" in sys.modules else "pytest",
            "about": about(self._device),
            "command": self._command(),
            "whole": ended and not self._interrupted and not tests["not_run"],
            "tests": tests,
        }
        write_whole(self._path, as_json(document))

    def _command(self) -> str:
        """What was typed: torchcts adds arguments of its own before it calls pytest."""
        if "torchcts" in sys.modules:
            words = ["torchcts", *sys.argv[1:]]
        else:
            words = ["python", "-m", "pytest", *map(str, self._config.invocation_params.args)]
        return command_line(self._device, words, dict(os.environ))
