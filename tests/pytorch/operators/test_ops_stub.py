# SPDX-License-Identifier: Apache-2.0
"""What `backendgen ops --stub` prints compiles, for kernels with arguments of every type."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from conftest import Compiler, PyTorch

WANTED = 60


def sample(operators: list[dict[str, str]]) -> list[str]:
    """Operators that have, together, every C++ type that occurs; then every so many-th one."""
    chosen: list[str] = []
    seen: set[str] = set()
    for operator in operators:
        head, parameters = re.fullmatch(r"(.*?) \S+\((.*)\);", operator["cpp"]).groups()
        types = {head} | {part.rsplit(" ", 1)[0] for part in parameters.split(", ")}
        if types <= seen:
            continue
        seen |= types
        chosen.append(operator["name"])
    step = max(1, len(operators) // WANTED)
    chosen += [operator["name"] for operator in operators[::step]]
    return list(dict.fromkeys(chosen))


def test_skeletons_compile(
    backendgen: Path,
    pytorch: PyTorch,
    generate: Callable[[dict[str, str]], Path],
    compiler: Compiler,
    tmp_path: Path,
) -> None:
    def ops(*words: str) -> str:
        command = [backendgen, "ops", "--torch", pytorch.folder, *words]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    operators = json.loads(ops("--format", "json"))["operators"]
    known = [operator for operator in operators if operator["cpp"]]
    assert len(known) > 0.98 * len(operators)
    names = sample(known)
    assert len(names) >= WANTED
    source = ops("--stub", ",".join(names))
    lines = re.findall(r'^//   "(.+)" = "(.+)"$', source, re.M)
    assert [name for name, _ in lines] == names
    functions = [function for _, function in lines]
    assert len(set(functions)) == len(functions)

    glue = generate(dict(lines))
    (tmp_path / "stub.cpp").write_text(source)
    warnings = ["-Werror=return-type", "-Werror=unused", "-Wno-unused-parameter"]
    done = compiler(tmp_path, "-fsyntax-only", "-O1", *warnings, "-I", glue, "stub.cpp")
    assert (done.returncode, done.stderr) == (0, "")
    print(f"{len(names)} skeletons compile")
