# SPDX-License-Identifier: Apache-2.0
"""A compiler of the vendor's is found by its entry point, as docs/compile.md shows it."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import ROOT, Environment, run

#: Trains a model compiled as one graph, and as it is, and says what became of both.
USE = """
import sys

import torch
from torch import nn
from torch._dynamo import list_backends
from torch._dynamo.utils import counters

assert "foo" in list_backends(exclude_tags=())
assert "torch_foo.compiler" not in sys.modules

def trained(compiles):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to("foo")
    run = torch.compile(model, backend="foo", fullgraph=True) if compiles else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.arange(20.0, device="foo").reshape(5, 4) / 20
    for _ in range(3):
        optimizer.zero_grad()
        loss = run(x).square().mean()
        loss.backward()
        optimizer.step()
    assert loss.device.type == "foo"
    return [loss.item(), *(p.detach().cpu() for p in model.parameters())]

torch.testing.assert_close(trained(True), trained(False))
assert "torch_foo.compiler" in sys.modules
print(counters["aot_autograd"]["ok"], dict(counters["graph_break"]))
"""


def test_a_compiler_by_its_entry_point(
    tools: Path, builder: Environment, environment: Environment, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "compile.md").read_text(encoding="utf-8")
    page = page[page.index("## A compiler of your own") : page.index("## Inductor")]
    (toml, code) = re.findall(r"^```(?:toml|python)\n(.*?)^```$", page, re.M | re.S)
    run(tools.parent / "backendgen", "-C", tmp_path, "new", "foo", cwd=tmp_path)
    project = tmp_path / "foo"
    with (project / "backend.toml").open("a", encoding="utf-8") as description:
        description.write("\n" + toml[toml.index("[entry-points.") :])
    (project / "torch_foo" / "compiler.py").write_text(code, encoding="utf-8")
    builder.pip("wheel", "--wheel-dir", tmp_path, project, cwd=tmp_path)
    environment.pip("install", *tmp_path.glob("*.whl"), cwd=tmp_path)
    assert environment.says(USE, tmp_path).splitlines()[-1] == "1 {}"
