# SPDX-License-Identifier: Apache-2.0
"""Operators that were added, removed or have another schema, as `backendgen ops --since` says."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

import tomllib

from follow.releases import Release
from follow.report import BROKEN, LOOK, NOTE, Row

STEP = "operators"
NAMED_IN = ("include", "templates", "generator")
_WORD = re.compile(r'"(?:aten::)?([a-zA-Z_]\w*(?:\.\w+)?)"|<ATen/ops/(\w+?)(?:_native)?\.h>')


class Failed(Exception):
    """Why backendgen could not compare."""


def kernels(root: Path) -> dict[str, set[str]]:
    """The operators with a kernel in an example, each with the line of its description."""
    found: dict[str, set[str]] = {}
    for path in sorted((root / "examples").rglob("backend.toml")):
        text = path.read_text(encoding="utf-8")
        names = tomllib.loads(text).get("operators", {}).get("kernels", {})
        lines = text.splitlines()
        for name in names:
            number = next(
                n for n, line in enumerate(lines, 1) if line.lstrip('" ').startswith(name)
            )
            found.setdefault(name, set()).add(f"{path.relative_to(root)}:{number}")
    return found


def named(root: Path) -> dict[str, set[str]]:
    """Texts of our code that may be operators, and the headers of operators that it includes."""
    found: dict[str, set[str]] = {}
    for folder in NAMED_IN:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h", ".py"):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for match in _WORD.finditer(line):
                    word = match[1] or match[2]
                    found.setdefault(word, set()).add(f"{path.relative_to(root)}:{number}")
            if path.suffix == ".py" and "torch.ops.aten." in (text := path.read_text("utf-8")):
                for name, number in called(text):
                    found.setdefault(name, set()).add(f"{path.relative_to(root)}:{number}")
    return found


def called(text: str) -> list[tuple[str, int]]:
    """The operators in `torch.ops.aten.NAME`."""
    nodes = (one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Attribute))
    return [(one.attr, one.lineno) for one in nodes if ast.unparse(one.value) == "torch.ops.aten"]


def compare(root: Path, before: Release, after: Release, backendgen: str) -> list[Row]:
    command = [backendgen, "ops", "--torch", after.torch, "--since", before.torch]
    done = subprocess.run(
        [*command, "--format", "json"], capture_output=True, text=True, cwd=root / "examples"
    )
    if done.returncode:
        raise Failed(
            done.stderr.strip().removeprefix("error: ")
            or f"backendgen ended with {done.returncode}"
        )
    return rows(json.loads(done.stdout)["changes"], kernels(root), named(root))


def rows(
    changes: list[dict[str, str | None]], ours: dict[str, set[str]], words: dict[str, set[str]]
) -> list[Row]:
    made = []
    for one in changes:
        name, change = str(one["name"]), str(one["change"])
        function = name.split(".")[0]
        kernel = ours.get(name, set())
        places = kernel | words.get(name, set())
        if change != "added":  # a name without its overload stands for all of them
            places |= words.get(function, set())
        level = NOTE if change == "added" or not places else BROKEN if kernel else LOOK
        what = {"added": "new operator", "removed": "operator gone", "changed": "operator changed"}
        before = "\n".join(filter(None, (one["before"], one["cpp_before"])))
        after = "\n".join(filter(None, (one["after"], one["cpp_after"])))
        made.append(Row(STEP, level, name, what[change], before, after, tuple(sorted(places))))
    return made
