# SPDX-License-Identifier: Apache-2.0
"""Headers that we include, and the declarations and macros in them that we use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clang.cindex import Cursor, CursorKind

from follow.cpp import Program, macros_of
from follow.cursors import CONTAINERS, FUNCTIONS, declaration, meaning, qualified, tokens
from follow.report import BROKEN, LOOK, NOTE, Row

STEP = "headers"
#: Lists of PyTorch's that our code repeats: header, and the file that has to follow it.
REPEATED = {"ATen/autocast_mode.h": "generator/torch/autocast_lists.cpp"}


def compare(before: Program, after: Program) -> list[Row]:
    return [
        *headers(before, after),
        *errors(before, after),
        *declarations(before, after),
        *macros(before, after),
        *repeated(before, after),
    ]


def level(after: Program, places: set[str]) -> str:
    """BROKEN where Clang refuses one of the places with the new release."""
    return BROKEN if places & set(after.errors) else LOOK


def header(folder: Path, name: str) -> Path | None:
    for place in (folder / name, folder / "torch/csrc/api/include" / name):
        if place.is_file():
            return place
    return None


def headers(before: Program, after: Program) -> Iterator[Row]:
    """Headers that we include and that are gone; where a header of that name is now."""
    for name, places in before.includes.items():
        old = header(before.torch, name)
        if old is None or header(after.torch, name) is not None:
            continue
        others = sorted(
            str(path.relative_to(after.torch)) for path in after.torch.rglob(Path(name).name)
        )
        change = f"gone; now {' or '.join(others)}?" if others else "gone"
        yield Row(STEP, level(after, places), f"<{name}>", change, places=tuple(sorted(places)))


def errors(before: Program, after: Program) -> Iterator[Row]:
    """What Clang refuses in our code with the new release only."""
    for place, text in after.errors.items():
        if before.errors.get(place) != text:
            yield Row(STEP, BROKEN, "Clang", text, places=(place,))


def declarations(before: Program, after: Program) -> Iterator[Row]:
    for name, use in before.uses.items():
        old, places = use.cursor, tuple(sorted(use.places))
        full = qualified(old)
        new = after.uses.get(name)
        found = [new.cursor] if new else [one for one in after.find(full) if same_sort(old, one)]
        if not found:
            text = declaration(old)
            yield Row(STEP, level(after, use.places), full, "gone", text, "", places)
            continue
        theirs = {meaning(one): one for one in found}
        same = theirs.get(meaning(old))
        if same is None:
            text, now = declaration(old), "\n".join(declaration(one) for one in found)
            change = "its declaration changed"
            yield Row(STEP, level(after, use.places), full, change, text, now, places)
            continue
        if before.theirs(old) != after.theirs(same):
            yield Row(STEP, NOTE, full, f"moved to {after.theirs(same)}", places=places)
        was, now = body(old), body(same)
        if was != now:
            yield Row(STEP, NOTE, full, "its inline code changed", was, now, places)


def same_sort(old: Cursor, new: Cursor) -> bool:
    """A class may become an alias or a template, but not a function."""
    return (old.kind in FUNCTIONS) == (new.kind in FUNCTIONS)


def body(cursor: Cursor) -> str:
    """The words of a function that the header defines; nothing for other declarations."""
    made = cursor.get_definition()
    if made is None or made.kind in CONTAINERS or made.kind not in FUNCTIONS:
        return ""
    for one in made.get_children():
        if one.kind == CursorKind.COMPOUND_STMT:
            return "\n".join(lines(tokens(one)))
    return ""


def lines(words: list[str]) -> list[str]:
    """Words as lines that can be compared: one for each statement."""
    made: list[str] = [""]
    for word in words:
        made[-1] = f"{made[-1]} {word}".strip()
        if word in ("{", "}", ";", ",", "\\"):
            made.append("")
    return [line for line in made if line]


def macros(before: Program, after: Program) -> Iterator[Row]:
    for name, places in before.macros.items():
        old, new = before.definitions[name], after.definitions.get(name)
        where = tuple(sorted(places))
        was = "\n".join(lines(tokens(old)))
        if new is None:
            yield Row(STEP, level(after, places), name, "macro gone", was, "", where)
        elif was != (now := "\n".join(lines(tokens(new)))):
            kind = NOTE if name.startswith("TORCH_VERSION") else LOOK
            yield Row(STEP, kind, name, "macro changed", was, now, where)


def repeated(before: Program, after: Program) -> Iterator[Row]:
    """Macros of a header that lists what one of our files lists too."""
    for name, place in REPEATED.items():
        old, new = (macros_of(one.torch / name) for one in (before, after))
        for macro in sorted(old | new):
            was, now = ("\n".join(lines(one.get(macro, []))) for one in (old, new))
            if was != now:
                yield Row(STEP, LOOK, f"{macro} in <{name}>", "changed", was, now, (place,))
