# SPDX-License-Identifier: Apache-2.0
"""Whether what our Python uses of PyTorch is still there, and the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from follow.python_tree import Definition, Function, PythonTree, members
from follow.python_uses import DERIVES, REPLACES, TESTS, Reader, Uses
from follow.releases import Release
from follow.report import BROKEN, LOOK, NOTE, Row

STEP = "python"
#: Functions that we replace all of, by the start of their names: a new one may need the same.
FAMILIES = {"torch._C": ("_accelerator_get", "_accelerator_set", "_accelerator_reset")}


def compare(root: Path, before: Release, after: Release) -> list[Row]:
    reader = Reader(root)
    old, new = PythonTree(before), PythonTree(after)
    rows: list[Row] = []
    for name, use in sorted(reader.uses.items()):
        rows += of_name(name, use, old, new)
    rows += families(reader, old, new)
    return rows


def of_name(name: str, use: Uses, old: PythonTree, new: PythonTree) -> Iterator[Row]:
    if name.startswith(("torch.ops.", "torch.classes.")):
        return  # made when they are called; the operators are compared elsewhere
    was, now = old.find(name), new.find(name)
    if was is None:
        return  # of older releases, or of an object whose class is not known
    places = tuple(sorted(use.places))
    if now is None:
        level = LOOK if TESTS in use.how else BROKEN
        yield Row(STEP, level, name, "gone", text(was), "", places)
        return
    if was.kind != now.kind and "compiled" not in (was.kind, now.kind):
        yield Row(STEP, LOOK, name, f"was a {was.kind}, is a {now.kind}", "", "", places)
        return
    ours = bool(use.how & {REPLACES, DERIVES})
    if was.signature != now.signature:
        change = "its signature changed" if was.kind == "function" else "its bases changed"
        yield Row(STEP, LOOK, name, change, was.signature, now.signature, places)
    elif was.kind == "class":
        yield from of_class(name, use, was, now)
    elif was.source != now.source:
        level = LOOK if ours else NOTE
        change = "its code changed" if was.kind == "function" else "its value changed"
        yield Row(STEP, level, name, change, was.source, now.source, places)
    if was.file != now.file:
        yield Row(STEP, NOTE, name, f"moved from {was.file} to {now.file}", "", "", places)
    if REPLACES in use.how:
        yield from unused(name, places, old, new)


def of_class(name: str, use: Uses, was: Definition, now: Definition) -> Iterator[Row]:
    """The members of a class that ours derives from."""
    if DERIVES not in use.how:
        return
    places = tuple(sorted(use.places))
    assert isinstance(was.node, ast.ClassDef) and isinstance(now.node, ast.ClassDef)
    one, two = members(was.node.body), members(now.node.body)
    for member in sorted(one.keys() | two.keys()):
        before, after = signature(one.get(member)), signature(two.get(member))
        if before != after:
            change = "new" if member not in one else "gone" if member not in two else "changed"
            yield Row(STEP, LOOK, f"{name}.{member}", change, before, after, places)


def signature(node: ast.AST | None) -> str:
    if isinstance(node, Function):
        return f"def {node.name}({ast.unparse(node.args)})"
    return "" if node is None else ast.unparse(node).splitlines()[0]


def unused(name: str, places: tuple[str, ...], old: PythonTree, new: PythonTree) -> Iterator[Row]:
    """A name that we replace in a module which reads it no more: replacing it does nothing."""
    module, _, last = name.rpartition(".")
    if old.file(module) and new.file(module) and old.loads(module, last):
        if not new.loads(module, last):
            change = "we replace it, but its module does not use it any more"
            yield Row(STEP, LOOK, name, change, "", "", places)


def families(reader: Reader, old: PythonTree, new: PythonTree) -> Iterator[Row]:
    for module, starts in FAMILIES.items():
        known = {name for name in reader.uses if name.startswith(f"{module}.")}
        places = {place for name in known if name.split(".")[-1].startswith(starts)
                  for place in reader.uses[name].places}  # fmt: skip
        for name in sorted(new.names(module).keys() - old.names(module).keys()):
            if name.startswith(starts) and f"{module}.{name}" not in known and places:
                change = "new; we replace the others of its kind"
                yield Row(STEP, LOOK, f"{module}.{name}", change, "", "", tuple(sorted(places)))


def text(one: Definition) -> str:
    return one.signature or one.source
