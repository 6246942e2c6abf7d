# SPDX-License-Identifier: Apache-2.0
"""The names of PyTorch that our Python reads, calls, derives from and replaces.

A small interpreter of the modules' syntax trees: it knows which variables hold a module or a class
of PyTorch, and which hold known strings, and follows both into the functions that get them.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from follow.python_tree import Function

PYTHON = ("templates/python", "templates/custom/python")
READS, REPLACES, DERIVES, TESTS = "reads", "replaces", "derives", "tests"
_GUARDS = ("hasattr", "getattr", "known_to_c")


@dataclass
class Uses:
    """How our tree uses one dotted name of PyTorch."""

    how: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Value:
    """What a variable may be: names of PyTorch, or strings."""

    paths: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    def __or__(self, other: Value) -> Value:
        return Value(self.paths | other.paths, self.texts | other.texts)


NOTHING = Value()
Names = dict[str, Value]


class Reader:
    """Reads all Python of our tree; `uses` is the result."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.uses: dict[str, Uses] = {}
        self.unknown: list[str] = []  # places where PyTorch is named in a way that is not followed
        self.modules: dict[str, dict[str, ast.AST]] = {}  # our functions by module and name
        self.scopes: dict[ast.AST, Names] = {}  # parameters that calls have bound
        self.pending: deque[tuple[Path, ast.AST, Names]] = deque()
        self.files: dict[ast.AST, tuple[Path, Names]] = {}
        trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in self.paths()}
        for path, tree in trees.items():
            self.modules[path.stem] = {
                node.name: node for node in ast.walk(tree) if isinstance(node, Function)
            }
        for path, tree in trees.items():
            names: Names = {}
            Body(self, path, names).run(tree.body)
            for node in ast.walk(tree):
                if isinstance(node, Function):
                    self.files.setdefault(node, (path, names))
        for node in list(self.files):
            self.bind(node, {})
        while self.pending:
            path, function, names = self.pending.popleft()
            Body(self, path, names).run(function.body)  # type: ignore[attr-defined]

    def paths(self) -> Iterator[Path]:
        for folder in PYTHON:
            for path in sorted((self.root / folder).rglob("*.py")):
                if "{{" not in path.read_text(encoding="utf-8"):
                    yield path

    def add(self, name: str, how: str, path: Path, node: ast.AST) -> None:
        use = self.uses.setdefault(name, Uses())
        use.how.add(how)
        use.places.add(f"{path.relative_to(self.root)}:{node.lineno}")  # type: ignore[attr-defined]

    def bind(self, function: ast.AST, given: Names) -> None:
        """Reads a function with what its parameters are; again if a call adds to that."""
        known = self.scopes.get(function)
        merged = {**(known or {})}
        for name, value in given.items():
            merged[name] = merged.get(name, NOTHING) | value
        if known == merged or function not in self.files:
            return
        self.scopes[function] = merged
        path, names = self.files[function]
        self.pending.append((path, function, {**names, **merged}))


