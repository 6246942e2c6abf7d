# SPDX-License-Identifier: Apache-2.0
"""Build folders of the project here or above that no longer fit."""

from __future__ import annotations

import re
from pathlib import Path

from backendkit_tools.doctor_report import Wishes, doubtful, good, shown

__all__ = ["judge"]


def judge(wishes: Wishes) -> None:
    project = _project()
    if project is None or not wishes.project:
        return
    caches = sorted(
        [*project.glob("build/CMakeCache.txt"), *project.glob("build/*/CMakeCache.txt")]
    )
    wrong = False
    for cache in caches:
        text = cache.read_text(encoding="utf-8", errors="replace")
        why = _stale(text, cache, project)
        if not why:
            continue
        wrong = True
        folder = shown(str(cache.parent))
        doubtful(
            "build", "build", f"{folder} is stale: {why}", f"`rm -r '{folder}'`, and build again"
        )
    if caches and not wrong:
        good("build", "build", f"{len(caches)} build folder{'s' * (len(caches) != 1)} up to date")


def _project() -> Path | None:
    here = Path.cwd()
    return next((p for p in (here, *here.parents) if (p / "backend.toml").is_file()), None)


def _entry(text: str, name: str) -> str:
    found = re.search(rf"^{re.escape(name)}:\w+=(.+)$", text, re.M)
    return found[1] if found else ""


def _stale(text: str, cache: Path, project: Path) -> str:
    home = _entry(text, "CMAKE_HOME_DIRECTORY")
    if home and Path(home) != project and not str(Path(home)).startswith(f"{project}/"):
        return f"it was made for the sources in {home}"
    own = _entry(text, "CMAKE_CACHEFILE_DIR")
    if own and Path(own) != cache.parent:
        return f"it was made as {own}"
    for name, what in (
        ("Python_EXECUTABLE", "its Python"),
        ("BackendKit_DIR", "its BackendKit"),
        ("BACKENDKIT_TORCH", "its PyTorch"),
        ("CMAKE_CXX_COMPILER", "its compiler"),
        ("CMAKE_MAKE_PROGRAM", "its ninja"),
    ):
        path = _entry(text, name)
        if path.startswith("/") and not Path(path).exists():
            return f"{what} is not there any more: {path}"
    rules = cache.parent / "build.ninja"
    if rules.is_file():
        lines = rules.read_text(encoding="utf-8", errors="replace")
        for path in sorted(set(re.findall(r"(/[^\s:]*/torch)/include\b", lines))):
            if not Path(path).is_dir():
                return f"its PyTorch is not there any more: {path}"
    return ""
