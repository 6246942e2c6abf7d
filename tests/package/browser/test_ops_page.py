# SPDX-License-Identifier: Apache-2.0
"""The page of `backendgen ops --format html`, as a parser and as a browser see it.

Screenshots go to the folder `artifacts` of the build; people look at them.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browsing import artifacts, browse

MOST_BYTES = 1_500_000
DESCRIPTION = """
[backend]
name = "kite"
version = "0.1.0"

[operators.kernels]
"add.out" = "kite::add"
"mm.out" = "kite::mm"
"_softmax.out" = "kite::softmax"
"relu" = "kite::relu"
"""

# Runs in the page after it is loaded, and leaves what it saw in an attribute of <html>.
PROBE = """
<script>
setTimeout(async () => {
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const search = document.getElementById("search");
  const visible = (selector) =>
    [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility()).length;
  const seen = {
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    background: getComputedStyle(document.body).backgroundColor,
    wider: document.documentElement.scrollWidth > innerWidth,
    groups: visible(".group"),
    rows_at_first: visible(".group tbody tr"),
    found_at_first: document.getElementById("shown").textContent,
  };
  document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true}));
  seen.focus = document.activeElement.id;
  search.value = "add.out";
  search.dispatchEvent(new Event("input"));
  await wait(200);
  seen.found = document.getElementById("shown").textContent;
  seen.names = [...document.querySelectorAll(".group tbody tr")]
    .filter((row) => row.checkVisibility()).map((row) => row.querySelector("b").textContent);
  for (const box of document.querySelectorAll("#states input")) {
    if (box.value !== "kernel") box.click();
  }
  await wait(50);
  seen.kernels = [...document.querySelectorAll(".group tbody tr")]
    .filter((row) => row.checkVisibility()).map((row) => row.querySelector("b").textContent);
  search.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape", bubbles: true}));
  await wait(50);
  seen.kernels_of_all = document.getElementById("shown").textContent;
  document.getElementById("search").value = "no such operator";
  search.dispatchEvent(new Event("input"));
  await wait(200);
  seen.says_none = document.getElementById("none").checkVisibility();
  document.documentElement.dataset.seen = JSON.stringify(seen);
}, 50);
</script>
"""


@dataclass
class Row:
    state: str
    cells: list[str] = field(default_factory=list)


class Page(HTMLParser):
    """Rows of the tables, every address in the page, and every tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.title = ""
        self.inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attributes)
        self.addresses += [values[key] or "" for key in ("src", "href") if key in values]
        if tag == "tr" and "class" in values:
            self.rows.append(Row(values["class"] or ""))
        if tag == "td":
            self.rows[-1].cells.append("")
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = "td" if tag in ("b", "em", "small") else ""

    def handle_data(self, data: str) -> None:
        if self.inside == "title":
            self.title += data
        elif self.inside in ("td", "b"):
            self.rows[-1].cells[-1] += data.strip()


def program() -> str:
    return os.environ["BACKENDGEN"]


def torch_folder() -> str:
    python = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    ask = "import importlib.util as u; print(*u.find_spec('torch').submodule_search_locations)"
    return subprocess.run(
        [python, "-c", ask], capture_output=True, text=True, check=True
    ).stdout.strip()


