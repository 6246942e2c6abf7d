# SPDX-License-Identifier: Apache-2.0
"""The report of where the time went: its rows, and its page as a parser sees it."""

from __future__ import annotations

import errno
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from package_without_library import Package

MS = 1_000_000
#: What the library says of a program: operators that fell back, copies, kernels, and the time.
COUNTED = {
    "fallback_counts": (
        ["aten::b", "aten::a", "aten::much_the_longest"],
        [2, 1000, 1],
        [4 * MS, 4 * MS, 5 * MS],
        [0, 1 << 20, 8],
        [0, 1 * MS, 3 * MS],
    ),
    "copy_counts": ([3, 1, 0, 0], [6 * MS, 2 * MS, 0, 0], [3 << 20, 4, 0, 0]),
    "kernel_times": (["aten::a", "foo::custom<op>"], [10, 1], [20 * MS, 1 * MS]),
    "time_span": (100 * MS, 99 * MS),
}
NOTHING = {
    "fallback_counts": ([], [], [], [], []),
    "copy_counts": ([0] * 4, [0] * 4, [0] * 4),
    "kernel_times": ([], [], []),
    "time_span": (5 * MS, 0),
}


PLAIN_TAGS = set(
    "b body code div footer h1 h2 head header html i li main meta ol p pre small span style title "
    "ul".split()
)


