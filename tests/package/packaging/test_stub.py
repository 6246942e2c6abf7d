# SPDX-License-Identifier: Apache-2.0
"""A kernel begun by `backendgen ops --stub` in a new project, down to the installed wheel."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import Environment, run

CALL = """
import torch
x = torch.ones(2, device="foo")
print((x + 1).tolist())
try:
    torch.neg(x)
except NotImplementedError as error:
    print(error)
"""


def test_a_skeleton_is_called(environment: Environment, tmp_path: Path) -> None:
    backendgen = [environment.python, "-m", "backendkit"]
    path = {"VIRTUAL_ENV": str(environment.programs.parent)}
    run(*backendgen, "new", "foo", cwd=tmp_path, **path)
    project = tmp_path / "foo"
    stub = run(*backendgen, "ops", "--stub", "neg.out", cwd=project, **path).stdout
    (line,) = re.findall(r'^//   (".+" = ".+")$', stub, re.M)
    (project / "csrc" / "kernels.cpp").write_text(stub)
    description = project / "backend.toml"
    text = description.read_text()
    if "[operators.kernels]" in text:
        text = text.replace("[operators.kernels]", f"[operators.kernels]\n{line}")
    else:
        text += f"\n[operators.kernels]\n{line}\n"
    description.write_text(text)
    kernels = run(*backendgen, "ops", "neg", "--kernels", cwd=project, **path).stdout
    assert re.search(r"^kernel +neg\.out +foo::neg$", kernels, re.M)

    environment.pip("wheel", "--wheel-dir", tmp_path, project, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    environment.pip("install", wheel, cwd=tmp_path)
    added, error, *_ = environment.says(CALL, tmp_path).splitlines()
    assert added == "[2.0, 2.0]"
    assert error.startswith("foo::neg (aten::neg.out) is not written yet")
