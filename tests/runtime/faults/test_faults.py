# SPDX-License-Identifier: Apache-2.0
"""Whatever a Runtime throws, returns or delays is an error that names it, and corrupts nothing.

All of it runs under AddressSanitizer. `pytest tests/runtime/faults --update` writes docs/faults.md
anew.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from faults_page import COLUMNS, applies, page
from project import build

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = ROOT / "docs" / "faults.md"
#: What may come of a fault, by the words of the page.
ALLOWED = {"error", "warning", "right", "waits", "out of memory", "no device"}


def functions() -> list[str]:
    """Those of a Runtime, as check_runtime.h lists them."""
    header = ROOT / "include" / "backendkit" / "device" / "check_runtime.h"
    text = header.read_text(encoding="utf-8")
    required = re.findall(r'"Runtime needs: static [^(]*?(\w+)\(', text)
    return required + re.findall(r"BACKENDKIT_CHECK_OPTIONAL\(Has\w+, (\w+),", text)


class Checked:
    """A Python that has the faulty backend, under AddressSanitizer."""

    def __init__(self, python: str, site: Path) -> None:
        self.python = python
        self.site = site
        self.log = site.parent / "asan.log"  # and the number of the process

    def run(self, *arguments: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
        def library(name: str) -> str:
            ask = [os.environ.get("CXX", "c++"), f"-print-file-name={name}"]
            return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()

        environment = {
            # Python itself has no libstdc++, where AddressSanitizer looks for what throws.
            "LD_PRELOAD": f"{library('libasan.so')} {library('libstdc++.so.6')}",
            "ASAN_OPTIONS": f"detect_leaks=0:quarantine_size_mb=64:log_path={self.log}",
            "FAULTS_LOG": str(self.log),
            "PYTHONPATH": os.pathsep.join([str(self.site), str(HERE)]),
        }
        return subprocess.run(
            [self.python, *[str(one) for one in arguments]],
            env={**os.environ, **environment},
            input=given,
            capture_output=True,
            text=True,
            check=False,
            cwd=HERE,
        )

    def reports(self) -> str:
        """What AddressSanitizer said of the processes that it ended."""
        logs = sorted(self.log.parent.glob(f"{self.log.name}.*"))
        return "".join(log.read_text(errors="replace")[:8000] for log in logs)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    python = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    package = Path(os.environ["BACKENDKIT_BUILD"])
    flags = "-O1 -g1 -fsanitize=address -fno-omit-frame-pointer"
    folder = tmp_path_factory.mktemp("faulty")
    return Checked(python, build(os.environ["BACKENDGEN"], package, python, folder, flags))


@pytest.fixture(scope="module")
def results(checked: Checked) -> dict[tuple[str, str, bool], dict]:
    """What came of each fault of each function, at the first use and later."""
    cases = [
        (function, fault, later)
        for function in functions()
        for fault in COLUMNS
        if applies(function, fault)
        for later in (False, True)
    ]
    done = checked.run("runner.py", given=json.dumps(cases))
    assert done.returncode == 0, done.stderr[-8000:]
    return dict(zip(cases, json.loads(done.stdout), strict=True))


def test_every_function_has_faults() -> None:
    assert len(functions()) == 45
    assert all(applies(function, "std") for function in functions())


def test_no_process_ends(results: dict) -> None:
    ended = {case: one["text"] for case, one in results.items() if "ended" in one}
    assert ended == {}


def test_the_cause_is_told(results: dict) -> None:
    """The use says which function failed, and so does each step of a program that goes on."""
    wrong = {
        case: one
        for case, one in results.items()
        if one["outcome"] not in ALLOWED or (one["unnamed"] and one["outcome"] != "no device")
    }
    assert wrong == {}


def test_the_device_is_right_again(results: dict) -> None:
    """When the function is right again the same program runs, but for devices not counted."""
    broken = {
        case: one["after"]
        for case, one in results.items()
        if one["after"] and not (case[0] == "device_count" and not case[2])
    }
    assert broken == {}


def test_devices_and_properties_are_asked_once(results: dict) -> None:
    asked = {
        case: one["calls"]
        for case, one in results.items()
        if case[0] == "device_count" or (case[0] == "properties" and case[1] == "slow")
    }
    assert set(asked.values()) == {1}, asked


def test_the_page_is_what_was_measured(results: dict, request: pytest.FixtureRequest) -> None:
    text = page(functions(), {case: one["outcome"] for case, one in results.items()})
    if request.config.getoption("--update"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text


def test_faults_one_by_one(checked: Checked) -> None:
    done = checked.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "check_driver.py")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:] + checked.reports()
    assert "skipped" not in done.stdout.splitlines()[-1]