class Page(HTMLParser):
    """The text of a page, its tags, its attributes, and the bars of its rows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.rows: list[list[tuple[str, float]]] = []
        self.names: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []
        self.text = re.sub(r"\s+", " ", self.text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes
        if tag != "meta":
            self.open.append(tag)
        values = dict(attributes)
        if tag == "li" and "class" not in values:
            self.rows.append([])
        if tag == "i" and "ol" in self.open:
            width = re.fullmatch(r"width:([\d.]+)%", values["style"] or "")
            assert width is not None and values["class"] is not None
            self.rows[-1].append((values["class"], float(width[1])))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data
        if self.open[-2:] == ["li", "code"]:
            self.names.append(data)


def written(package: Package, folder: Path, **answers: Any) -> Page:
    package.library.answers.update(answers)
    path = folder / "page.html"
    package.device.fallback_report().to_html(path)
    return Page(path.read_text(encoding="ascii"))


def test_fallback_report(package: Package) -> None:
    """The most expensive operator is the first, and equal ones are in the order of their names."""
    package.library.answers.update(COUNTED)
    report = package.device.fallback_report()
    rows = [(row.operator, row.total_ms, row.mean_ms) for row in report.rows]
    assert rows[0] == ("aten::much_the_longest", 5.0, 5.0)
    assert rows[1:] == [("aten::a", 4.0, 0.004), ("aten::b", 4.0, 2.0)]
    table = str(report).splitlines()
    assert len({len(line) for line in table}) == 1
    assert table[2].split() == ["aten::a", "1,000", "4.000", "0.004", "1,048,576"]


def test_copies_and_kernels(package: Package) -> None:
    package.library.answers.update(COUNTED)
    report = package.device.fallback_report()
    assert report.copies == [
        ("host to device", 3, 6.0, 2.0, 3 << 20),
        ("device to host", 1, 2.0, 2.0, 4),
    ]
    assert report.kernels == [("aten::a", 10, 20.0, 2.0), ("foo::custom<op>", 1, 1.0, 1.0)]
    assert report.copying_ms == {"aten::a": 1.0, "aten::b": 0.0, "aten::much_the_longest": 3.0}
    assert (report.span_ms, report.timed_ms) == (100.0, 99.0)


def test_the_names_of_the_report(package: Package) -> None:
    """Programs may name the classes; a report of rows alone is one too."""
    row = package.device.FallbackRow("aten::a", 1, 2.0, 2.0, 0)
    report = package.device.FallbackReport([row])
    assert isinstance(package_report(package), package.device.FallbackReport)
    assert str(report).splitlines()[1].split()[:2] == ["aten::a", "1"]


def package_report(package: Package) -> Any:
    package.library.answers.update(NOTHING)
    return package.device.fallback_report()


def test_the_page(package: Package, tmp_path: Path) -> None:
    """A bar for each operator, as long as its time, with a part for each way that it went."""
    package.set_constants(KERNELS=["a"])
    page = written(package, tmp_path, **COUNTED)
    assert page.names == [
        "aten::a",
        "copy host to device",
        "aten::much_the_longest",
        "aten::b",
        "copy device to host",
        "foo::custom<op>",
    ]
    assert page.rows[0] == [("kernel", 83.33), ("fallback", 12.5), ("moved", 4.17)]
    assert page.rows[1] == [("copy", 25.0)]
    assert page.rows[2] == [("fallback", 8.33), ("moved", 12.5)]
    assert page.rows[3] == [("fallback", 16.67)]
    assert "42.0 ms in the operators below, of 100.0 ms" in page.text
    assert "10 calls of the kernel: 20.0 ms" in page.text
    assert "1,000 calls of the CPU: 3.0 ms copies of 1.0 MiB: 1.0 ms" in page.text
    assert "3 copies of 3.0 MiB: 6.0 ms" in page.text
    assert "Kernels were timed for 99.0 ms of 100.0 ms" in page.text


def test_the_page_needs_nothing_else(package: Package, tmp_path: Path) -> None:
    page = written(package, tmp_path, **COUNTED)
    assert not {"script", "link", "img", "iframe", "base", "form"} & set(page.tags)
    assert not {"src", "href", "onload", "onclick"} & {name for name, _ in page.attributes}
    text = (tmp_path / "page.html").read_text()
    assert "default-src 'none'" in text and "://" not in text and "url(" not in text


def test_nothing_in_the_page_is_a_tag_by_accident(package: Package, tmp_path: Path) -> None:
    name = "<script>alert(1)</script>&amp;\"'\u00e4"
    package.set_constants(DISPLAY_NAME=name)
    counted = (["aten::<u>&lt;"], [1], [MS], [1], [0])
    page = written(package, tmp_path, **{**NOTHING, "fallback_counts": counted})
    assert set(page.tags) <= PLAIN_TAGS
    assert "aten::<u>&lt;" in page.names
    assert f"Where the time went on {name}" in page.text


@pytest.mark.parametrize(
    ("timed", "kernels", "expected"),
    [
        (99, ["relu"], "Kernels were timed for 99.0 ms of 100.0 ms"),
        (20, ["relu"], "timed for only 20.0 ms of 100.0 ms"),
        (0, ["relu"], "with torch.foo.timed_operators():"),
        (0, [], "This backend has no kernels yet"),
        (99, [], "This backend has no kernels yet"),
    ],
)
def test_what_the_page_says_of_kernels(
    package: Package, tmp_path: Path, timed: int, kernels: list[str], expected: str
) -> None:
    package.set_constants(KERNELS=kernels)
    times = COUNTED["kernel_times"] if timed else ([], [], [])
    page = written(
        package, tmp_path, **{**COUNTED, "kernel_times": times, "time_span": (100 * MS, timed * MS)}
    )
    assert expected in page.text
    assert ("not timed" in page.text) == (timed == 0)


def test_a_page_of_nothing(package: Package, tmp_path: Path) -> None:
    page = written(package, tmp_path, **NOTHING)
    assert "no operator fell back to the CPU, nothing was copied" in page.text
    assert (page.rows, page.names) == ([], [])


def test_a_page_without_a_device(package: Package, tmp_path: Path) -> None:
    page = written(package, tmp_path, **NOTHING, device_count=0, device_failure="no <card>")
    assert "Nothing was counted, because there is no device: no <card>" in page.text


def test_a_page_of_a_backend_that_was_not_loaded(package: Package, tmp_path: Path) -> None:
    package.device._failure = ImportError("torn <apart>")
    with package.device.timed_operators():
        page = written(package, tmp_path)
    assert "the backend could not be loaded: torn <apart>" in page.text
    assert package.library.calls == []


def test_the_same_report_is_the_same_bytes(package: Package, tmp_path: Path) -> None:
    package.library.answers.update(COUNTED)
    for name in ("one", "two"):
        package.device.fallback_report().to_html(str(tmp_path / name))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_file_is_replaced_as_a_whole(package: Package, tmp_path: Path) -> None:
    """Nothing else is left in the folder, and a link stays one."""
    package.library.answers.update(NOTHING)
    folder = tmp_path / "folder"
    folder.mkdir()
    target, link = folder / ("n" * 250), folder / "link"
    target.write_text("old " * 9999)
    os.link(target, tmp_path / "old")
    link.symlink_to(target)
    package.device.fallback_report().to_html(link)
    assert sorted(folder.iterdir()) == [link, target]
    assert link.is_symlink() and target.read_text().endswith("</html>\n")
    assert (tmp_path / "old").read_text().startswith("old")
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_path_that_cannot_be_written(package: Package, tmp_path: Path) -> None:
    package.library.answers.update(NOTHING)
    report = package.device.fallback_report()
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError, match=f"no such folder: '{missing}'"):
        report.to_html(missing / "page.html")
    (tmp_path / "page.html").mkdir()
    with pytest.raises(IsADirectoryError, match="cannot write the report") as caught:
        report.to_html(tmp_path / "page.html")
    assert (caught.value.errno, caught.value.filename) == (
        errno.EISDIR,
        str(tmp_path / "page.html"),
    )
    assert [one.name for one in tmp_path.iterdir() if one.name != "torch_foo"] == ["page.html"]


def test_a_page_in_the_current_folder(
    package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package.library.answers.update(NOTHING)
    monkeypatch.chdir(tmp_path)
    package.device.fallback_report().to_html("page.html")
    assert (tmp_path / "page.html").is_file()


def test_a_block_begins_and_ends(package: Package) -> None:
    timed = package.device.timed_operators()
    with pytest.raises(ZeroDivisionError), timed, timed:
        1 / 0  # noqa: B018
    calls = [call[1] for call in package.library.calls if call[0] == "time_kernels"]
    assert calls == [True, True, False, False]
    package.device.reset_fallback_report()
    assert package.library.called("reset_counts") == 1
