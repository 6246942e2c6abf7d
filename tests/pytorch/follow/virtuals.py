# SPDX-License-Identifier: Apache-2.0
"""The virtual functions of PyTorch's classes that ours derive from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from clang.cindex import Cursor, CursorKind

from follow.cpp import Program
from follow.cursors import CONTAINERS, bases, declaration, meaning, overridden, qualified
from follow.declarations import body
from follow.report import BROKEN, LOOK, NOTE, Row

STEP = "virtuals"
METHODS = (CursorKind.CXX_METHOD, CursorKind.DESTRUCTOR, CursorKind.CONVERSION_FUNCTION)


@dataclass
class Method:
    """A member function of ours, and the functions of PyTorch that it overrides."""

    name: str
    place: str
    says_override: bool
    overrides: list[Cursor] = field(default_factory=list)


@dataclass
class Derived:
    """A class of ours that derives from PyTorch's."""

    name: str
    place: str
    program: Program
    bases: list[Cursor]  # PyTorch's, with their own bases
    methods: dict[str, Method] = field(default_factory=dict)  # by name and type

    @cached_property
    def virtuals(self) -> dict[str, Cursor]:
        """The virtual functions that the bases have, each as its most derived class has it."""
        found: dict[str, Cursor] = {}
        for base in self.bases:
            for one in base.get_children():
                if one.kind in METHODS and one.is_virtual_method():
                    found.setdefault(slot(one), one)
        return found


def slot(method: Cursor) -> str:
    """What an override has to repeat: name, parameters, const. Two destructors share one."""
    if method.kind == CursorKind.DESTRUCTOR:
        return "destructor"
    parameters = ", ".join(one.type.get_canonical().spelling for one in method.get_arguments())
    return f"{method.spelling}({parameters}){' const' if method.is_const_method() else ''}"


def all_bases(cursor: Cursor) -> list[Cursor]:
    found: list[Cursor] = []
    for base in bases(cursor):
        found += [base, *all_bases(base)]
    return found


def derived_classes(program: Program) -> dict[str, Derived]:
    """Our classes with a base in PyTorch, or with an `override` whose base is a parameter."""
    found: dict[str, Derived] = {}
    for cursor in program.walk():
        if cursor.kind not in CONTAINERS or not cursor.is_definition():
            continue
        theirs = [base for base in all_bases(cursor) if program.theirs(base)]
        made = Derived(qualified(cursor), program.place(cursor), program, theirs)
        for one in cursor.get_children():
            if one.kind in METHODS:
                made.methods[slot(one)] = method_of(program, one)
        if not theirs and any(one.says_override for one in made.methods.values()):
            made.bases = candidates(program, made)
            resolve_by_name(made)
        if made.bases:
            found[f"{made.name}:{made.place.split(':')[0]}"] = made
    return found


def method_of(program: Program, cursor: Cursor) -> Method:
    says = any(one.kind == CursorKind.CXX_OVERRIDE_ATTR for one in cursor.get_children())
    pending, found = overridden(cursor), []
    while pending:
        one = pending.pop(0)
        if program.theirs(one):
            found.append(one)
        pending += overridden(one)
    return Method(cursor.spelling, program.place(cursor), says, found)


def candidates(program: Program, made: Derived) -> list[Cursor]:
    """Classes of PyTorch that the same file names: one of them is the parameter's base."""
    path = made.place.split(":")[0]
    found: dict[str, Cursor] = {}
    wanted = {one.name for one in made.methods.values() if one.says_override}
    for use in program.uses.values():
        if not any(place.startswith(f"{path}:") for place in use.places):
            continue
        scope = use.cursor if use.cursor.kind in CONTAINERS else use.cursor.semantic_parent
        if scope is None or scope.kind not in CONTAINERS:
            continue
        scope = scope.get_definition() or scope
        members = {
            one.spelling
            for one in scope.get_children()
            if one.kind in METHODS and one.is_virtual_method()
        }
        if wanted & members:
            found[qualified(scope)] = scope
    return list(found.values())


def resolve_by_name(made: Derived) -> None:
    for method in made.methods.values():
        if method.says_override:
            named = (one for one in made.virtuals.values() if one.spelling == method.name)
            method.overrides = list(named)


def compare(before: Program, after: Program) -> list[Row]:
    old, new = derived_classes(before), derived_classes(after)
    rows: list[Row] = []
    for name, one in old.items():
        other = new.get(name)
        if other is None:
            change = "no class of PyTorch is its base any more"
            rows.append(Row(STEP, LOOK, one.name, change, places=(one.place,)))
        else:
            rows += of_class(one, other)
    return rows


def of_class(old: Derived, new: Derived) -> Iterator[Row]:
    told: set[str] = set()  # names of functions that a row is about
    for name, method in old.methods.items():
        for base in method.overrides[:1]:
            row = of_override(new, name, method, base)
            if row is not None:
                told.add(method.name)
                yield row
    ours = {one.name for one in new.methods.values() if one.overrides}
    for name, cursor in new.virtuals.items():
        if name in old.virtuals or cursor.spelling in told | ours:
            continue
        kind = BROKEN if cursor.is_pure_virtual_method() else LOOK
        change = f"new virtual function, which {new.name} does not override"
        text = declaration(cursor)
        yield Row(STEP, kind, qualified(cursor), change, "", text, (new.place,))
    for name, cursor in old.virtuals.items():
        if cursor.spelling in told | ours:
            continue
        yield from of_inherited(cursor, new.virtuals.get(name), new)


def of_override(new: Derived, name: str, method: Method, base: Cursor) -> Row | None:
    """What became of the function of PyTorch that a method of ours overrides."""
    full, text = qualified(base), declaration(base)
    ours = new.methods.get(name)
    now = ours.overrides[:1] if ours else []
    place = (ours or method).place
    if now and meaning(now[0]) != meaning(base):
        later = declaration(now[0])
        kind = BROKEN if place in new.program.errors else LOOK
        return Row(STEP, kind, full, "the function we override changed", text, later, (place,))
    if now:
        return None
    alike = [one for one in new.virtuals.values() if one.spelling == method.name]
    later = "\n".join(declaration(one) for one in alike)
    change = "the function we override has another signature" if alike else "not virtual or gone"
    kind = BROKEN if method.says_override else LOOK
    return Row(STEP, kind, full, change, text, later, (place,))


def of_inherited(old: Cursor, new: Cursor | None, ours: Derived) -> Iterator[Row]:
    """What became of a virtual function that we do not override."""
    place = (ours.place,)
    if new is None:
        change = f"gone; {ours.name} did not override it"
        yield Row(STEP, NOTE, qualified(old), change, declaration(old), "", place)
        return
    was, now = declaration(old), declaration(new)
    if new.is_pure_virtual_method() and not old.is_pure_virtual_method():
        change = f"has no default any more, and {ours.name} does not override it"
        yield Row(STEP, BROKEN, qualified(new), change, was, now, place)
    elif meaning(old) != meaning(new):
        change = f"changed; {ours.name} does not override it"
        yield Row(STEP, NOTE, qualified(new), change, was, now, place)
    elif (one := body(old)) != (two := body(new)):
        change = f"its default changed, and {ours.name} does not override it"
        yield Row(STEP, LOOK, qualified(new), change, one, two, place)
