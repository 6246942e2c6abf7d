# SPDX-License-Identifier: Apache-2.0
"""Entry points: those that PyTorch has, and the groups that it reads from other packages."""

from __future__ import annotations

import ast
import configparser
from pathlib import Path

from follow.python_tree import Function, source
from follow.releases import Release
from follow.report import LOOK, NOTE, Row

STEP = "entry-points"


def own(release: Release) -> dict[str, str]:
    """`group: name` of each entry point of PyTorch, and its value."""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    if release.entry_points is not None:
        parser.read(release.entry_points, encoding="utf-8")
    return {
        f"[{group}] {name}": value for group in parser.sections() for name, value in
        parser[group].items()
    }  # fmt: skip


def groups(release: Release) -> dict[str, str]:
    """The groups that PyTorch's Python reads, each with the functions that do."""
    found: dict[str, list[str]] = {}
    for path in sorted(release.torch.rglob("*.py")):
        text = release.text(path)
        if "entry_points" not in text:
            continue
        tree = ast.parse(text)
        constants = {
            target.id: node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for function in ast.walk(tree):
            if isinstance(function, Function):
                for group in read_by(function, constants):
                    where = f"{path.relative_to(release.folder)}: {function.name}"
                    found.setdefault(group, []).append(f"{where}\n{source(function)}")
    return {group: "\n".join(places) for group, places in found.items()}


def read_by(function: ast.AST, constants: dict[str, object]) -> set[str]:
    found = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func).split(".")[-1]
        if called == "entry_points":
            for one in node.keywords:
                if one.arg == "group":
                    found.add(value_of(one.value, constants))
        if called in ("get", "select") and "eps" in ast.unparse(node.func):
            values = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "group")]
            found |= {value_of(one, constants) for one in values}
    return {one for one in found if one}


def value_of(node: ast.expr, constants: dict[str, object]) -> str:
    if isinstance(node, ast.Name):
        return str(constants.get(node.id, ""))
    return str(node.value) if isinstance(node, ast.Constant) else ""


def places(root: Path, group: str) -> tuple[str, ...]:
    """Where our tree names a group."""
    found = []
    for folder in ("generator", "templates", "python", "cmake-modules"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".cpp", ".h", ".json", ".cmake"):
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
                found += [
                    f"{path.relative_to(root)}:{number}"
                    for number, line in enumerate(lines, 1)
                    if f'"{group}' in line or f'{group}\\"' in line
                ]
    return tuple(found)


def compare(root: Path, before: Release, after: Release) -> list[Row]:
    rows = []
    old, new = own(before), own(after)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            change = "added" if name not in old else "gone" if name not in new else "changed"
            group = name[1:].split("]")[0]
            ours = places(root, group)
            level = LOOK if ours and change != "added" else NOTE
            rows.append(Row(STEP, level, name, change, old.get(name, ""), new.get(name, ""), ours))
    was, now = groups(before), groups(after)
    for group in sorted(was.keys() | now.keys()):
        if was.get(group) == now.get(group):
            continue
        ours = places(root, group)
        if group not in was:
            change, level = "PyTorch reads this group now: a backend may want it", LOOK
        elif group not in now:
            change, level = "PyTorch reads this group no more", LOOK if ours else NOTE
        else:
            change, level = "PyTorch reads this group in another way", LOOK if ours else NOTE
        rows.append(Row(STEP, level, group, change, was.get(group, ""), now.get(group, ""), ours))
    return rows
