# SPDX-License-Identifier: Apache-2.0
"""Each kind of change, planted in a small PyTorch, is reported with its place in a small tree."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from follow import __main__ as command
from follow import bump, operators, report, symbols
from follow.cpp import Program
from follow.python_uses import Reader
from follow.releases import Release
from follow.virtuals import derived_classes

ROOT = Path(__file__).resolve().parents[3]

HEADER = """
#pragma once
#define C10_CHECK(x) ((x) ? 0 : 1)
namespace c10 {
struct Device { int index() const noexcept { return 0; } };
enum class Kind { CPU, PrivateUse1 };
inline int twice(int x) { return x + x; }
int warn(const char* text);
struct Guard {
  virtual ~Guard() = default;
  virtual Device device(int index) const = 0;
  virtual int streams() const { return 1; }
  virtual void unused() {}
};
}
"""
OURS = """
#pragma once
#include <c10/guard.h>
namespace backendkit {
struct Ours final : public c10::Guard {
  c10::Device device(int) const override { return {}; }
  int streams() const override { return c10::twice(2); }
};
inline int kind() { return C10_CHECK(c10::Kind::PrivateUse1 != c10::Kind::CPU); }
inline int say() { return c10::warn("a"); }
}
"""
PYTHON = """import importlib
import torch
class Engine(torch._engine.Base):
    pass
def patch(module):
    original = module.count
    vars(module)["count"] = lambda: original()
def ask():
    return hasattr(torch, "maybe"), torch.run(1)
def _deferred(a, b):
    return a, b
def start(when_imported):
    when_imported("torch.acc", _deferred("_ours", "patch"))
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def a_torch(folder: Path, version: str) -> Path:
    write(
        folder,
        {
            "torch/version.py": f"__version__ = '{version}+cpu'\n",
            "torch/__init__.py": (
                "from . import _engine\ndef run(x):\n    return x\ndef maybe(): ...\n"
                "def load():\n    return entry_points(group='torch.backends')\n"
            ),
            "torch/_engine.py": "class Base:\n    def step(self): ...\n",
            "torch/acc.py": "def count():\n    return 1\ndef other():\n    return count()\n",
            "torch/include/c10/guard.h": HEADER,
            "torch/include/ATen/autocast_mode.h": "#define AT_FP32(_) _(exp) _(log)\n",
            "torch-1.dist-info/entry_points.txt": "[torch.backends]\na = torch:a\n",
        },
    )
    return folder


@pytest.fixture
def trees(tmp_path: Path) -> Iterator[tuple[Path, Path, Path]]:
    """Our tree and two equal releases."""
    write(
        tmp_path / "ours",
        {
            "include/backendkit/ours.h": OURS,
            "templates/python/common/_ours.py": PYTHON,
            "templates/python/common/setup.py": 'GROUP = "torch.backends"\n',
            "generator/torch/releases.cpp": "  {{1, 0, 2}, 10, 13},\n  {{1, 1, 0}, 10, 13},\n",
            "tests/pytorch/matrix/results.py": 'RELEASES = "1.0.2 1.1.0".split()\n',
        },
    )
    yield tmp_path / "ours", a_torch(tmp_path / "1", "1.1.0"), a_torch(tmp_path / "2", "1.2.0")


def run(
    trees: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str],
    only: str = "headers,virtuals,python,entry-points", *more: str,
) -> tuple[int, list[dict[str, object]]]:  # fmt: skip
    ours, old, new = trees
    status = command.main(
        ["1.2.0", "--root", str(ours), "--with", str(new), "--from-dir", str(old), "--only", only,
         "--folder", str(ours / "build"), "--format", "json", *more]
    )  # fmt: skip
    return status, json.loads(capsys.readouterr().out)["rows"]


@pytest.fixture(autouse=True)
def no_glue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BACKENDGEN", raising=False)


