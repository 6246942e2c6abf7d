# SPDX-License-Identifier: Apache-2.0
"""Installed distributions as they lie in site-packages, broken ones too."""

from __future__ import annotations

import ast
import configparser
import csv
import email.parser
import importlib.machinery
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Dist", "constants", "defines", "distributions", "find_module", "module_file", "numbers"]


@dataclass(frozen=True)
class Dist:
    """A `.dist-info` folder."""

    folder: Path
    name: str  # normalized: torch_foo
    version: str

    def read(self, file: str) -> str | None:
        """A file of the folder; None when it is not there, cannot be read, or is not UTF-8."""
        try:
            return (self.folder / file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def entry_points(self, group: str) -> dict[str, str]:
        """Raises configparser.Error for a file that is none."""
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read_string(self.read("entry_points.txt") or "")
        return dict(parser[group]) if parser.has_section(group) else {}

    def record(self) -> list[tuple[Path, str, str]]:
        """The files of RECORD with their hashes and sizes, which may be empty."""
        try:
            rows = list(csv.reader(io.StringIO(self.read("RECORD") or "")))
        except csv.Error:
            return []
        site = self.folder.parent
        return [(site / row[0], row[1], row[2]) for row in rows if len(row) == 3 and row[0]]


def distributions(paths: list[str]) -> tuple[list[Dist], list[str]]:
    """All of them in the order of Python's path, and the folders of it that cannot be read."""
    found, unreadable = [], []
    for path in paths:
        try:
            names = sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            unreadable.append(path)
            continue
        for name in names:
            if name.endswith(".dist-info") and not name.startswith("~"):
                found.append(_dist(Path(path, name)))
    return found, unreadable


def _dist(folder: Path) -> Dist:
    name, _, version = folder.name[: -len(".dist-info")].partition("-")
    try:
        with open(folder / "METADATA", "rb") as file:
            headers = email.parser.BytesHeaderParser().parse(file)
        name, version = str(headers["Name"] or name), str(headers["Version"] or version)
    except OSError:
        pass  # reported as a folder without files
    return Dist(folder, re.sub(r"[-_.]+", "_", name).lower(), version)


def find_module(name: str, paths: list[str]) -> importlib.machinery.ModuleSpec | None:
    """The module as Python's own finder of files sees it, without an import."""
    places = paths
    spec = None
    whole = ""
    for part in name.split("."):
        whole = f"{whole}.{part}" if whole else part
        spec = importlib.machinery.PathFinder.find_spec(whole, places)
        if spec is None:
            return None
        places = list(spec.submodule_search_locations or [])
    return spec


def module_file(spec: importlib.machinery.ModuleSpec) -> Path | None:
    origin = spec.origin
    return Path(origin) if origin and origin.endswith(".py") else None


def constants(path: Path) -> dict[str, Any]:
    """The module's names with literal values. Raises OSError, SyntaxError or ValueError."""
    values = {}
    for node in ast.parse(path.read_bytes()).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(node, (ast.Assign, ast.AnnAssign)):
                try:
                    values[target.id] = ast.literal_eval(node.value)  # type: ignore[arg-type]
                except ValueError:
                    continue  # computed when the module is imported
    return values


def defines(path: Path, name: str) -> bool:
    """Whether a module's source has a name at its top level, or imports all names of another."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = {alias.asname or alias.name for alias in node.names}
            if name in names or "*" in names:
                return True
    return False


def numbers(version: str) -> tuple[int, ...]:
    """The release of a version: (2, 13, 0) of "2.13.0+cpu"."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