class Body:
    """Reads one body; nested functions see its variables."""

    def __init__(self, reader: Reader, path: Path, names: Names) -> None:
        self.reader, self.path, self.names = reader, path, names

    def run(self, body: list[ast.stmt]) -> None:
        for node in body:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, Function):
            for one in [*node.decorator_list, *node.args.defaults]:
                self.value(one)
            self.reader.files[node] = (self.path, self.names)
            self.reader.scopes.pop(node, None)
            self.reader.bind(node, {})
        elif isinstance(node, ast.ClassDef):
            for base in node.bases:
                for path in self.value(base).paths:
                    self.reader.add(path, DERIVES, self.path, base)
            self.run(node.body)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imports(node)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self.loop(node.target, node.iter)
            self.run([*node.body, *node.orelse])
        else:
            for one in ast.iter_child_nodes(node):
                if isinstance(one, ast.expr):
                    self.value(one)
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                self.assign(node)
            for part in ("body", "orelse", "finalbody"):
                self.run(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                self.run(handler.body)

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        for one in node.names:
            if isinstance(node, ast.Import):
                full, name = one.name, one.asname or one.name.split(".")[0]
                held = full if one.asname else name
            else:
                full = held = f"{node.module}.{one.name}"
                name = one.asname or one.name
            if full.split(".")[0] == "torch" and not getattr(node, "level", 0):
                self.reader.add(full, READS, self.path, node)
                self.names[name] = Value(frozenset({held}))

    def assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = NOTHING if node.value is None else self.value(node.value)
        for target in targets:
            if isinstance(target, ast.Name):
                self.names[target.id] = self.names.get(target.id, NOTHING) | value
            elif isinstance(target, (ast.Tuple, ast.List)):
                parts = getattr(node.value, "elts", [])
                for one, part in zip(target.elts, parts):
                    if isinstance(one, ast.Name):
                        self.names[one.id] = self.value(part)
            elif isinstance(target, (ast.Attribute, ast.Subscript)):
                for path in self.value(target).paths:
                    self.reader.add(path, REPLACES, self.path, target)

    def loop(self, target: ast.expr, values: ast.expr) -> None:
        if isinstance(values, ast.Call) and isinstance(values.func, ast.Attribute):
            if values.func.attr == "items":  # of a table, whose keys are what is known
                values = values.func.value
        given = self.value(values)
        rows = getattr(values, "elts", [])
        if isinstance(target, ast.Name):
            self.names[target.id] = given
        elif isinstance(target, ast.Tuple):
            for index, one in enumerate(target.elts):
                if isinstance(one, ast.Name):
                    made = NOTHING if rows or index else given
                    for row in rows:
                        if isinstance(row, ast.Tuple) and len(row.elts) > index:
                            made |= self.value(row.elts[index])
                    self.names[one.id] = made

    # --- expressions ---

    def value(self, node: ast.expr) -> Value:
        """What an expression may be; adds the uses in it."""
        if isinstance(node, ast.Constant):
            return Value(texts=frozenset({node.value})) if isinstance(node.value, str) else NOTHING
        if isinstance(node, ast.Name):
            return self.names.get(node.id, NOTHING)
        if isinstance(node, ast.Attribute) and node.attr == "__name__":
            return Value(texts=self.value(node.value).paths)
        if isinstance(node, ast.Attribute):
            return self.members(node, self.value(node.value), frozenset({node.attr}), READS)
        if isinstance(node, ast.Subscript):
            key = self.value(node.slice)
            inner = node.value
            if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "vars" and inner.args:
                return self.members(node, self.value(inner.args[0]), key.texts, READS)
            self.value(inner)
            return NOTHING
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.JoinedStr):
            return Value(texts=self.joined(node))
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            made = NOTHING
            for one in node.elts:
                made |= self.value(one.value if isinstance(one, ast.Starred) else one)
            return made
        if isinstance(node, ast.Dict):
            keys = [self.value(one) for one in node.keys if one is not None]
            for one in node.values:
                self.value(one)
            return Value(texts=frozenset().union(*(one.texts for one in keys)))
        if isinstance(node, ast.Lambda):
            return self.value(node.body)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            for one in node.generators:
                self.loop(one.target, one.iter)
        made = NOTHING
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.expr):
                inner_value = self.value(one)
                if isinstance(node, (ast.BoolOp, ast.IfExp)):
                    made |= inner_value
        return made

    def members(self, node: ast.AST, of: Value, names: frozenset[str], how: str) -> Value:
        paths = {f"{path}.{name}" for path in of.paths for name in names}
        for path in paths:
            self.reader.add(path, how, self.path, node)
        return Value(frozenset(paths))

    def joined(self, node: ast.JoinedStr) -> frozenset[str]:
        texts = {""}
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            texts = {one + two for one in texts for two in self.value(inner).texts}
        return frozenset(texts)

    def call(self, node: ast.Call) -> Value:
        name = ast.unparse(node.func)
        arguments = [self.value(one) for one in node.args]
        for keyword in node.keywords:
            self.value(keyword.value)
        if name == "importlib.import_module" and arguments:
            modules = frozenset(one for one in arguments[0].texts if one.startswith("torch"))
            for module in modules:
                self.reader.add(module, READS, self.path, node)
            return Value(modules)
        if name == "when_imported":
            self.when_imported(node, arguments)
            return NOTHING
        if name in ("getattr", "hasattr") and len(arguments) > 1:
            tests = name == "hasattr" or len(arguments) > 2
            how = TESTS if tests else READS
            return self.members(node, arguments[0], arguments[1].texts, how)
        if name == "setattr" and len(arguments) > 2:
            return self.members(node, arguments[0], arguments[1].texts, REPLACES)
        if name.endswith(".get") and isinstance(node.func, ast.Attribute):
            of = node.func.value
            if isinstance(of, ast.Call) and ast.unparse(of.func) == "vars" and of.args:
                return self.members(node, self.value(of.args[0]), arguments[0].texts, TESTS)
        if name.endswith("known_to_c"):
            self.members(node, Value(frozenset({"torch._C"})), arguments[0].texts, TESTS)
            return arguments[0]
        if isinstance(node.func, ast.Call) and ast.unparse(node.func.func) == "type":
            for base in arguments[1].paths if len(arguments) > 1 else ():
                self.reader.add(base, DERIVES, self.path, node)
        self.value(node.func)
        self.pass_on(node, name, arguments)
        return arguments[0] if name == "inspect.unwrap" else NOTHING

    def when_imported(self, node: ast.Call, arguments: list[Value]) -> None:
        """`when_imported("torch.x", _deferred("_module", "function"))` calls with that module."""
        modules = frozenset(one for one in arguments[0].texts if one.split(".")[0] == "torch")
        target = node.args[1] if len(node.args) > 1 else None
        if not arguments[0].texts or not isinstance(target, ast.Call):
            self.reader.unknown.append(f"{self.path.relative_to(self.reader.root)}:{node.lineno}")
        if not modules or not isinstance(target, ast.Call):
            return
        for module in modules:
            self.reader.add(module, READS, self.path, node)
        file, function = (sorted(self.value(one).texts)[0] for one in target.args[:2])
        self.give(self.reader.modules.get(file, {}).get(function), [Value(modules)])

    def pass_on(self, node: ast.Call, name: str, arguments: list[Value]) -> None:
        parts = name.split(".")
        module = parts[0] if len(parts) == 2 else self.path.stem
        self.give(self.reader.modules.get(module, {}).get(parts[-1]), arguments)

    def give(self, function: ast.AST | None, arguments: list[Value]) -> None:
        if function is None:
            return
        names = [one.arg for one in function.args.args]  # type: ignore[attr-defined]
        given = {name: one for name, one in zip(names, arguments) if one != NOTHING}
        self.reader.bind(function, given)
