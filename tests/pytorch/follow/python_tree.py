# SPDX-License-Identifier: Apache-2.0
"""Names of an installed PyTorch's Python, looked up in its files without importing it."""

from __future__ import annotations

import ast
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from follow.releases import Release

Function = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Where the names of compiled modules are declared: a star import in torch/__init__.py has them.
COMPILED = {"torch": ("torch._C", "torch._C._VariableFunctions")}


@dataclass(frozen=True)
class Definition:
    """What a dotted name stands for."""

    kind: str  # "function", "class", "value", "module", "compiled"
    file: str = ""
    signature: str = ""
    source: str = ""  # without comments, documentation and layout
    node: ast.AST | None = None


class PythonTree:
    """The modules of one release."""

    def __init__(self, release: Release) -> None:
        self.release = release

    @cache  # noqa: B019  # a tree lives as long as the program
    def file(self, module: str) -> Path | None:
        base = self.release.folder.joinpath(*module.split("."))
        for place in (base / "__init__.py", base.with_suffix(".py"), base / "__init__.pyi",
                      base.with_suffix(".pyi")):  # fmt: skip
            if place.is_file():
                return place
        return None

    @cache  # noqa: B019
    def names(self, module: str) -> dict[str, ast.AST]:
        """What the top of a module defines, in whatever branch; the last definition counts."""
        path = self.file(module)
        return {} if path is None else members(ast.parse(self.release.text(path)).body)

    @cache  # noqa: B019
    def find(self, name: str) -> Definition | None:
        """The definition of `torch.a.b.c`; None if there is no such name."""
        return self._find(name, 0)

    def _find(self, name: str, depth: int) -> Definition | None:
        if depth > 20:
            return None
        parts = name.split(".")
        for count in range(len(parts), 0, -1):
            module = ".".join(parts[:count])
            if self.file(module) is not None:
                return self._inside(module, parts[count:], depth)
        return None

    def _inside(self, module: str, rest: list[str], depth: int) -> Definition | None:
        if not rest:
            return Definition("module", self._shown(module))
        node = self.names(module).get(rest[0])
        if node is None:
            others = [*COMPILED.get(module, ()), *self._stars(module)]
            for other in (one for one in others if self.file(one) is not None):
                found = self._find(".".join([other, *rest]), depth + 1)
                if found is not None:
                    return found
            if module == "torch._C" and len(rest) == 1 and self._in_library(rest[0]):
                return Definition("compiled")
            return None
        return self._of_node(module, node, rest, depth)

    def _of_node(
        self, module: str, node: ast.AST, rest: list[str], depth: int
    ) -> Definition | None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            target = imported(module, self.file(module), node, rest[0])
            return self._find(".".join([target, *rest[1:]]), depth + 1)
        if len(rest) == 1:
            return self._definition(module, node)
        if isinstance(node, ast.ClassDef):
            return self._member(module, node, rest[1:], depth)
        if isinstance(node, ast.AnnAssign) or isinstance(node, ast.Assign):
            return self._definition(module, node)  # a member of a value: its type is not known
        return None

    def _member(
        self, module: str, node: ast.ClassDef, rest: list[str], depth: int
    ) -> Definition | None:
        inner = {**attributes(node), **members(node.body)}.get(rest[0])
        if inner is not None:
            if len(rest) > 1 and isinstance(inner, ast.ClassDef):
                return self._member(module, inner, rest[1:], depth)
            return self._definition(module, inner)
        for base in node.bases:
            if isinstance(base, (ast.Name, ast.Attribute)):
                where = ast.unparse(base)
                full = where if where.startswith("torch.") else f"{module}.{where}"
                found = self._find(".".join([full, *rest]), depth + 1)
                if found is not None:
                    return found
        # Every class has these; PyTorch need not write them.
        return Definition("value") if hasattr(object, rest[0]) else None

    def _definition(self, module: str, node: ast.AST) -> Definition:
        file = self._shown(module)
        if isinstance(node, Function):
            signature = f"{node.name}({ast.unparse(node.args)})"
            return Definition("function", file, signature, source(node), node)
        if isinstance(node, ast.ClassDef):
            bases = ", ".join(ast.unparse(one) for one in node.bases)
            return Definition("class", file, f"{node.name}({bases})", source(node), node)
        return Definition("value", file, "", source(node), node)

    def _shown(self, module: str) -> str:
        path = self.file(module)
        return str(path.relative_to(self.release.folder)) if path else ""

    def _stars(self, module: str) -> Iterator[str]:
        path = self.file(module)
        for node in [] if path is None else statements(self._body(module)):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                yield absolute(module, path, node)

    @cache  # noqa: B019
    def _body(self, module: str) -> list[ast.stmt]:
        path = self.file(module)
        return [] if path is None else ast.parse(self.release.text(path)).body

    @cached_property
    def _binary(self) -> mmap.mmap | None:
        path = self.release.torch / "lib" / "libtorch_python.so"
        if not path.is_file():
            return None
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def _in_library(self, name: str) -> bool:
        """Whether the compiled module may define a name that its stub leaves out."""
        binary = self._binary
        return binary is not None and binary.find(b"\0" + name.encode() + b"\0") >= 0

    def loads(self, module: str, name: str) -> int:
        """How often the code of a module reads one of its global names."""
        tree = ast.Module(self._body(module), [])
        return sum(
            isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
            for one in ast.walk(tree)
        )


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and of its branches, not of its functions and classes."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            for part in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                yield from statements(handler.body)


def members(body: list[ast.stmt]) -> dict[str, ast.AST]:
    """What a body binds, except by star imports."""
    found: dict[str, ast.AST] = {}
    for node in statements(body):
        if isinstance(node, (*Function, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                found.setdefault(one.asname or one.name.split(".")[0], node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, node)
    return found


def attributes(node: ast.ClassDef) -> dict[str, ast.AST]:
    """What the methods of a class set on their object."""
    found: dict[str, ast.AST] = {}
    for one in ast.walk(node):
        targets = one.targets if isinstance(one, ast.Assign) else []
        targets = [one.target] if isinstance(one, ast.AnnAssign) else targets
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                found.setdefault(target.attr, one)
    return found


def absolute(module: str, path: Path | None, node: ast.ImportFrom) -> str:
    """The module that `from ..x import y` names."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    if path is None or path.stem != "__init__":
        parts = parts[:-1]
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def imported(module: str, path: Path | None, node: ast.Import | ast.ImportFrom, name: str) -> str:
    for one in node.names:
        if name == (one.asname or one.name.split(".")[0]):
            if isinstance(node, ast.Import):
                return one.name if one.asname else one.name.split(".")[0]
            return f"{absolute(module, path, node)}.{one.name}"
    return name


def source(node: ast.AST) -> str:
    """The code of a definition without its documentation."""
    made = ast.parse(ast.unparse(node))
    for one in ast.walk(made):
        body = getattr(one, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            if isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
                one.body = body[1:] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(made)
