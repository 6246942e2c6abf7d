# SPDX-License-Identifier: Apache-2.0
"""What `check` accepts as the schema of a custom operator PyTorch and Python accept too."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import torch

TORCH = str(Path(torch.__file__).parent)
ACCEPTED = [
    "a(Tensor x) -> Tensor",
    "b.over(Tensor x, int n=1, *, bool up=True) -> ()",
    "c(Tensor? x, Tensor y) -> (Tensor first, Tensor second)",
    "d(Tensor[] xs, int[] dims=[]) -> Tensor[]",
    "e(Tensor?[] xs, Scalar s=1) -> Tensor",
    "f(Tensor x, int[2] stride=1, int[2] padding=[0, 0]) -> Tensor",
    "g(Tensor x, bool[3] mask) -> (Tensor, Tensor, Tensor)",
    "h(Tensor x, float p=0.5, float? q=None, int? n=2) -> (Tensor, float)",
    "i(Tensor x, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    "j(Tensor x, str mode='mean', str? other=None) -> int",
    "k_(Tensor(a!) x) -> ()",
    "l_(Tensor(a!) x, Tensor y) -> Tensor(a!)",
    "m(Tensor x, SymInt n, SymInt[] sizes) -> Tensor",
    "n(Tensor x, Scalar? s=None, Layout? layout=None, MemoryFormat? f=None) -> Tensor",
    "o.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    "p(Tensor x, Generator? generator=None) -> bool",
    "q(Tensor x, float[] scales=[1.5, -2e-3], bool b=False) -> Tensor",
    "r(Tensor x, int[]? dims=None) -> Scalar",
    "s(Tensor x, int[1]? dim=None, bool keepdim=False) -> Tensor",
    "t(Tensor(a) x) -> Tensor(a)",
    "u(Tensor(a -> *) x, int n) -> Tensor(a)[]",
    "v(Tensor(a) x, Tensor(b) y) -> (Tensor(a), Tensor(b), Tensor)",
    "w(Tensor(a) x, Tensor(b!) y) -> Tensor(a)",
]
REFUSED = [
    "a(int[] size, *, Device device) -> Tensor",
    "b() -> Tensor",
    "c(Tensor[]? xs) -> int",
    "d.if(Tensor x) -> Tensor",
    "class(Tensor x) -> Tensor",
    "e.default(Tensor x) -> Tensor",
    "f.__call__(Tensor x) -> Tensor",
    "g(Tensor x, int a=1, int b) -> Tensor",
    "h(Tensor x, int[2] s=[1,2,]) -> Tensor",
    "i(Tensor x, int[] s=None) -> Tensor",
    "j(Tensor x, int[] s=1) -> Tensor",
    "k(Tensor x, int[] s=[True]) -> Tensor",
    "l(Tensor x, int s=[1]) -> Tensor",
    "m(Tensor x, int s=99999999999999999999) -> Tensor",
    "n(Tensor x, Tensor y=1) -> Tensor",
    "o(Tensor x, Tensor[] y=[]) -> Tensor",
    "p(Tensor x, int s=1.5) -> Tensor",
    'q(Tensor x, int s="a") -> Tensor',
    "r(Tensor x, str s=1) -> Tensor",
    "s(Tensor x, float s=None) -> Tensor",
    "t(Tensor x, Tensor y=None) -> Tensor",
    "u(Tensor x, ScalarType dtype=6) -> Tensor",
    "name(Tensor x) -> Tensor",
    "v.op(Tensor x) -> Tensor",
    "w(Tensor?? x) -> Tensor",
    "x(Tensor x, int[][] n) -> Tensor",
    "y(Tensor x) -> bool[]",
    "z(Tensor x, bool[99999999999999999999] m) -> Tensor",
    "aa(Tensor x, int NULL) -> Tensor",
    "ab(Tensor(a!)? x, Tensor y) -> ()",
    "ac(Tensor x) -> Tensor 0",
    "ad(Tensor x) -> Tensor(a!)",
    "ae(Tensor(a!) x) -> Tensor(b!)",
    "af(Tensor(a) x) -> Tensor(b)",
    "ag(Tensor(a!) x) -> Tensor(a)",
    "ah(Tensor x) -> Tensor(a)",
]


def project(folder: Path, schemas: list[str]) -> None:
    lines = ['[backend]\nname = "foo"\nversion = "0.1.0"\n']
    for number, schema in enumerate(schemas):
        text = json.dumps(f"foo::{schema}")
        lines.append(f'[[operators.custom]]\nschema = {text}\nkernel = "foo::kernel_{number}"\n')
    (folder / "backend.toml").write_text("\n".join(lines), encoding="utf-8")


def backendgen(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [os.environ["BACKENDGEN"], "-C", str(folder), *words, "--torch", TORCH]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("schema", ACCEPTED)
def test_pytorch_accepts_them_too(schema: str) -> None:
    assert str(torch._C.parse_schema(f"foo::{schema}")).startswith("foo::")


def test_python_accepts_what_is_generated(tmp_path: Path) -> None:
    project(tmp_path, ACCEPTED)
    done = backendgen(tmp_path, "generate", "--out", "glue")
    assert done.returncode == 0, done.stderr
    package = tmp_path / "glue" / "python" / "torch_foo"
    for name in ("ops.py", "ops.pyi"):
        tree = ast.parse((package / name).read_text(encoding="utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {schema.partition("(")[0].replace(".", "_") for schema in ACCEPTED} <= names


def test_check_refuses_each(tmp_path: Path) -> None:
    project(tmp_path, REFUSED)
    text = (tmp_path / "backend.toml").read_text(encoding="utf-8").splitlines()
    done = backendgen(tmp_path, "check")
    assert done.returncode == 1
    lines = {int(line) for line in re.findall(r"--> backend.toml:(\d+):", done.stderr)}
    accepted = [
        line
        for number, line in enumerate(text, 1)
        if line.startswith("schema") and number not in lines
    ]
    assert accepted == []