def test_equal_releases_have_nothing_to_report(
    trees: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(trees, capsys) == (0, [])


H, OUR_H, OUR_PY = "torch/include/c10/guard.h", "include/backendkit/ours.h", "_ours.py"
CHANGES = [
    # file, text, its replacement, level, name, a part of what is said, the place in our tree
    (H, "int warn(const char* text);", "", "broken", "c10::warn", "gone", ":10"),
    (H, "int warn(const char* text);", "int warn(const char* text, bool b = false);", "look",
     "c10::warn", "declaration changed", ":10"),
    (H, "index() const noexcept", "index() const", None, "", "", ""),
    (H, "int twice(int x) { return x + x", "int twice(int x) { return 2 * x", "note", "c10::twice",
     "inline code", ":7"),
    (H, "PrivateUse1 }", "Private }", "broken", "c10::Kind::PrivateUse1", "gone", ":9"),
    (H, "((x) ? 0 : 1)", "((x) ? 0 : 2)", "look", "C10_CHECK", "macro changed", ":9"),
    (H, "Device device(int index) const = 0", "Device device(long index) const = 0", "broken",
     "c10::Guard::device", "another signature", ":6"),
    (H, "int index) const = 0", "int) const = 0", None, "", "", ""),
    (H, "virtual int streams() const {", "int streams() const {", "broken", "c10::Guard::streams",
     "not virtual or gone", ":7"),
    (H, "virtual int streams() const {", "virtual int streams() const noexcept {", "broken",
     "c10::Guard::streams", "we override changed", ":7"),
    (H, "virtual void unused() {}", "virtual void unused() {}\n virtual void fresh() {}", "look",
     "c10::Guard::fresh", "new virtual", ":5"),
    (H, "virtual void unused() {}", "virtual void unused() {}\n virtual void fresh() = 0;",
     "broken", "c10::Guard::fresh", "new virtual", ":5"),
    (H, "virtual void unused() {}", "virtual void unused() = 0;", "broken", "c10::Guard::unused",
     "no default any more", ":5"),
    (H, "virtual void unused() {}", "virtual void unused() { warn(0); }", "look",
     "c10::Guard::unused", "its default changed", ":5"),
    (H, "virtual void unused() {}", "", "note", "c10::Guard::unused", "did not override", ":5"),
    ("torch/include/ATen/autocast_mode.h", "_(log)", "_(tan)", "look",
     "AT_FP32 in <ATen/autocast_mode.h>", "changed", "autocast_lists.cpp"),
    ("torch/__init__.py", "def run(x)", "def run(x, y)", "look", "torch.run", "signature", ":9"),
    ("torch/__init__.py", "def run(x)", "def ran(x)", "broken", "torch.run", "gone", ":9"),
    ("torch/__init__.py", "return x", "return -x", "note", "torch.run", "code changed", ":9"),
    ("torch/__init__.py", "def maybe", "def perhaps", "look", "torch.maybe", "gone", ":9"),
    ("torch/__init__.py", "    return x", "    # said otherwise\n    return x", None, "", "", ""),
    ("torch/_engine.py", "def step(self)", "def step(self, n)", "look", "torch._engine.Base.step",
     "changed", ":3"),
    ("torch/acc.py", "return 1", "return 2", "look", "torch.acc.count", "code changed", ":7"),
    ("torch/acc.py", "return count()", "return 1", "look", "torch.acc.count", "does not use it",
     ":7"),
    ("torch/__init__.py", "'torch.backends'", "'torch.devices'", "look", "torch.backends",
     "reads this group no more", "setup.py:1"),
    ("torch-1.dist-info/entry_points.txt", "a = torch:a", "b = torch:b", "look",
     "[torch.backends] a", "gone", "setup.py:1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "text", "new", "level", "name", "said", "place"),
    CHANGES,
    ids=[f"{one[2][:30]}-{one[4] or 'nothing'}" for one in CHANGES],
)
def test_a_planted_change_is_reported_with_its_place(
    trees: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str], file: str, text: str,
    new: str, level: str | None, name: str, said: str, place: str,
) -> None:  # fmt: skip
    path = trees[2] / file
    whole = path.read_text(encoding="utf-8")
    assert whole.count(text) == 1
    path.write_text(whole.replace(text, new), encoding="utf-8")
    only = "headers,virtuals" if "include" in file else "python,entry-points"
    status, rows = run(trees, capsys, only)
    if level is None:
        assert (status, rows) == (0, [])
        return
    found = [row for row in rows if row["name"] == name and said in str(row["change"])]
    assert found, rows
    assert found[0]["level"] == level
    assert any(str(one).endswith(place) for one in found[0]["places"])  # type: ignore[attr-defined]
    assert status == (0 if all(row["level"] == "note" for row in rows) else 1)


def test_a_header_that_moved(
    trees: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    new = trees[2] / "torch/include"
    (new / "torch").mkdir()
    shutil.move(new / "c10/guard.h", new / "torch/guard.h")
    status, rows = run(trees, capsys, "headers")
    (row,) = (one for one in rows if one["name"] == "<c10/guard.h>")
    assert status == 1
    assert row["change"] == "gone; now torch/guard.h?"
    assert row["places"] == ["include/backendkit/ours.h:3"]
    assert row["level"] == "broken"


def test_operators_are_judged_by_what_we_have() -> None:
    change = {"before": "a", "after": "b", "cpp_before": None, "cpp_after": None}
    changes = [
        {"name": "add.out", "change": "changed", **change},
        {"name": "set_.x", "change": "removed", **change},
        {"name": "fresh", "change": "added", **change},
        {"name": "odd", "change": "removed", **change},
    ]
    rows = operators.rows(changes, {"add.out": {"e:1"}}, {"set_": {"i:2"}, "fresh": {"i:3"}})
    assert [(one.level, one.places) for one in rows] == [
        ("broken", ("e:1",)), ("look", ("i:2",)), ("note", ("i:3",)), ("note", ()),
    ]  # fmt: skip


def test_kernels_and_names_of_this_tree_are_found() -> None:
    assert any(place.startswith("examples/minimal/backend.toml:") for place in
               set().union(*operators.kernels(ROOT).values()))  # fmt: skip
    named = operators.named(ROOT)
    assert any("tensors.h" in place for place in named["set_.source_Storage_storage_offset"])
    assert any("_not_loaded.py" in place for place in named["_pin_memory"])


def test_symbols_that_the_release_does_not_export(tmp_path: Path) -> None:
    torch = a_torch(tmp_path / "t", "1.2.0")
    (torch / "torch/lib").mkdir()
    (tmp_path / "c.cpp").write_text("namespace c10 { void here() {} }\n")
    (tmp_path / "b.cpp").write_text(
        "namespace c10 { void here(); void gone_away(); [[gnu::weak]] void may_be_missing(); }\n"
        "void f() { c10::here(); c10::gone_away(); if (c10::may_be_missing) f(); }\n"
    )
    for name, out in (("c", torch / "torch/lib/libc10.so"), ("b", tmp_path / "b.so")):
        subprocess.run(["c++", "-shared", "-fPIC", f"{tmp_path}/{name}.cpp", "-o", out], check=True)
    write(tmp_path / "ours", {"include/backendkit/a.h": "\nvoid f() { c10::gone_away(); }\n"})
    (row,) = symbols.compare(tmp_path / "ours", Release(torch), tmp_path / "b.so")
    assert (row.name, row.level) == ("c10::gone_away()", "broken")
    assert row.places == ("include/backendkit/a.h:2",)


def test_this_tree_s_python_is_understood() -> None:
    reader = Reader(ROOT)
    assert reader.unknown == []
    for name, how in (
        ("torch._C._accelerator_getStream", "replaces"),
        ("torch._dynamo.device_interface.DeviceInterface", "derives"),
        ("torch.nn.parallel.data_parallel._get_available_device_type", "replaces"),
        ("torch._dynamo.variables.torch.constant_fold_functions", "tests"),
        ("torch.distributed.fsdp._fully_shard._fsdp_init.init_device_mesh", "replaces"),
        ("torch.distributed.distributed_c10d.BackendConfig.__init__", "replaces"),
        ("torch.distributed.distributed_c10d._new_process_group_helper", "replaces"),
        ("torch.distributed.distributed_c10d.monitored_barrier", "replaces"),
        ("torch.distributed.device_mesh.DeviceMesh.__init__", "replaces"),
        ("torch.nn.parallel.distributed.DistributedDataParallel._check_comm_hook", "replaces"),
        ("torch.cuda._pin_memory_utils.pin_memory", "replaces"),
    ):
        assert how in reader.uses[name].how, name


def test_this_tree_s_overrides_are_found(base_release: Release) -> None:
    program = Program(ROOT, base_release.include)
    assert program.errors == {}
    found = derived_classes(program)
    silent = [one.place for made in found.values() for one in made.methods.values()
              if one.says_override and not one.overrides]  # fmt: skip
    assert silent == []
    spelled = sum(
        line.count(" override") for path in (ROOT / "include").rglob("*.h")
        for line in path.read_text().splitlines() if not line.lstrip().startswith("//")
    )  # fmt: skip
    ours = [one for made in found.values() for one in made.methods.values() if one.says_override]
    assert len(ours) == spelled


@pytest.fixture
def base_release() -> Release:
    import importlib.util

    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    return Release(Path(spec.origin).parent)


def test_a_new_release_is_written_in_one_place(trees: tuple[Path, Path, Path]) -> None:
    ours = trees[0]
    assert bump.newest(ours) == "1.1.0"
    assert set(bump.write(ours, "1.2.0")) == {bump.TABLE, bump.RELEASES}
    assert '"1.0.2 1.1.0 1.2.0"' in (ours / bump.RELEASES).read_text()
    assert "{1, 2, 0}" in (ours / bump.TABLE).read_text()
    bump.write(ours, "1.2.3")
    assert bump.newest(ours) == "1.2.3"
    assert bump.write(ours, "1.2.3") == []
    assert bump.plan(ROOT, bump.newest(ROOT)) == {}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["2.x"], "not a release such as 2.16.0: 2.x"),
        (["99.0.0", "--only", "headres"], "no step headres"),
        (["99.0.0", "--only", "symbols"], "symbols needs a built backend"),
        (["99.0.0", "--only", "headers", "--write"], "--write needs the step build"),
        (["1.0.0", "--from", "1.0.0"], "is the release to compare with"),
    ],
)
def test_refused_command_lines(
    arguments: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        command.read_command_line([*arguments, "--folder", str(tmp_path)])
    assert end.value.code == 2
    assert text in capsys.readouterr().err


def test_a_folder_without_pytorch(
    trees: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    ours, old, _ = trees
    arguments = ["--root", str(ours), "--with", str(ours), "--from-dir", str(old)]
    assert command.main(["1.2.0", *arguments, "--folder", str(ours / "build")]) == 1
    assert "error: no PyTorch in" in capsys.readouterr().err


def test_the_text_shows_what_needs_a_look() -> None:
    made = report.Report("1.0.0", "1.1.0")
    made.add("headers", [report.Row("headers", "look", "f", "changed", "a", "b", ("x.h:1",)),
                         report.Row("headers", "note", "g", "moved")])  # fmt: skip
    assert made.text(notes=False) == (
        "headers: 1 to look at, 1 note\n  look    f: changed\n            - a\n            + b\n"
        "          at x.h:1\n\nPyTorch 1.0.0 -> 1.1.0: 1 to look at, 1 note\n"
    )
