# SPDX-License-Identifier: Apache-2.0
"""The report card of the device tests, made on the starter project's backend as installed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import types
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from conftest import PYTHON, TOOLS, environment, run
from report_card import included, page, plugin
from report_card.operators import STATES

ROOT = Path(__file__).resolve().parents[3]
SUITE = ROOT / "tests" / "device"
PAGE = (ROOT / "docs" / "report-card.md").read_text(encoding="utf-8")
PLANTED = """
import os, pytest

def test_right(): pass

def test_wrong():
    raise ValueError("<script>alert(1)</script> & more\\nsecond line")

@pytest.mark.skip(reason="this backend has no timing: <b>nothing</b>")
def test_skipped(): pass

def test_crash():
    if "CRASH" in os.environ: os.abort()

def test_slow():
    if "SLOW" in os.environ:
        open(os.environ["SLOW"], "w").close()
        __import__("time").sleep(100)
"""


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A suite with other tests, and a stand-in for the measurement, which has tests above."""
    suite = tmp_path / "suite"
    suite.mkdir()
    for path in [*SUITE.glob("*.py"), SUITE / "report_card"]:
        if not path.name.startswith("test_"):
            (suite / path.name).symlink_to(path)
    (suite / "report_card").unlink()
    (suite / "report_card").mkdir()
    for path in (SUITE / "report_card").glob("*.*"):
        (suite / "report_card" / path.name).write_bytes(path.read_bytes())
    measure = suite / "report_card" / "measure.py"
    text = measure.read_text()
    end = "return {**{name: found.get(name) for name in PARTS}"
    assert text.count("subprocess.run(") == 1 and end in text
    measure.write_text(text.replace("command,\n", '[sys.executable, "-c", ""],\n'))
    (suite / "test_planted.py").write_text(PLANTED)
    return suite


