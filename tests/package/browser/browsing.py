# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, for the tests of pages."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def artifacts() -> Path:
    """The folder for pictures, at which people look."""
    folder = Path(os.environ.get("BACKENDKIT_CACHE") or ROOT / "build") / "artifacts"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def browse(folder: Path, *words: str) -> str:
    """What the browser prints; nothing may fail in the page."""
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
