# SPDX-License-Identifier: Apache-2.0
"""`backendgen ops` on the PyTorch that is installed: states, groups, changes, time."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, PyTorch, from_environment

STATES = ("kernel", "free", "built-in", "fallback", "error", "cannot")

# What PyTorch's dispatcher says of every operator: whether it has a kernel for any device, one for
# tensors on the CPU, and (with a backend) one that the backend registered.
ASK_DISPATCHER = """
import json, torch
computed = torch._C._dispatch_has_computed_kernel_for_dispatch_key
own = torch._C._dispatch_has_kernel_for_dispatch_key
host = ("CPU", "SparseCPU", "SparseCsrCPU", "QuantizedCPU")
print(json.dumps({
    name.removeprefix("aten::"): [
        computed(name, "PrivateUse1"),
        any(computed(name, key) for key in host),
        own(name, "PrivateUse1"),
    ]
    for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")
}))
"""


def ops(backendgen: Path, pytorch: PyTorch, *words: str, cwd: Path) -> str:
    return subprocess.run(
        [backendgen, "ops", "--torch", pytorch.folder, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture(scope="session")
def report(
    backendgen: Path, pytorch: PyTorch, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("empty")
    return json.loads(ops(backendgen, pytorch, "--format", "json", cwd=folder))


def by_backendkit(operator: dict[str, Any]) -> bool:
    return operator["state"] == "built-in" or operator["reason"] == "by BackendKit"


def test_every_operator_is_listed_once(
    report: dict[str, Any], pytorch: PyTorch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [operator["name"] for operator in report["operators"]]
    assert len(set(names)) == len(names) > 3000
    assert pytorch.version.startswith(report["torch"])
    states = Counter(operator["state"] for operator in report["operators"])
    assert report["states"] == {state: states[state] for state in STATES}
    with capsys.disabled():
        print(f"\n  PyTorch {report['torch']}, no kernels: {dict(states)}")


def test_states_are_what_the_dispatcher_says(report: dict[str, Any], pytorch: PyTorch) -> None:
    answer = pytorch.run("-c", ASK_DISPATCHER)
    assert answer.returncode == 0, answer.stderr
    dispatcher = json.loads(answer.stdout)
    states = {operator["name"]: operator["state"] for operator in report["operators"]}
    wrong = []
    for operator in report["operators"]:
        state = operator["state"]
        anywhere, on_cpu, _ = dispatcher[operator["name"]]
        if by_backendkit(operator):
            continue
        if state == "cannot" and operator["through"]:
            # It exists for any device, but calls another operator, which does not.
            right = anywhere and states[operator["through"]] == "cannot"
        else:
            right = state == ("free" if anywhere else "fallback" if on_cpu else "cannot")
        if not right:
            wrong.append((operator["name"], state, anywhere, on_cpu))
    assert wrong == []


def test_own_operators_are_those_of_the_headers(report: dict[str, Any]) -> None:
    """What the backend of the starter project registers, which has no kernels."""
    python = from_environment("BACKENDKIT_TEST_PYTHON")
    answer = subprocess.run([python, "-c", ASK_DISPATCHER], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    dispatcher = json.loads(answer.stdout)
    own = {name for name, (_, _, registered) in dispatcher.items() if registered}
    assert own == {op["name"] for op in report["operators"] if by_backendkit(op)}


def test_composites_have_the_pieces_of_the_header() -> None:
    """The starter project, which has no kernels, tells only their names."""
    header, listed = (
        re.findall(r'^ +(\{"[\w.]+"(?:, \{[^}]*\})?\}),', (ROOT / place).read_text(), re.M)
        for place in ("include/backendkit/composites.h", "generator/ops/builtin.cpp")
    )
    assert len(header) > 10
    assert header == listed


def test_every_operator_is_in_one_group(
    report: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = Counter(operator["group"] for operator in report["operators"])
    groups = {group["group"]: group for group in report["groups"]}
    assert sizes.keys() <= groups.keys()
    for name, group in groups.items():
        assert sum(group[state] for state in STATES) == sizes[name], name
    # A group without operators is a rule that has become wrong.
    assert [name for name in groups if not sizes[name]] == []
    with capsys.disabled():
        share = 100 * sizes["other"] / len(report["operators"])
        print(f"\n  {len(groups)} groups; in `other` {sizes['other']} operators, {share:.1f} %")
    assert sizes["other"] < 0.01 * len(report["operators"])
    others = {op["name"].split(".")[0] for op in report["operators"] if op["group"] == "other"}
    assert all("test" in name or "foobar" in name for name in others), others


def test_variants_are_in_one_group(report: dict[str, Any]) -> None:
    groups: dict[str, set[str]] = {}
    for operator in report["operators"]:
        base = operator["name"].split(".")[0]
        root = base if base.endswith("__") else base.removesuffix("_")
        groups.setdefault(root.removesuffix("_functional"), set()).add(operator["group"])
    assert {root: found for root, found in groups.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("operator", "group"),
    [
        ("add.out", "elementwise"),
        ("eq.Tensor_out", "comparison"),
        ("gelu_backward", "activation"),
        ("sum.IntList_out", "reduction"),
        ("sort.stable", "sorting"),
        ("baddbmm.out", "matrix"),
        ("linalg_svd", "linalg"),
        ("convolution_backward", "convolution"),
        ("avg_pool2d.out", "pooling"),
        ("native_layer_norm", "normalisation"),
        ("nll_loss_forward.output", "loss"),
        ("_scaled_dot_product_flash_attention", "attention"),
        ("upsample_bilinear2d.out", "vision"),
        ("embedding_dense_backward", "embedding"),
        ("index_put_", "indexing"),
        ("cat.out", "shape"),
        ("empty_strided", "creation"),
        ("_local_scalar_dense", "copy"),
        ("bernoulli_.float", "random"),
        ("lstm_cell", "rnn"),
        ("_foreach_add_.Scalar", "optimizer"),
        ("_fused_adamw_", "optimizer"),
        ("_coalesce", "sparse"),
        ("quantize_per_tensor", "quantized"),
        ("_nested_tensor_size", "nested"),
        ("_fft_r2c", "fft"),
        ("special_bessel_j0", "special"),
        ("erfinv.out", "special"),
        ("cudnn_convolution", "vendor"),
        ("is_same_size", "properties"),
    ],
)
def test_where_people_look(report: dict[str, Any], operator: str, group: str) -> None:
    (found,) = [op["group"] for op in report["operators"] if op["name"] == operator]
    assert found == group


def test_a_release_compared_with_itself(backendgen: Path, pytorch: PyTorch, tmp_path: Path) -> None:
    words = ("--since", str(pytorch.folder), "--format", "json")
    assert json.loads(ops(backendgen, pytorch, *words, cwd=tmp_path))["changes"] == []


def test_a_release_is_found_beside_the_active_one(
    backendgen: Path, pytorch: PyTorch, tmp_path: Path
) -> None:
    """An environment whose PyTorch says that it is an older one."""
    packages = tmp_path / "old" / "lib" / "python3.11" / "site-packages"
    (packages / "torch").mkdir(parents=True)
    (packages / "torch" / "version.py").write_text("__version__ = '2.11.0+cpu'\n")
    listed = Path("torchgen", "packaged", "ATen", "native", "native_functions.yaml")
    (packages / listed).parent.mkdir(parents=True)
    text = (pytorch.folder.parent / listed).read_text(encoding="utf-8")
    changed = text.replace(
        "- func: mm(Tensor self, Tensor mat2)", "- func: mm(Tensor self, Tensor x)"
    )
    assert changed != text
    (packages / listed).write_text(changed, encoding="utf-8")
    description = '[backend]\nname = "foo"\nversion = "0.1.0"\n'
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "backend.toml").write_text(
        description + '[operators.kernels]\n"mm.out" = "foo::mm"\n'
    )
    done = subprocess.run(
        [backendgen, "ops", "--torch", pytorch.folder, "--since", "2.11", "--format", "json"],
        cwd=tmp_path / "here",
        env={**os.environ, "VIRTUAL_ENV": str(tmp_path / "old")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (change,) = json.loads(done.stdout)["changes"]
    assert change["name"] == "mm"
    assert change["change"] == "changed"
    assert change["kernel"] == "foo::mm"
    assert change["before"] == "mm(Tensor self, Tensor x) -> Tensor"


def test_time_is_printed(
    backendgen: Path, pytorch: PyTorch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = []
    for words in (["add"], ["--format", "json"], ["--format", "html"]):
        times = []
        for _ in range(7):
            start = time.perf_counter()
            ops(backendgen, pytorch, *words, cwd=tmp_path)
            times.append(1000 * (time.perf_counter() - start))
        lines.append(f"backendgen ops {' '.join(words)}: {statistics.median(times):.0f} ms")
    with capsys.disabled():
        print("\n  " + "\n  ".join(lines))


def test_the_manual_has_every_key(
    report: dict[str, Any], backendgen: Path, pytorch: PyTorch, tmp_path: Path
) -> None:
    manual = (ROOT / "docs" / "ops.md").read_text(encoding="utf-8")
    keys = set(re.findall(r"`([\w.\[\]]+)`", "\n".join(re.findall(r"^\| (.*?) \|", manual, re.M))))
    wanted = set(report) | {f"operators[].{key}" for key in report["operators"][0]}
    other = tmp_path / "torch"
    other.mkdir()
    (other / "version.py").write_text("__version__ = '2.12.0'\n")
    listed = tmp_path / "torchgen" / "packaged" / "ATen" / "native" / "native_functions.yaml"
    listed.parent.mkdir(parents=True)
    listed.write_text("- func: gone(Tensor self) -> Tensor\n")
    words = ("--since", str(other), "--format", "json")
    changes = json.loads(ops(backendgen, pytorch, *words, cwd=tmp_path))
    wanted |= {"format"} | {f"changes[].{key}" for key in changes["changes"][0]}
    assert wanted - keys == set()
    assert {key for key in keys if "[]" in key} - wanted == set()
    states = re.findall(r"^\| `([\w-]+)` \| ", manual.split("## States")[1].split("##")[0], re.M)
    assert tuple(states) == STATES