def ops(folder: Path, *words: str, torch: str = "") -> str:
    command = [program(), "ops", *words, "--torch", torch or torch_folder()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kite")
    (folder / "backend.toml").write_text(DESCRIPTION)
    return folder


@pytest.fixture(scope="session")
def page(project: Path) -> str:
    return ops(project, "--format", "html")


def test_the_page_needs_nothing_else(page: str) -> None:
    parsed = Page(page)
    assert all(address.startswith("#") for address in parsed.addresses)
    assert not {"link", "img", "iframe", "object", "embed"} & set(parsed.tags)
    assert not re.search(r"https?://|@import|url\(|//cdn", page)
    assert page.isascii()
    assert len(page.encode()) < MOST_BYTES
    assert re.fullmatch(r"PyTorch 2\.\d+\.\d+ operators on kite", parsed.title)


def test_the_table_is_there_without_javascript(page: str, project: Path) -> None:
    report = json.loads(ops(project, "--format", "json"))
    shown = [(row.state, *row.cells) for row in Page(page).rows]
    wanted = [(op["state"], op["state"], op["name"], op["reason"]) for op in report["operators"]]
    assert sorted(shown) == sorted(wanted)


def test_links_lead_to_rows(page: str) -> None:
    anchors = set(re.findall(r'id="([^"]+)"', page))
    links = [address[1:] for address in Page(page).addresses]
    assert len(links) > 50
    assert [link for link in links if link not in anchors] == []


def test_texts_cannot_break_out(tmp_path: Path) -> None:
    """A PyTorch whose schema has markup in a default value."""
    listed = tmp_path / "torchgen" / "packaged" / "ATen" / "native" / "native_functions.yaml"
    listed.parent.mkdir(parents=True)
    evil = "</script></table><img src=x onerror=alert(1)>&amp;"
    listed.write_text(f'- func: evil(Tensor self, str how="{evil}") -> Tensor\n')
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.13.0'\n")
    text = ops(tmp_path, "--format", "html", torch=str(tmp_path / "torch"))
    parsed = Page(text)
    assert "img" not in parsed.tags
    assert parsed.tags.count("script") == text.count("</script>") == 1
    assert [row.cells[1] for row in parsed.rows] == ["evil"]
    assert "&lt;/script&gt;&lt;/table&gt;&lt;img src=x onerror=alert(1)&gt;&amp;amp;" in text


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [500, 1280])
def test_use_in_a_browser(page: str, project: Path, tmp_path: Path, width: int, dark: bool) -> None:
    (tmp_path / "page.html").write_text(page.replace("</body>", PROBE + "</body>"))
    words = [f"--window-size={width},900", "--dump-dom", (tmp_path / "page.html").as_uri()]
    if dark:
        words.insert(0, "--blink-settings=preferredColorScheme=0")
    text = browse(tmp_path, *words)
    encoded = re.search(r'data-seen="([^"]*)"', text)
    assert encoded, text[-2000:]
    seen = json.loads(encoded[1].replace("&quot;", '"'))
    operators = json.loads(ops(project, "--format", "json"))["operators"]
    kernels = [op["name"] for op in operators if op["state"] == "kernel"]
    assert seen["dark"] == dark
    red = int(re.search(r"\d+", seen["background"])[0])
    assert red < 40 if dark else red > 220
    assert not seen["wider"]
    assert seen["groups"] > 25
    assert seen["rows_at_first"] == 0
    assert seen["found_at_first"] == f"{len(operators):,} of {len(operators):,}"
    assert seen["focus"] == "search"
    assert "add.out" in seen["names"]
    # The reason is searched too: what follows from add.out is shown with it.
    assert {"add.Tensor", "add_.Tensor"} <= set(seen["names"])
    assert sorted(seen["kernels"]) == ["add.Tensor", "add.out", "add_.Tensor"]
    assert seen["kernels_of_all"] == f"{len(kernels)} of {len(operators):,}"
    assert seen["says_none"]


@pytest.mark.parametrize(
    ("name", "width", "height", "fragment", "words"),
    [
        ("wide", 1280, 1600, "", []),
        ("phone", 500, 1200, "", []),
        ("dark", 1280, 1600, "#q=softmax", ["--blink-settings=preferredColorScheme=0"]),
        ("search", 1280, 1600, "#q=softmax", []),
        ("search-phone", 500, 1200, "#q=layer_norm", []),
    ],
)
def test_screenshots(
    page: str,
    tmp_path: Path,
    name: str,
    width: int,
    height: int,
    fragment: str,
    words: list[str],
) -> None:
    (tmp_path / "page.html").write_text(page)
    picture = artifacts() / f"ops-{name}.png"
    picture.unlink(missing_ok=True)
    size = f"--window-size={width},{height}"
    address = (tmp_path / "page.html").as_uri() + fragment
    browse(tmp_path, *words, size, f"--screenshot={picture}", address)
    data = picture.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (width, height)
    assert len(data) > 30_000, "the picture is nearly empty"


def test_print(page: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page)
    paper = artifacts() / "ops-print.pdf"
    paper.unlink(missing_ok=True)
    address = (tmp_path / "page.html").as_uri()
    browse(tmp_path, f"--print-to-pdf={paper}", "--no-pdf-header-footer", address)
    assert paper.read_bytes().startswith(b"%PDF-")
