# SPDX-License-Identifier: Apache-2.0
"""What the release matrix makes of reports, logs and command lines; nothing is downloaded."""

from __future__ import annotations

import re
from pathlib import Path

import matrix
import page
import pytest
import results
from results import ROOT, Row, Suite

REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="5">
<testcase classname="tests.device.test_a" name="test_good"/>
<testcase classname="tests.device.test_a" name="test_wrong[foo]"><failure message="no"/></testcase>
<testcase classname="tests.device.test_a" name="test_set_up"><error message="no"/></testcase>
<testcase classname="tests.device.test_a" name="test_old"><skipped message="no
  torch.accelerator"/></testcase>
<testcase classname="tests.device.test_a" name="test_older"><skipped
  message="no torch.accelerator"/></testcase>
</testsuite></testsuites>
"""
COMPILER = """
  [3/9] Building CXX object CMakeFiles/foo.dir/foo-generated/backend.cpp.o
  In file included from foo-generated/backend.cpp:9:
  /x/include/backendkit/hooks.h:41:8: error: 'bool isBuilt() const' marked 'override'
  /x/include/backendkit/hooks.h:44:8: error: another
  ninja: build stopped: subcommand failed.
"""


def a_row(version: str = "2.13.0", **values: object) -> Row:
    given = {
        "python": "3.11",
        "commit": "0123456789",
        "date": "2026-01-02",
        "machine": "2 cores, x86_64, CPU",
        "compiler": "g++ 12.2.0",
        "wheel": "a" * 64,
        "build_seconds": 60,
        "suites": {name: Suite(passed=3) for name in results.SUITES},
    }
    return Row(version, **{**given, **values})  # type: ignore[arg-type]


def a_report(folder: Path, text: str = REPORT) -> Path:
    path = folder / "report.xml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_report_is_counted_with_the_reasons_of_skips(tmp_path: Path) -> None:
    suite = results.read_report(a_report(tmp_path))
    assert (suite.passed, suite.failed) == (1, 2)
    assert suite.skipped == {"no torch.accelerator": 2}
    assert suite.failures == ["device.test_a::test_wrong[foo]", "device.test_a::test_set_up"]
    assert suite.cell == "1 passed, **2 failed**, 2 skipped"
    assert not suite.good


def test_the_reason_of_a_file_that_is_skipped_as_a_whole(tmp_path: Path) -> None:
    text = "('a.py', 9, &quot;Skipped: could not import 'transformers': none&quot;)"
    skipped = f'<skipped message="collection skipped">{text}</skipped>'
    report = a_report(tmp_path, f"<testsuites><testcase>{skipped}</testcase></testsuites>")
    assert results.read_report(report).skipped == {"could not import 'transformers': none": 1}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "pytest wrote no report"),
        ("<testsuites><test", "pytest's report is broken: unclosed token: line 1, column 12"),
        ("<testsuites><testsuite/></testsuites>", "pytest found no tests"),
    ],
)
def test_no_report_is_no_success(tmp_path: Path, text: str | None, problem: str) -> None:
    path = tmp_path / "absent.xml" if text is None else a_report(tmp_path, text)
    suite = results.read_report(path)
    assert suite.problem == problem
    assert suite.cell == "did not run"
    assert not suite.good


def test_a_row_is_good_if_all_of_it_ran_and_passed() -> None:
    assert a_row().good
    assert not a_row(suites={}).good
    assert not a_row(error="pip failed").good
    assert not a_row(suites={"device": Suite(passed=3, failed=1)}).good
    assert not a_row(suites={"device": Suite(skipped={"all": 3})}).good


def test_a_release_that_does_not_compile_is_told_by_its_first_error() -> None:
    assert results.why_not_built("2.16.0", COMPILER, "build/wheel.log") == (
        "PyTorch 2.16.0: the glue does not compile with it: /x/include/backendkit/hooks.h:41:8: "
        "error: 'bool isBuilt() const' marked 'override'\n"
        "note: the log is build/wheel.log\n"
        "note: BackendKit is tested with PyTorch 2.5 to 2.15; 2.16.0 is newer"
    )
    linker = "ld: backend.cpp.o: undefined reference to `at::f()'\ncollect2: error: ld returned 1"
    assert "with it: ld: backend.cpp.o: undefined reference to `at::f()'\n" in (
        results.why_not_built("2.9.1", linker, "log")
    )


def test_a_build_that_fails_otherwise_is_told_by_its_last_line() -> None:
    text = results.why_not_built("2.15.1", "one\n\nerror: no space left\n\n", "wheel.log")
    assert text.startswith(
        "PyTorch 2.15.1: the starter project could not be built with it: error: no space left\n"
    )
    assert text.endswith("note: BackendKit is tested with PyTorch 2.5 to 2.15")
    assert "with it: no output\n" in results.why_not_built("2.15.1", "", "wheel.log")


def test_a_release_that_pip_does_not_find() -> None:
    log = "ERROR: Could not find a version\nERROR: No matching distribution for torch==2.99.0\n"
    text = results.why_not_installed("2.99.0", log, "install.log")
    assert text.splitlines() == [
        "PyTorch 2.99.0: pip cannot install it: No matching distribution for torch==2.99.0",
        "note: the log is install.log",
        "note: BackendKit is tested with PyTorch 2.5 to 2.15; 2.99.0 is newer",
    ]


def test_releases_are_those_of_the_generator() -> None:
    assert results.RELEASES == sorted(results.RELEASES, key=results.release_key)
    minors = [results.minor(version) for version in results.RELEASES]
    assert minors == [f"2.{number}" for number in range(5, 16)]
    text = (ROOT / "generator" / "torch" / "releases.cpp").read_text(encoding="utf-8")
    rows = re.findall(r"\{\{(\d+), (\d+), (\d+)\}, \d+, \d+\}", text)
    assert [".".join(row) for row in rows] == results.RELEASES


def test_a_run_keeps_the_rows_of_other_releases(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    for version in ("2.10.0", "2.9.1"):
        results.save(a_row(version), path)
    results.save(a_row("2.10.0", python="3.13", build_seconds=None), path)
    rows = results.save(a_row("2.9.1", build_seconds=70), path)
    assert results.load(path) == rows
    assert [(row.version, row.python, row.build_seconds) for row in rows] == [
        ("2.9.1", "3.11", 70),
        ("2.10.0", "3.11", 60),
        ("2.10.0", "3.13", None),
    ]
    assert results.load(tmp_path / "absent.json") == []


def test_the_page_has_each_row_and_each_reason() -> None:
    device = Suite(passed=570, skipped={"no torch.accelerator before 2.6": 2})
    rows = [
        a_row("2.5.1", suites={**a_row().suites, "device": device}),
        a_row("2.9.1", suites={}, build_seconds=None, wheel="", error="PyTorch 2.9.1: no\nnote: x"),
        a_row("2.13.0", suites={"device": Suite(passed=1, failed=1, failures=["device.a::b"])}),
        a_row("2.14.1", suites={"device": Suite(problem="pytest wrote no report: killed")}),
    ]
    text = page.page(rows)
    assert "| 2.5.1 | 3.11 | 60 s | 3 passed | 3 passed | 570 passed, 2 skipped | 3 pas" in text
    assert "| 2.9.1 | 3.11 | **failed** | - | - |" in text
    assert "| 2.13.0 | 3.11 | 60 s | not run | not run | 1 passed, **1 failed** | not" in text
    assert "| 2.5.1, Python 3.11 | device | 2 | no torch.accelerator before 2.6 |" in text
    assert "- PyTorch 2.9.1: no\n  note: x\n" in text
    assert "- 2.13.0, Python 3.11, device: `device.a::b`" in text
    assert "- 2.14.1, Python 3.11, device: pytest wrote no report: killed" in text
    assert "All suites without a failure: 2.5.\n" in text
    assert "- all rows: commit `0123456789`, 2026-01-02; 2 cores, x86_64, CPU; g++ 12.2.0" in text
    assert "different commits" not in text


def test_a_release_is_without_a_failure_if_all_its_rows_are() -> None:
    device = {"device": Suite(passed=3)}
    bad = {"device": Suite(passed=3, failed=1)}
    rows = [a_row("2.5.1"), a_row("2.6.0", suites=device), a_row("2.7.1")]
    rows += [a_row("2.7.1", python="3.13", suites=bad), a_row("2.8.0")]
    rows += [a_row("2.8.0", python="3.13", suites=device, note="from a friend")]
    assert page.without_failure(rows) == (["2.5", "2.8"], ["2.6"])
    assert "- 2.8.0, Python 3.13: from a friend" in page.page(rows)


def test_the_page_says_which_rows_are_of_another_commit() -> None:
    text = page.page([a_row("2.5.1"), a_row("2.6.0", commit="9876543210+"), a_row("2.7.1")])
    assert "- 2.5.1, Python 3.11, 2.7.1, Python 3.11: commit `0123456789`, 2026" in text
    assert "- 2.6.0, Python 3.11: commit `9876543210` with changes that were not comm" in text
    assert "The rows come from **different commits**." in text


def test_the_page_says_which_python_ran_the_wheel_of_another() -> None:
    rows = [a_row(), a_row(python="3.13", build_seconds=None)]
    assert "- 2.13.0, Python 3.13: the `py3-none` wheel that was built under Python 3.11" in (
        page.page(rows)
    )
    assert "## One wheel" not in page.page(rows[:1])
    rows[1].wheel = "b" * 64
    assert "## One wheel" not in page.page(rows)


def test_the_page_of_docs_is_what_the_results_say() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(results.load())


def test_no_skip_is_without_a_reason() -> None:
    for row in results.load():
        for suite in row.suites.values():
            assert "no reason given" not in suite.skipped, row.version
            assert "unconditional skip" not in suite.skipped, row.version


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["2.6"], "not a release such as 2.6.0: 2.6"),
        (["2.6.0", "nightly", "2.x.0"], "not a release such as 2.6.0: nightly, 2.x.0"),
        (["--suites", "device,devcie"], "no suite devcie; there are operators, starter, device,"),
        (["--wheel", "absent.whl", "2.6.0"], "no file absent.whl"),
        (["--python", "absent", "2.6.0"], "no file absent"),
        (["--with", "python", "2.6.0", "2.7.1"], "--with and --wheel are for one release"),
    ],
)
def test_refused_command_lines(
    arguments: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        matrix.read_command_line(["--folder", str(tmp_path), *arguments])
    assert end.value.code == 2
    assert text in capsys.readouterr().err


def test_no_release_named_is_all_of_them(tmp_path: Path) -> None:
    options = matrix.read_command_line(["--folder", str(tmp_path)])
    assert options.versions == results.RELEASES
    assert options.suites == list(results.SUITES)


def test_every_suite_has_tests_that_exist() -> None:
    assert {*matrix.ARGUMENTS, "starter"} == set(results.SUITES)
    for arguments in matrix.ARGUMENTS.values():
        assert (ROOT / arguments[0]).exists()
