# SPDX-License-Identifier: Apache-2.0
"""The page of `FallbackReport.to_html` in a browser; tests/package/modules judges what it says."""

from __future__ import annotations

import importlib.util
import json
import re
import struct
import types
from pathlib import Path
from typing import Any

import pytest
from browsing import ROOT, artifacts, browse

COMMON = ROOT / "templates" / "python" / "common"
LONG = "foo::an_operator_" + "with_a_name_without_end_" * 12
#: In the page: how wide it is and what it looks like, told to the page around it.
PROBE = """
<script>
parent.postMessage(JSON.stringify({
  wider: document.documentElement.scrollWidth > innerWidth,
  width: innerWidth,
  background: getComputedStyle(document.body).backgroundColor,
  bars: [...document.querySelectorAll("ol .bar")].map((bar) =>
    [...bar.children].map((part) => Math.round(part.getBoundingClientRect().width /
      bar.getBoundingClientRect().width * 100))),
}), "*");
</script>
"""
AROUND = """<!DOCTYPE html><html><body style="margin:0">
<script>onmessage = (told) => { document.documentElement.dataset.seen = told.data; }</script>
<iframe src="page.html" style="border:0;width:WIDTHpx;height:1500px"></iframe></body></html>
"""


def module() -> Any:
    spec = importlib.util.spec_from_file_location("page", COMMON / "_fallback_page.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def text() -> str:
    """A page with something in every place, and a name that has no place to break."""
    row = types.SimpleNamespace
    report = row(
        rows=[
            row(operator="aten::sort", calls=12, total_ms=30.0, mean_ms=2.5, bytes_copied=9 << 20),
            row(operator=LONG, calls=1, total_ms=0.02, mean_ms=0.02, bytes_copied=64),
        ],
        copying_ms={"aten::sort": 10.0},
        kernels=[
            row(operator="aten::mm.out", calls=12345, total_ms=36.0, mean_ms=0.003),
            row(operator="aten::sort", calls=2, total_ms=10.0, mean_ms=5.0),
        ],
        copies=[row(way="host to device", calls=7, total_ms=8.0, mean_ms=1.1, bytes_copied=1024)],
        span_ms=120.0,
        timed_ms=50.0,
        problem="",
    )
    build = row(DEVICE="foo", DISPLAY_NAME="Foo <Accelerator>", PACKAGE="torch_foo",
                VERSION="0.1.0", KERNELS=["mm.out"], HAS_OPS=False)  # fmt: skip
    return str(module().page(report, build))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_screens(text: str, tmp_path: Path, width: int, dark: bool) -> None:
    """Nothing is wider than the screen, and the bars are as long as the times."""
    probed = text.replace("style-src 'unsafe-inline'\"",
                          "style-src 'unsafe-inline'; script-src 'unsafe-inline'\"")  # fmt: skip
    assert probed != text
    (tmp_path / "page.html").write_text(probed.replace("</body>", PROBE + "</body>"))
    (tmp_path / "around.html").write_text(AROUND.replace("WIDTH", str(width)))
    colours = ["--blink-settings=preferredColorScheme=0"] if dark else []
    address = (tmp_path / "around.html").as_uri()
    dump = browse(tmp_path, *colours, "--window-size=1280,1000", "--dump-dom", address)
    encoded = re.search(r'data-seen="([^"]*)"', dump)
    assert encoded, dump[-2000:]
    seen = json.loads(encoded[1].replace("&quot;", '"'))
    assert seen["width"] == width and not seen["wider"]
    red = re.search(r"\d+", seen["background"])
    assert red is not None
    assert int(red[0]) < 40 if dark else int(red[0]) > 220
    assert seen["bars"] == [[25, 50, 25], [90], [20], [0]]
    picture = artifacts() / f"times-{width}-{'dark' if dark else 'light'}.png"
    picture.unlink(missing_ok=True)
    size = f"--window-size={max(width, 500)},1500"
    browse(tmp_path, *colours, size, f"--screenshot={picture}", address)
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == (max(width, 500), 1500)


def test_print(text: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(text)
    paper = tmp_path / "times.pdf"
    address = (tmp_path / "page.html").as_uri()
    browse(tmp_path, f"--print-to-pdf={paper}", "--no-pdf-header-footer", address)
    assert paper.read_bytes().startswith(b"%PDF-")
