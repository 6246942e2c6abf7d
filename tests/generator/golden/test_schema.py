# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema and the program know the same tables, keys and defaults."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tomllib
from test_golden import CASES, TORCH, program


def backendgen(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), *words], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def schema(tmp_path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(backendgen(tmp_path, "schema").stdout)
    return loaded


def names_in(screen: str) -> set[str]:
    """The words that the first note of a screen lists."""
    note = next(line for line in screen.splitlines() if line.startswith("note: "))
    return set(re.findall("`([^`]+)`", note))


def test_same_tables(schema: dict[str, Any], tmp_path: Path) -> None:
    tmp_path.joinpath("backend.toml").write_text("[zzzzzzzz]\n", "utf-8")
    assert names_in(backendgen(tmp_path, "check").stderr) == set(schema["properties"])


TABLES = ["backend", "torch", "autoload", "operators", "amp", "distributed", "wheel"]


@pytest.mark.parametrize("table", TABLES)
def test_same_keys(table: str, schema: dict[str, Any], tmp_path: Path) -> None:
    text = f"[{table}]\nzzzzzzzz = 1\n"
    if table != "backend":
        text += '[backend]\nname = "kite"\nversion = "0.1.0"\n'
    tmp_path.joinpath("backend.toml").write_text(text, "utf-8")
    screen = backendgen(tmp_path, "check").stderr
    part = screen[screen.index("unknown key `zzzzzzzz`") :]
    assert names_in(part) == set(schema["properties"][table]["properties"])


def test_defaults_are_those_of_the_program(schema: dict[str, Any], tmp_path: Path) -> None:
    """A description that states every default means the same as one that leaves them out."""
    short = '[backend]\nname = "kite"\nversion = "0.1.0"\n'
    tables = {name: table.get("properties", {}) for name, table in schema["properties"].items()}
    text = short
    for name, keys in tables.items():
        lines = [
            f"{key} = {json.dumps(rule['default'])}\n"
            for key, rule in keys.items()
            if "default" in rule
        ]
        text += "".join(lines) if name == "backend" else f"[{name}]\n" + "".join(lines)
    assert text.count("=") > short.count("=") + 5
    (tmp_path / "runtime.h").touch()
    (tmp_path / "short.toml").write_text(short, "utf-8")
    (tmp_path / "long.toml").write_text(text, "utf-8")
    one = backendgen(tmp_path, "check", "--format", "json", "short.toml")
    two = backendgen(tmp_path, "check", "--format", "json", "long.toml")
    assert (one.returncode, one.stderr) == (0, "")
    assert (two.returncode, two.stdout, two.stderr) == (0, one.stdout, "")


def named(name: str = "kite", **keys: str) -> dict[str, Any]:
    return {"backend": {"name": name, "version": "0.1.0", **keys}}


def scripts(group: str, name: str, target: str = "torch_kite.a:main") -> dict[str, Any]:
    return {**named(), "entry-points": {group: {name: target}}}


def kernel(function: str) -> dict[str, Any]:
    return {**named(), "operators": {"kernels": {"add.out": function}}}


def runtime(**keys: Any) -> dict[str, Any]:
    """The project has the file `a`."""
    table = {"version": "4.2.0", "libraries": ["a"], **keys}
    return {**named(), "wheel": {"runtime": table}}


def group(**keys: Any) -> dict[str, Any]:
    return {**named(), "distributed": keys}


RIGHT = [
    *(group(name=name) for name in ("kccl", "kite_2_ccl", "a", "k_")),
    *(group(enabled=enabled) for enabled in (True, False)),
    *(runtime(package=name) for name in ("foo-runtime", "foo_2-libs", "kitelibs")),
    *(runtime(requires=text) for text in (">=4.2,<5", "!=4.1", ">=4.2rc1,<1!0")),
    *(runtime(libraries=[path]) for path in ("a", "?", "*")),
    named(),
    named("my_kite"),
    named("kite_", package="kites"),
    *(named(package=name) for name in ("torch_kite", "kite2", "py_test")),
    *(named(runtime=name) for name in ("Runtime", "foo::Runtime", "a::std::B")),
    *(kernel(name) for name in ("kite::add", "kite::time", "kite::GEMM")),
    *(scripts("console_scripts", name) for name in ("kite-smi", "pipe", "a.b", "_a")),
    scripts("other", "python", "torch_kite.a"),
]
WRONG = [
    *(group(name=name) for name in ("gloo", "nccl", "xccl", "fake", "custom", "cuda", "cpu")),
    *(group(name=name) for name in ("Kccl", "k-ccl", "2ccl", "_ccl", "k__ccl", "", "k:ccl")),
    *(group(enabled=enabled) for enabled in ("true", 1)),
    *(runtime(package=name) for name in ("foo--runtime", "foo-", "Foo", "2foo", "foo.runtime")),
    *(runtime(requires=text) for text in ("4.2", "~=4.2", "==4.*", ">=4.2, <5", "")),
    *(runtime(libraries=[path]) for path in ("/a", "../a", "./a", "b/../a", "a//b", "[a]", "")),
    runtime(libraries=[]),
    {**named(), "wheel": {"runtime": {"version": "4.2.0"}}},
    {**named(), "wheel": {"runtime": {"libraries": ["a"]}}},
    *(named(name) for name in ("npu7", "x86_64", "a1", "_a", "a__b", "Kite", "cuda")),
    *(named(name) for name in ("errno", "stdout", "main", "std", "install", "torch")),
    *(named(package=name) for name in ("pip", "setuptools", "numpy", "sitecustomize", "test")),
    *(named(package=name) for name in ("torch", "csrc", "torch_kite_", "Kite")),
    *(named(runtime=name) for name in ("std::Runtime", "kite::__x", "kite::_X", "::kite")),
    *(kernel(name) for name in ("std::x", "at::x", "c10::x", "kite::NULL", "kite::errno", "k::")),
    *(scripts("console_scripts", name) for name in ("python", "Python3.12", "pip", "sh", ".a")),
    *(scripts("gui_scripts", name) for name in ("torchrun", "-a")),
    scripts("console_scripts", "kite-smi", "torch_kite.a"),
]


def as_toml(description: dict[str, Any]) -> str:
    """Tables become inline tables; other values are spelt as in JSON."""

    def value(one: Any) -> str:
        if not isinstance(one, dict):
            return json.dumps(one)
        return "{" + ", ".join(f"{json.dumps(k)} = {value(v)}" for k, v in one.items()) + "}"

    return "\n".join(f"{json.dumps(key)} = {value(one)}" for key, one in description.items())


@pytest.mark.parametrize("right", [True, False])
def test_same_verdicts(right: bool, schema: dict[str, Any], tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    (tmp_path / "a").touch()
    for description in RIGHT if right else WRONG:
        text = as_toml(description)
        assert tomllib.loads(text) == description
        tmp_path.joinpath("backend.toml").write_text(text, "utf-8")
        done = backendgen(tmp_path, "check", "--torch", str(TORCH))
        assert (done.returncode == 0) == right, (text, done.stderr)
        assert validator.is_valid(description) == right, text


def test_what_check_accepts_the_schema_accepts(schema: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    count = 0
    for case in sorted(CASES.glob("check_*")):
        if (case / "status").exists() or not (case / "in" / "backend.toml").is_file():
            continue
        text = (case / "in" / "backend.toml").read_text("utf-8-sig")
        errors = [error.message for error in validator.iter_errors(tomllib.loads(text))]
        assert errors == [], case.name
        count += 1
    assert count > 10
