# SPDX-License-Identifier: Apache-2.0
"""The site in a browser. Screens go to the folder `artifacts` of the build; people look at them.

Chromium's windows are at least 500 pixels wide, so a phone is a frame of 390 in a page.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

DESKTOP, PHONE = (1280, 900), (390, 844)
DARK = "--blink-settings=preferredColorScheme=0"
#: Of a frame: it runs no scripts. Without scripts anywhere, Chromium takes no pictures.
NO_SCRIPTS = 'sandbox="allow-same-origin"'

# In a page that shows all pages of the site in frames: asks each what is visible in it.
ASK = """
<script>
const show = (one) => one !== null && one.checkVisibility();
function look(frame) {
  const page = frame.contentDocument, root = page.documentElement;
  const all = (what) => [...page.querySelectorAll(what)];
  const right = (one) => one.getBoundingClientRect().right;
  const wide = all("body *").filter((one) => right(one) > root.clientWidth + 1
    && !one.closest(".md-header, .md-sidebar, .md-tabs, .md-search, .md-skip, pre")
    && !one.closest(".md-typeset__scrollwrap"));
  return {
    page: frame.title,
    wider: root.scrollWidth > root.clientWidth,
    wide: wide.slice(0, 3).map((one) => one.outerHTML.slice(0, 120)),
    heading: show(page.querySelector(".md-content h1")),
    code: all(".md-content pre").every(show),
    pictures: all(".md-content img").every((one) => show(one) && one.naturalWidth > 0),
    nav: all(".md-nav--primary a.md-nav__link, .md-tabs__link").filter(show).length,
    search: show(page.querySelector(".md-search__form")),
    dark: getComputedStyle(page.body).backgroundColor,
  };
}
addEventListener("load", () => setTimeout(() => {
  const seen = [...document.querySelectorAll("iframe")].map(look);
  document.documentElement.dataset.seen = JSON.stringify(seen);
}, 500));
</script>
"""


@pytest.fixture(scope="module")
def browser() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.fail("no Chromium here: install it; on Debian `./dev test` does")
    return found


def browse(browser: str, folder: Path, *words: str) -> str:
    """Runs the browser without a window and a network; nothing may fail in a page."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses root with it
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            "--host-resolver-rules=MAP * ~NOTFOUND",  # a request to a host is a message
            f"--user-data-dir={folder / 'profile'}",
            "--virtual-time-budget=8000",
            *sandbox,
            *words,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    # A frame that must run no scripts says so for each of its page.
    expected = "Blocked script execution"
    lines = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert [line for line in lines if expected not in line] == []
    return done.stdout


def frame(address: str, title: str, size: tuple[int, int], attribute: str = "") -> str:
    width, height = size
    return (
        f'<iframe src="{address}" title="{html.escape(title)}" width="{width}" height="{height}" '
        f'style="border: 0" {attribute}></iframe>'
    )


def pages_of(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if path.name != "404.html")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no_scripts"])
def test_every_page(browser: str, site: Path, tmp_path: Path, scripts: bool) -> None:
    """No page scrolls sideways; with and without JavaScript all of it is there."""
    frames = [
        frame(one.as_uri(), one.stem, size, "" if scripts else NO_SCRIPTS)
        for size in (DESKTOP, PHONE)
        for one in pages_of(site)
    ]
    (tmp_path / "all.html").write_text("<!doctype html>" + "\n".join(frames) + ASK)
    words = ["--disable-web-security", "--allow-file-access-from-files"]  # for the asking page
    if not scripts:
        words.append(DARK)
    text = browse(browser, tmp_path, *words, "--dump-dom", (tmp_path / "all.html").as_uri())
    encoded = re.search(r'data-seen="([^"]*)"', text)
    assert encoded, text[-2000:]
    seen = json.loads(html.unescape(encoded[1]))
    assert len(seen) == len(frames) > 70
    assert [(one["page"], one["wide"]) for one in seen if one["wider"]] == []
    for what in ("heading", "code", "pictures"):
        assert [one["page"] for one in seen if not one[what]] == [], what
    on_desktops = seen[: len(seen) // 2]
    assert min(one["nav"] for one in on_desktops) >= 5
    assert {one["search"] for one in on_desktops} == {scripts}
    (background,) = {one["dark"] for one in seen}
    red = int(re.search(r"\d+", background)[0])
    assert red > 240 if scripts else red < 40


#: The pages in a picture, one below the other, each on a desktop and on a phone.
SCREENS = [
    "index.html",
    "tutorial.html#3-a-first-kernel",
    "description.html#operators",
    "reference/python.html#memory",
]


@pytest.mark.parametrize("look", ["light", "dark", "no-javascript"])
def test_screens(browser: str, site: Path, artifacts: Path, tmp_path: Path, look: str) -> None:
    scripts = NO_SCRIPTS if look == "no-javascript" else ""
    words = [] if look == "light" else [DARK]
    shown = tmp_path / "shown.html"
    rows = [
        "".join(frame(f"{site.as_uri()}/{page}", page, size, scripts) for size in (DESKTOP, PHONE))
        for page in SCREENS
    ]
    style = "<style>body { margin: 0; background: gray } iframe { vertical-align: top }</style>"
    shown.write_text(f"<!doctype html>{style}{'<br>'.join(rows)}")
    picture = artifacts / f"site-{look}.png"
    picture.unlink(missing_ok=True)
    width, height = DESKTOP[0] + PHONE[0], DESKTOP[1] * len(SCREENS)
    window = f"--window-size={width},{height}"
    browse(browser, tmp_path, *words, window, f"--screenshot={picture}", shown.as_uri())
    data = picture.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (width, height)
    assert len(data) > 200_000, "the picture is nearly empty"