def pytest_in(
    suite: Path, *words: str, status: int, **variables: str
) -> tuple[dict[str, Any], str]:
    # As `backendkit.device_tests` calls it: without --rootdir, a process of xdist takes the folder
    # of ../card.json for a root if that file is there by then, and its tests have other names.
    command = [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", "."]
    command += ["--device", "foo", "--report", "../card.json", "--report", "../card.html"]
    command += [*words, "."]
    done = subprocess.run(
        command, cwd=suite, env=environment(**variables), capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout + done.stderr
    html = (suite.parent / "card.html").read_text()
    return json.loads((suite.parent / "card.json").read_text()), html


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for key, value in attributes if key in ("src", "href")]


def test_what_a_run_measures(card: dict[str, Any]) -> None:
    assert card["about"]["package"] == "torch_foo"
    assert card["about"]["date"] == "1970-01-01 00:00 UTC"
    assert card["about"]["backendkit"]
    assert card["verdict"]["state"] == "passed" and card["verdict"]["part"]
    assert card["tests"]["passed"] == 2 and card["tests"]["deselected"] == 5
    assert "SOURCE_DATE_EPOCH=0 python -m backendkit.device_tests " in card["command"]
    assert card["command"].endswith("--report card.html --report card.json")
    there = {one["name"]: one["there"] for one in card["capabilities"]["groups"]}
    assert there["streams"] and not there["metadata"]
    assert [one["problem"] for one in card["training"]] == ["", "", ""]
    assert all(one["as_on_the_cpu"] for one in card["training"])
    assert "mm.out" in {one["operator"] for one in card["training"][0]["fallbacks"]}
    assert card["problem"] == ""


def test_states_are_those_of_backendgen_ops(card: dict[str, Any], tmp_path: Path) -> None:
    """Without kernels; the tests of the examples compare those with kernels."""
    groups = {one["group"]: one for one in card["operators"]["groups"]}
    program = Path(TOOLS).with_name("backendgen")
    ask = "import torch; print(torch.__path__[0])"
    torch = subprocess.check_output([PYTHON, "-c", ask], text=True).strip()
    command = [program, "ops", "--format", "json", "--torch", torch]
    report = json.loads(subprocess.check_output(command, cwd=tmp_path, text=True))
    assert set(groups) == {one["group"] for one in report["groups"]}
    # The dispatcher has nine that PyTorch's list of operators lacks: quantized LSTM and GRU, and
    # `get_gradients`. BackendKit composes nine on the device, seven of them for SyncBatchNorm, that
    # `ops` counts as the fallback's.
    of_list = {state: report["states"].get(state, 0) for state in STATES}
    found = {state: card["operators"][state] for state in STATES}
    assert found["kernel"] == of_list["kernel"] == 0
    assert found["cannot"] == of_list["cannot"]
    assert found["built-in"] == of_list["built-in"] + 9
    assert sum(found.values()) == card["operators"]["operators"]


def test_the_page_needs_nothing_else(made: Path) -> None:
    text = (made / "card.html").read_text()
    parsed = Tags(text)
    assert parsed.addresses and all(one.startswith("#") for one in parsed.addresses)
    assert all(f'id="{one[1:]}"' in text for one in parsed.addresses)
    assert not {"script", "link", "img", "iframe"} & set(parsed.tags)
    assert not re.search(r"https?://|@import|url\(", text)
    assert text.isascii()
    assert text.count("<b>Not run.</b>") == 3


def test_keys_are_documented(card: dict[str, Any]) -> None:
    told = set(re.findall(r"`(\w[\w-]*)`", PAGE.partition("## JSON")[2]))
    parts = [card, card["about"], card["verdict"], card["capabilities"], card["operators"]]
    parts += [card["capabilities"]["groups"][0], card["operators"]["groups"][0], card["tests"]]
    parts += [card["training"][0], card["training"][0]["fallbacks"][0]]
    assert {key for part in parts for key in part} <= told


def test_failures_skips_and_markup(planted: Path) -> None:
    card, html = pytest_in(planted, status=1)
    assert card["verdict"]["state"] == "failed" and not card["verdict"]["part"]
    (failure,) = card["tests"]["failures"]
    assert failure["test"] == "test_planted.py::test_wrong"
    assert failure["line"] == "ValueError: <script>alert(1)</script> & more"
    (skip,) = card["tests"]["skips"]
    assert skip == {"reason": "this backend has no timing: <b>nothing</b>", "tests": 1}
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in html
    assert "script" not in Tags(html).tags


def test_the_same_results_are_the_same_bytes(planted: Path) -> None:
    def without_times() -> tuple[dict[str, Any], str]:
        card, html = pytest_in(planted, *words, status=1)
        text = re.sub(r'"seconds": [\d.e+-]+', '"seconds": 0', json.dumps({**card, "command": ""}))
        data = {
            **json.loads(text),
            **json.loads(text)["tests"],
        }  # so that pytest shows what differs
        page = re.sub(r'<span class="took">.*?</span>|<pre>.*?</pre>', "", html, flags=re.S)
        return data, page

    words = ["-n", "2"]
    data, page = without_times()
    words = ["-n", "0"]
    other_data, other_page = without_times()
    assert other_data == data
    assert other_page == page


def test_a_worker_that_crashes(planted: Path) -> None:
    card, _ = pytest_in(planted, "-n", "1", status=1, CRASH="1")
    crashed = [one for one in card["tests"]["failures"] if one["test"].endswith("test_crash")]
    assert "crashed while running" in crashed[0]["line"]


def test_a_process_that_crashes_leaves_a_card_that_says_so(planted: Path) -> None:
    card, html = pytest_in(planted, status=-signal.SIGABRT, CRASH="1")
    assert card["verdict"]["state"] == "unfinished"
    assert "Not finished" in html and "No test has ended." in html


def test_an_interrupted_run(planted: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    command = [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "--report", "../card.json", "."]
    running = subprocess.Popen(
        command,
        cwd=planted,
        env=environment(SLOW=str(begun)),
        stdout=subprocess.DEVNULL,
        # A shell's background jobs, of which this may be one, ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for _ in range(600):
        if begun.exists():
            break
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 2
    card = json.loads((tmp_path / "card.json").read_text())
    assert card["verdict"]["state"] == "interrupted"
    assert card["tests"]["passed"] == 2 and card["tests"]["not_run"] == 1


class Config:
    """As much of pytest's configuration as the options need."""

    def __init__(self, folder: Path, report: list[str], include: list[str], collect: bool) -> None:
        self.invocation_params = types.SimpleNamespace(dir=folder)
        self._options = {"report": report, "include": include, "collectonly": collect}

    def getoption(self, name: str) -> Any:
        return self._options[name.removeprefix("--")]


@pytest.mark.parametrize(
    ("report", "include", "told"),
    [
        ("nowhere/card.html", None, "--report nowhere/card.html cannot be written: there is no"),
        ("card.txt", None, "the file's name has to end in .html or .json"),
        ("/proc/card.html", None, "--report /proc/card.html cannot be written"),
        ("folder.html", None, "--report folder.html cannot be written: it is a folder"),
        (None, "text.json", "--include needs --report"),
        ("card.html", "missing.json", "missing.json: No such file or directory"),
        ("card.html", "kind.json", 'its `kind` is "x"'),
        ("card.html", "text.json", "text.json is not JSON"),
        ("card.html", "schema.json", "its `schema` is 2, and this BackendKit reads 1"),
        ("card.html", "nothing.json", "no `about`"),
        ("card.html", "number.json", "has not the form of a result file"),
        ("card.html", "--collect-only", "leave out --collect-only"),
    ],
)
def test_wrong_options(tmp_path: Path, report: str | None, include: str | None, told: str) -> None:
    files = {"kind": {"kind": "x"}, "schema": {"kind": "report card", "schema": 2}}
    files["nothing"] = {"kind": "report card", "schema": 1}
    for name, document in {**files, "number": 7}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "text.json").write_text("text")
    (tmp_path / "folder.html").mkdir()
    before = sorted(tmp_path.iterdir())
    collect = include == "--collect-only"
    included_files = [include] if include and not collect else []
    config: Any = Config(tmp_path, [report] if report else [], included_files, collect)
    with pytest.raises(pytest.UsageError) as caught:
        plugin.register(config, {})
    assert told in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before


def test_an_error_comes_before_the_first_test(made: Path) -> None:
    before = sorted(made.iterdir())
    text = run(made, "test_capabilities.py", "--report", "nowhere/card.html", status=4)
    assert "ERROR: --report nowhere/card.html cannot be written: there is no folder" in text
    assert "passed" not in text and sorted(made.iterdir()) == before


def result(card: dict[str, Any], **changes: str) -> dict[str, Any]:
    rows = [{"dtype": "float32", "calls": "forward", "operators": 2, "made": 9, "passed": 7,
             "known": 1, "failed": 1}]  # fmt: skip
    return {"schema": 1, "kind": "operator samples", "about": {**card["about"], **changes},
            "command": "run <it>", "samples": 2, "rows": rows, "crashed": 0,
            "wrong": ["differs <b>"]}  # fmt: skip


def test_included_results(card: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "op_db.json"
    for changes, told in [
        ({}, []),
        ({"version": "0.0.9"}, ["measured with torch_foo 0.0.9, not 0.1.0"]),
        ({"torch": "2.12.1"}, ["measured with PyTorch 2.12.1, not 2.13.0"]),
    ]:
        file.write_text(json.dumps(result(card, **changes)))
        (one,) = included.read(file)
        one["mismatches"] = included.mismatches(one, {**card["about"], "torch": "2.13.0"})
        assert one["mismatches"] == told
        text = page.page({**card, "samples": [one]})
        assert text.count("<b>Not run.</b>") == 2
        assert text.count("Not of this card's build") == len(told)
        assert "run &lt;it&gt;" in text and "differs &lt;b&gt;" in text


def test_cards_and_the_matrix_are_releases(card: dict[str, Any], tmp_path: Path) -> None:
    other = {**card, "about": {**card["about"], "torch": "2.12.1"}}
    (tmp_path / "card.json").write_text(json.dumps(other))
    # The matrix's rows, the first three as if they were of this package, of another and of none.
    matrix = json.loads((ROOT / "tests" / "pytorch" / "matrix" / "results.json").read_text())
    tested = " ".join(card["about"][name] for name in ("package", "version"))
    for row, package in zip(matrix, [tested, "torch_bar 0.1.0", ""], strict=False):
        row["package"] = package
    (tmp_path / "results.json").write_text(json.dumps(matrix))
    rows = included.read(tmp_path / "card.json") + included.read(tmp_path / "results.json")
    told = [{**one, "mismatches": included.mismatches(one, card["about"])} for one in rows]
    sections = included.by_section(told)
    assert told[0]["mismatches"] == [] and len(sections["releases"]) == len(rows) > 10
    assert told[0]["suites"]["device"]["problem"] == "a part of the tests"
    own, anothers, unnamed = (one["mismatches"] for one in told[1:4])
    assert own == [] and anothers == [f"measured with torch_bar, not {card['about']['package']}"]
    assert len(unnamed) == 1 and "names no package" in unnamed[0]
    text = page.page({**card, **sections})
    assert "PyTorch 2.5.1, Python 3.11" in text and "PyTorch 2.12.1" in text


def test_results_of_another_suite(card: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(PLANTED)
    command = [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-p", "backendkit.results"]
    command += ["--results=results.json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    (one,) = included.read(tmp_path / "results.json")
    assert (one["passed"], one["failed"], one["skipped"], one["whole"]) == (3, 1, 1, True)
    assert included.mismatches(one, card["about"]) == []


def test_commands_of_the_page() -> None:
    """The page shows the commands that these tests run, and those of other tests' options."""
    shown = [line for block in re.findall(r"```console\n(.*?)```", PAGE, re.S)
             for line in block.splitlines()]  # fmt: skip
    assert len(shown) == 4
    op_db = (ROOT / "tests" / "pytorch" / "op_db" / "run_op_db.py").read_text()
    options = {"--report", "--include", "--results", "--device", "--level"}
    assert {word.partition("=")[0] for line in shown for word in line.split()
            if word.startswith("--")} == options  # fmt: skip
    assert '"--results"' in op_db
