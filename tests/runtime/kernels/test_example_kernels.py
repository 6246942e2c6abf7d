# SPDX-License-Identifier: Apache-2.0
"""Sixty kernels, dense and strided, do what the CPU does; each mode in processes of its own."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import tomllib
from conftest import MODES, ROOT, run

HERE = Path(__file__).parent
KERNELS = ROOT / "examples" / "kernels"
OP_DB = ROOT / "tests" / "pytorch" / "op_db"
ANSWERED = """
import json, sys, torch, torch_foo
has = torch._C._dispatch_has_kernel_for_dispatch_key
print([name for name in sys.argv[1:] if not has("aten::" + name, "PrivateUse1")])
"""
# With the backend loaded; it is not installed, so `import torch` does not find it by itself.
SAMPLES = """
import json, sys, torch_foo
sys.path.insert(0, sys.argv.pop(1))
import run_op_db
kernels = json.loads(sys.argv.pop(1))
sys.argv += [op.name for op in run_op_db.op_db if op.name.rpartition(".")[2] in kernels]
sys.exit(run_op_db.main())
"""


def kernels(mode: str) -> dict[str, object]:
    text = (KERNELS / mode / "backend.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["operators"]["kernels"]


def test_there_are_sixty_in_both() -> None:
    dense, strided = (kernels(mode) for mode in MODES)
    assert len(dense) == 60
    assert dense == strided


def test_all_are_registered(site: Path, mode: str) -> None:
    done = run(sys.executable, "-c", ANSWERED, *kernels(mode), PYTHONPATH=str(site))
    assert done.stdout.strip() == "[]"


def test_calls_do_what_they_do_on_the_cpu(site: Path, mode: str) -> None:
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / "check_semantics.py"]
    done = run(sys.executable, *command, PYTHONPATH=str(site), KERNELS_MODE=mode)
    assert done.returncode == 0, done.stdout[-8000:]
    assert re.search(r"^\d+ passed", done.stdout, re.M), done.stdout


@pytest.mark.parametrize(
    "which", ["those with kernels", pytest.param("all", marks=pytest.mark.long)]
)
def test_samples_of_pytorch(
    site: Path, mode: str, which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--kinds", "forward,backward,out"]
    for folder in (OP_DB, HERE):
        options += ["--expected", folder / "differences.toml"]
    names = sorted({name.partition(".")[0] for name in kernels(mode)}) if which != "all" else []
    command = ["-c", SAMPLES, OP_DB, json.dumps(names), *options]
    done = run(sys.executable, *command, PYTHONPATH=str(site))
    totals = re.findall(r"^\w+ \w+: \d+ calls.*", done.stdout, re.M)
    with capsys.disabled():
        print("".join(f"\n{mode}: {total}" for total in totals))
    assert done.returncode == 0, done.stdout[-8000:]
    assert len(totals) == 5
