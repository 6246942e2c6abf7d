# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site: what is wrong in a page is an error, and no page needs a network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pictures
import pytest
import reference
from conftest import ROOT, build


class Page(HTMLParser):
    """What a page loads, where it links to, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.pictures: list[dict[str, str | None]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if values.get("id"):
            self.anchors.add(values["id"] or "")
        if tag == "img":
            self.pictures.append(values)
        if values.get("src"):
            self.loads.append(values["src"] or "")
        if tag == "link" and values.get("href"):
            self.loads.append(values["href"] or "")
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def torch_folder() -> str:
    ask = "import importlib.util as u; print(*u.find_spec('torch').submodule_search_locations)"
    command = [os.environ["BACKENDKIT_TEST_BASE_PYTHON"], "-c", ask]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_pages_from_the_code(request: pytest.FixtureRequest) -> None:
    """docs/reference and docs/pictures are what the code says; `--update` writes them."""
    program = os.environ["BACKENDGEN"]
    wanted = reference.pages(program) | pictures.pictures(program, torch_folder())
    for path, text in wanted.items():
        if request.config.getoption("--update"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        else:
            assert path.read_text(encoding="utf-8") == text, path.relative_to(ROOT)
    found = {*reference.FOLDER.iterdir(), *pictures.FOLDER.iterdir()}
    assert found == set(wanted), "a page or picture that nothing writes"


def test_all_functions_of_a_runtime_are_listed() -> None:
    include = ROOT / "include" / "backendkit"
    text = "".join((include / name).read_text(encoding="utf-8") for name in reference.HEADERS)
    functions = set(re.findall(r"{\s+Runtime::(\w+)\(", text))
    page = (reference.FOLDER / "runtime.md").read_text(encoding="utf-8")
    assert functions | {"host_accessible"} == set(re.findall(r"^#{3,4} ([a-z_]+)$", page, re.M))


def test_the_pictures_name_what_the_code_has() -> None:
    drawn = (pictures.FOLDER / "import.svg").read_text(encoding="utf-8")
    loader = (ROOT / "templates" / "python" / "common" / "_loader.py").read_text(encoding="utf-8")
    functions = re.findall(r">(?:torch\.)?(?:ops\.)?(\w+)\(\)<", drawn)
    assert len(functions) == 4
    assert [one for one in functions if f"{one}(" not in loader] == []


#: A line that is wrong in a page, and what the build says of it.
FAULTS = [
    ("[gone](no_such_page.md)", "no_such_page.md"),
    ("[gone](runtime.md#not-in-that-page)", "#not-in-that-page"),
    ("[gone](#not-in-this-page)", "#not-in-this-page"),
    ("![gone](pictures/no_such_picture.svg)", "no_such_picture.svg"),
    ("[gone](../examples/no_such_example)", "examples/no_such_example"),
    ("[gone](../no_readme)", "no_readme"),
    ("[gone](/absolute.md)", "/absolute.md"),
]


def small_tree(folder: Path) -> Path:
    """A tree of three pages with the real configuration."""
    (folder / "docs").mkdir(parents=True)
    (folder / "no_readme").mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "site", folder / "site", ignore=ignored)
    settings = folder / "site" / "mkdocs.yml"
    nav = "nav:\n  - index.md\n  - start.md\n  - runtime.md\n\n"
    settings.write_text(re.sub(r"^nav:\n(?:  .*\n)+\n", nav, settings.read_text(), flags=re.M))
    for page in ("index.md", "start.md", "runtime.md"):
        (folder / "docs" / page).write_text(f"# {page}\n\n[a page](index.md)\n")
    shutil.copy(ROOT / "docs" / "style.css", folder / "docs")
    return folder


def test_planted_faults_are_found(tmp_path: Path) -> None:
    tree = small_tree(tmp_path / "tree")
    good = build(tree, tmp_path / "good")
    assert good.returncode == 0, good.stderr
    start = tree / "docs" / "start.md"
    start.write_text(start.read_text() + "\n\n".join(line for line, _ in FAULTS) + "\n")
    (tree / "docs" / "orphan.md").write_text("# A page that nothing names\n")
    done = build(tree, tmp_path / "bad")
    assert done.returncode == 1
    warnings = [line for line in done.stderr.splitlines() if "start.md" in line]
    found = [said for _, said in FAULTS if any(said in line for line in warnings)]
    assert found == [said for _, said in FAULTS]
    assert "orphan.md" in done.stderr


def test_one_fault_is_enough(tmp_path: Path) -> None:
    tree = small_tree(tmp_path / "tree")
    (tree / "docs" / "orphan.md").write_text("# A page that nothing names\n")
    assert build(tree, tmp_path / "bad").returncode == 1


def test_every_page_is_there(site: Path) -> None:
    written = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(site) for path in site.rglob("*.html")}
    assert {path.with_suffix(".html") for path in written} <= built
    for outside in ("CONTRIBUTING", "tests/index", "examples/kernels/index"):
        assert Path(f"tree/{outside}.html") in built


def test_links_lead_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    """As a browser reads them from the folder, also those that MkDocs does not check."""
    assert len(pages) > 35
    wrong = []
    for path, page in pages.items():
        if path.name == "404.html":  # for servers, which serve it at any address
            continue
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            fragment = unquote(parts.fragment)
            there = target.is_file() and (
                not fragment or target.suffix != ".html" or fragment in pages[target].anchors
            )
            if not there and fragment != "__skip":
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert wrong == []


def test_nothing_is_loaded_from_another_host(site: Path, pages: dict[Path, Page]) -> None:
    loads = [one for page in pages.values() for one in page.loads]
    assert len(loads) > 100
    assert [one for one in loads if urlsplit(one).scheme or one.startswith("//")] == []
    styles = [*site.rglob("*.css"), *site.rglob("*.svg")]
    assert len(styles) > 3
    for path in styles:
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", path.read_text()), path.name


def test_pictures_have_alternative_texts(pages: dict[Path, Page]) -> None:
    shown = [picture for page in pages.values() for picture in page.pictures]
    assert {Path(one["src"] or "").name for one in shown} == {
        path.name for path in pictures.FOLDER.iterdir()
    }
    assert all(len(one.get("alt") or "") > 20 for one in shown)
