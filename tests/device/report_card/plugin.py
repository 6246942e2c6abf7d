# SPDX-License-Identifier: Apache-2.0
"""The options --report and --include of the device tests, for pytest with or without xdist."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from . import card, included
from .about import ARGUMENTS, about, as_json, command_line, why_not_writable, write_whole
from .measure import PARTS, measure
from .outcomes import Outcomes

_NOTHING: dict[str, Any] = {**dict.fromkeys(PARTS), "problem": ""}


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(
        "--report",
        action="append",
        default=[],
        metavar="FILE",
        help="write a report card, as a page (.html) or as data (.json); may be repeated",
    )
    parser.addoption(
        "--include",
        action="append",
        default=[],
        metavar="FILE",
        help="show the results of another run in the report card; may be repeated",
    )


def register(config: pytest.Config, variables: dict[str, str]) -> None:
    """Checks the options and adds what makes the card; `variables` are those of the user."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(_Worker(config), "report-card-worker")
        return
    paths = [_place(config, text) for text in config.getoption("--report")]
    files = config.getoption("--include")
    if not paths:
        if files:
            raise pytest.UsageError("--include needs --report: it adds to a report card")
        return
    if config.getoption("collectonly"):
        raise pytest.UsageError("--report needs a run: leave out --collect-only")
    try:
        results = [
            one for text in files for one in included.read(config.invocation_params.dir / text)
        ]
        about(config.getoption("--device"))
    except (included.WrongFile, ValueError) as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(ReportCard(config, paths, results, variables), "report-card")


def _place(config: pytest.Config, text: str) -> Path:
    path = config.invocation_params.dir / text
    if path.suffix not in (".html", ".json"):
        raise pytest.UsageError(f"--report {text}: the file's name has to end in .html or .json")
    why = why_not_writable(path)
    if why:
        raise pytest.UsageError(f"--report {text} cannot be written: {why}")
    return path


class _Worker:
    """Tells xdist's controller what reports do not."""

    def __init__(self, config: pytest.Config) -> None:
        self._config: Any = config
        self._deselected = 0

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._deselected += len(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._config.workeroutput["report_card_deselected"] = self._deselected


class ReportCard:
    """Gathers the results of a run and writes the card, before the tests and after them.

    So a run that a crash ends leaves a card that says so, and not that of an earlier run.
    """

    def __init__(
        self,
        config: pytest.Config,
        paths: list[Path],
        results: list[dict[str, Any]],
        variables: dict[str, str],
    ) -> None:
        self._paths = paths
        self._included = results
        self._variables = variables
        self._device = config.getoption("--device")
        typed = os.environ.get(ARGUMENTS)
        words = list(config.invocation_params.args) if typed is None else json.loads(typed)
        module = "pytest" if typed is None else "backendkit.device_tests"
        self._command = command_line(
            self._device, ["python", "-m", module, *map(str, words)], variables
        )
        self._named_tests = any("::" in str(argument) for argument in config.args)
        self._measured = _NOTHING
        self._outcomes = Outcomes()
        self._interrupted = False
        self._begun = False  # before that, an earlier card stays as it is
        self._problem = ""

    # --- what pytest tells ---

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._outcomes.add(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._outcomes.add(report)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._outcomes.deselected += len(items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {}).get("report_card_deselected", 0)
        self._outcomes.deselected = max(self._outcomes.deselected, told)

    def pytest_keyboard_interrupt(self) -> None:
        self._interrupted = True

    # --- what is written, and when ---

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        self._measured = measure(self._device, self._variables)
        self._write("unfinished")
        self._begun = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if not self._begun:
            return
        self._outcomes.collected = session.testscollected
        if self._interrupted:
            end = "interrupted"
        elif exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            end = "broken"
        else:
            end = "finished"
        try:
            self._write(end)
        except OSError as error:
            self._problem = str(error)
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def _write(self, end: str) -> None:
        from .page import page

        tests = self._outcomes.summary(card.SUITE)
        document = card.make_card(
            about(self._device), self._command, self._measured, tests, end, self._named_tests,
            self._included,
        )  # fmt: skip
        for path in self._paths:
            write_whole(path, page(document) if path.suffix == ".html" else as_json(document))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._problem:
            terminalreporter.write_line(f"error: no report card: {self._problem}", red=True)
            return
        if not self._begun:
            return
        names = ", ".join(str(path) for path in self._paths)
        terminalreporter.write_line(f"report card: {names}")
