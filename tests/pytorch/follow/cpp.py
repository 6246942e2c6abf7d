# SPDX-License-Identifier: Apache-2.0
"""Our C++ as Clang reads it with the headers of a PyTorch release.

All headers of include/backendkit, and the glue of a project, are one translation unit. GCC's own
headers are used, because libclang comes without any.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from clang.cindex import Cursor, CursorKind, Diagnostic, Index, TranslationUnit

from follow.cursors import CONTAINERS, interesting, key, referenced, tokens

KEEP_GOING = 0x200  # CXTranslationUnit_KeepGoing: a missing header does not hide what follows
MAIN = "follow.cpp"


def compiler_folders() -> list[str]:
    """Where the C++ compiler looks for the system's headers."""
    command = [os.environ.get("CXX", "c++"), "-E", "-v", "-xc++", os.devnull]
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    inside = done.stderr.split("#include <...> search starts here:")[1].split("End of search")[0]
    return [line.strip() for line in inside.splitlines() if line.strip()]


#: The folders of our C++, and of the templates of the glue.
OURS = ("include", "templates")


@dataclass
class Use:
    """A declaration of PyTorch that our tree names, and where."""

    cursor: Cursor
    places: set[str] = field(default_factory=set)


class Program:
    """Our C++ with one release."""

    def __init__(
        self,
        root: Path,
        torch_include: Path,
        glue: dict[str, str] | None = None,
        project: Path | None = None,
    ) -> None:
        self.root = root.resolve()
        self.torch = torch_include.resolve()
        # Under the names of their templates, as far as one name is one template.
        self.glue = {f"templates/glue/{name}": text for name, text in (glue or {}).items()}
        self._lines: dict[str, list[str]] = {}
        self._words: dict[str, set[str]] = {}
        ours = self.root / "include"
        headers = sorted(str(path.relative_to(ours)) for path in ours.rglob("*.h"))
        # Files of the glue include these headers themselves; unnamed namespaces keep them apart.
        text = "#define AT_PER_OPERATOR_HEADERS\n"
        text += "".join(f"#include <{name}>\n" for name in [*headers, *self.glue])
        self.arguments = [
            "-xc++", "-std=c++20", "-nostdinc++", "-ferror-limit=0", f"-I{ours}", f"-I{self.root}",
            *([f"-I{project / 'csrc'}", f"-I{project / 'glue'}"] if project else []),
            f"-isystem{self.torch}", f"-isystem{self.torch / 'torch/csrc/api/include'}",
            *(f"-isystem{place}" for place in compiler_folders()),
        ]  # fmt: skip
        files = [(MAIN, text), *((str(self.root / name), one) for name, one in self.glue.items())]
        options = TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | KEEP_GOING
        self.unit = Index.create().parse(MAIN, self.arguments, files, options)

    def ours(self, cursor: Cursor) -> str | None:
        """The path of a cursor in our tree, or None for one elsewhere.

        An environment with PyTorch may lie in our tree too, below build/.
        """
        path = self._inside(cursor, self.root)
        return path if path and path.split(os.sep)[0] in OURS else None

    def theirs(self, cursor: Cursor) -> str | None:
        """The path of a cursor in PyTorch's folder of headers."""
        return self._inside(cursor, self.torch)

    def _inside(self, cursor: Cursor, folder: Path) -> str | None:
        file = cursor.location.file
        if file is None:
            return None
        name = os.path.normpath(file.name)
        start = str(folder) + os.sep
        return name[len(start) :] if name.startswith(start) else None

    def place(self, cursor: Cursor) -> str:
        return self.line(self.ours(cursor) or "", cursor.location.line)

    def line(self, path: str, number: int) -> str:
        """A line of a file of ours; of generated glue, the line of the template with its text."""
        template = self.root / path
        if path not in self.glue or not template.is_file():
            return f"{path}:{number}"
        text = self.glue[path].splitlines()[number - 1].strip()
        lines = self._lines.setdefault(path, template.read_text(encoding="utf-8").splitlines())
        for at, one in enumerate(lines, 1):
            if one.strip() == text:
                return f"{path}:{at}"
        return path

    @cached_property
    def top(self) -> list[tuple[str, Cursor]]:
        """What stands at the top of our files, with the file."""
        found = ((self.ours(one), one) for one in self.unit.cursor.get_children())
        return [(path, one) for path, one in found if path is not None]

    def walk(self) -> Iterator[Cursor]:
        for _, one in self.top:
            yield from one.walk_preorder()

    @cached_property
    def includes(self) -> dict[str, set[str]]:
        """The headers outside our tree that our files include, and where."""
        found: dict[str, set[str]] = {}
        for path, one in self.top:
            if one.kind == CursorKind.INCLUSION_DIRECTIVE:
                found.setdefault(one.spelling, set()).add(self.line(path, one.location.line))
        return found

    @cached_property
    def uses(self) -> dict[str, Use]:
        """The declarations of PyTorch that our files name, by their qualified name and kind."""
        found: dict[str, Use] = {}
        for cursor in self.walk():
            for named in referenced(cursor):
                if self.theirs(named) and interesting(named) and self.is_written(cursor, named):
                    use = found.setdefault(key(named), Use(named))
                    use.places.add(self.place(cursor))
        return found

    def is_written(self, cursor: Cursor, named: Cursor) -> bool:
        """Whether the name stands in our file, not in what a macro of PyTorch expands to."""
        path = self.ours(cursor)
        if path is None:
            return False
        if path not in self._words:
            text = self.glue.get(path) or (self.root / path).read_text(encoding="utf-8")
            self._words[path] = set(re.findall(r"\w+", text))
        name = named.spelling.split("<")[0].removeprefix("~")
        return name.startswith("operator") or name in self._words[path]

    @cached_property
    def macros(self) -> dict[str, set[str]]:
        """The macros of PyTorch that our files use, and where."""
        found: dict[str, set[str]] = {}
        for path, one in self.top:
            if one.kind == CursorKind.MACRO_INSTANTIATION and one.spelling in self.definitions:
                found.setdefault(one.spelling, set()).add(self.line(path, one.location.line))
        return found

    @cached_property
    def definitions(self) -> dict[str, Cursor]:
        """PyTorch's macros."""
        children = self.unit.cursor.get_children()
        macros = (one for one in children if one.kind == CursorKind.MACRO_DEFINITION)
        return {one.spelling: one for one in macros if self.theirs(one) is not None}

    @cached_property
    def _namespaces(self) -> dict[str, dict[str, list[Cursor]]]:
        """The declarations in each namespace by their names."""
        found: dict[str, dict[str, list[Cursor]]] = {}
        pending = [("", self.unit.cursor)]
        while pending:
            name, scope = pending.pop()
            members = found.setdefault(name, {})
            for one in scope.get_children():
                if one.kind == CursorKind.NAMESPACE:
                    pending.append((f"{name}::{one.spelling}" if name else one.spelling, one))
                elif one.kind.is_declaration() and one.spelling:
                    members.setdefault(one.spelling, []).append(one)
        return found

    def find(self, name: str) -> list[Cursor]:
        """All declarations in PyTorch with a qualified name."""
        parts = name.split("::")
        for count in range(len(parts) - 1, -1, -1):
            scope = self._namespaces.get("::".join(parts[:count]))
            if scope is None:
                continue
            found = scope.get(parts[count], [])
            for part in parts[count + 1 :]:
                inner = [one.get_definition() or one for one in found if one.kind in CONTAINERS]
                found = [
                    member
                    for one in inner
                    for member in one.get_children()
                    if member.spelling == part
                ]
            return [one for one in found if self.theirs(one) is not None]
        return []

    @cached_property
    def errors(self) -> dict[str, str]:
        """What Clang refuses in our files: place and message."""
        found = {}
        for one in self.unit.diagnostics:
            place = one.location.file and self.in_our_tree(one.location.file.name)
            if one.severity >= Diagnostic.Error and place:
                found.setdefault(self.line(place, one.location.line), one.spelling)
        return found

    def in_our_tree(self, name: str) -> str | None:
        path, start = os.path.normpath(name), str(self.root) + os.sep
        return path[len(start) :] if path.startswith(start) else None


def macros_of(path: Path) -> dict[str, list[str]]:
    """The macros that one header defines, each with its words."""
    if not path.is_file():
        return {}
    options = TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | KEEP_GOING
    unit = Index.create().parse(str(path), ["-xc++", "-nostdinc", "-nostdinc++"], options=options)
    children = unit.cursor.get_children()
    macros = (one for one in children if one.kind == CursorKind.MACRO_DEFINITION)
    return {one.spelling: tokens(one) for one in macros if one.location.file}
