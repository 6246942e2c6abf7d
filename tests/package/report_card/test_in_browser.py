# SPDX-License-Identifier: Apache-2.0
"""The report card in a browser. Screenshots go to the folder `artifacts` of the build."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from report_card import page

ROOT = Path(__file__).resolve().parents[3]
LONG = "test_streams.py::test_" + "a_name_without_end_" * 12
#: In the page: how wide it is and what it looks like, told to the page around it.
PROBE = """
<script>
parent.postMessage(JSON.stringify({
  wider: document.documentElement.scrollWidth > innerWidth,
  width: innerWidth,
  background: getComputedStyle(document.body).backgroundColor,
}), "*");
</script>
"""
AROUND = """<!DOCTYPE html><html><body style="margin:0">
<script>onmessage = (told) => { document.documentElement.dataset.seen = told.data; }</script>
<iframe src="page.html" style="border:0;width:WIDTHpx;height:HEIGHTpx"></iframe></body></html>
"""


@pytest.fixture
def text(card: dict[str, Any]) -> str:
    """A page with something in every section, and names that have no place to break."""
    about, tests = card["about"], card["tests"]
    failure = {"test": LONG, "line": "RuntimeError: " + "/a/long/path" * 20}
    bad = {**tests, "failed": 1, "failures": [failure]}
    bad["skips"] = [{"reason": "PyTorch_cannot_" * 20, "tests": 7}]
    named = {"about": about, "command": "python " + "--option=value" * 20, "mismatches": ["x" * 99]}
    rows = [{"dtype": "complex64", "calls": "forward", "operators": 650, "made": 98765,
             "passed": 98000, "known": 700, "failed": 65}]  # fmt: skip
    samples = {**named, "rows": rows, "samples": 0, "crashed": 1, "wrong": ["differs " + "y" * 200]}
    suite = {**named, **bad, "suite": "torchcts", "whole": False}
    counts = {"passed": 1800, "failed": 2, "skipped": 30, "problem": "z" * 120}
    release = {**named, "suites": {"device": counts}, "problem": "p" * 200}
    verdict = {**card["verdict"], "state": "failed"}
    return page.page({**card, "verdict": verdict, "tests": bad, "samples": [samples],
                      "torchcts": [suite], "releases": [release]})  # fmt: skip


def browse(folder: Path, *words: str) -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "no Chromium here: install it; on Debian `./dev test` does"
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses root with it
    command = [found, "--headless", "--disable-gpu", "--disable-dev-shm-usage", *sandbox]
    command += ["--hide-scrollbars", "--virtual-time-budget=5000", "--enable-logging=stderr"]
    command += [f"--user-data-dir={folder / 'profile'}", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    return done.stdout


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(
    text: str, tmp_path: Path, width: int, dark: bool
) -> None:
    artifacts = Path(os.environ.get("BACKENDKIT_CACHE") or ROOT / "build") / "artifacts"
    artifacts.mkdir(parents=True, exist_ok=True)
    assert text.count("style-src 'unsafe-inline'\"") == 1
    probed = text.replace("style-src 'unsafe-inline'\"", "style-src 'unsafe-inline'; "
                          "script-src 'unsafe-inline'\"")  # fmt: skip
    (tmp_path / "page.html").write_text(probed.replace("</body>", PROBE + "</body>"))
    around = AROUND.replace("WIDTH", str(width)).replace("HEIGHT", "9000")
    (tmp_path / "around.html").write_text(around)
    colours = ["--blink-settings=preferredColorScheme=0"] if dark else []
    address = (tmp_path / "around.html").as_uri()
    dump = browse(tmp_path, *colours, "--window-size=1280,1000", "--dump-dom", address)
    encoded = re.search(r'data-seen="([^"]*)"', dump)
    assert encoded, dump[-2000:]
    seen = json.loads(encoded[1].replace("&quot;", '"'))
    assert seen["width"] == width and not seen["wider"]
    red = int(re.search(r"\d+", seen["background"])[0])
    assert red < 40 if dark else red > 220
    picture = artifacts / f"card-{width}-{'dark' if dark else 'light'}.png"
    picture.unlink(missing_ok=True)
    size = f"--window-size={max(width, 500)},9000"
    browse(tmp_path, *colours, size, f"--screenshot={picture}", address)
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == (max(width, 500), 9000)


def test_print(text: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(text)
    paper = tmp_path / "card.pdf"
    address = (tmp_path / "page.html").as_uri()
    browse(tmp_path, f"--print-to-pdf={paper}", "--no-pdf-header-footer", address)
    assert paper.read_bytes().startswith(b"%PDF-")
