# SPDX-License-Identifier: Apache-2.0
"""`backendgen doctor` on a healthy machine, and on machines with one fault each."""

from __future__ import annotations

import grp
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from doctor_faults import FAULTS, Fault
from doctor_machine import BACKENDGEN, Machine, install, make_torch


@pytest.fixture(scope="session")
def fake_torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("torch")
    make_torch(site)
    return site


@pytest.fixture
def machine(tmp_path: Path, fake_torch: Path) -> Machine:
    return Machine(tmp_path, fake_torch)


def test_nothing_but_good_rows_on_a_healthy_machine(machine: Machine) -> None:
    rows = machine.rows()
    assert [row for row in rows if row["status"] != "ok"] == []
    assert {row["check"] for row in rows} >= {"compiler", "cmake", "torch", "backend"}


def test_there_are_forty_faults() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 40


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_fault_is_named_and_its_remedy_works(machine: Machine, fault: Fault) -> None:
    steps = fault.steps(machine)
    next(steps)
    rows = machine.rows()
    found = [r for r in rows if r["check"] == fault.check and fault.text in r["text"]]
    assert len(found) == 1, rows
    assert found[0]["status"] == fault.status
    assert fault.help in found[0]["help"]
    assert next(steps, None) is None
    assert [row for row in machine.rows() if row["status"] != "ok"] == []


def test_a_library_that_aborts_when_it_is_loaded_is_not_loaded(machine: Machine) -> None:
    code = "#include <stdlib.h>\n__attribute__((constructor)) static void die(void) { abort(); }"
    machine.backend(source=code)
    assert [row for row in machine.rows() if row["status"] != "ok"] == []


def test_names_that_are_not_utf8(machine: Machine) -> None:
    (machine.site / "caf\udce9").mkdir()
    (machine.site / "~caf\udce9").mkdir()
    rows = [row for row in machine.rows() if row["status"] != "ok"]
    assert [row["check"] for row in rows] == ["leftovers"]


def test_text(machine: Machine) -> None:
    machine.environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    done = machine.run()
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("ok    backendgen   ")
    assert "fail  environment  TORCH_DEVICE_BACKEND_AUTOLOAD=0 is set" in lines
    assert "help: environment: `unset TORCH_DEVICE_BACKEND_AUTOLOAD`" in lines
    assert "\x1b" not in done.stderr


def test_a_package_that_is_not_installed(machine: Machine) -> None:
    machine.arguments = ["torch_zoo"]
    rows = [row for row in machine.rows() if row["status"] != "ok"]
    assert [(row["check"], row["why"]) for row in rows] == [
        ("backend.installed", ["installed backends: torch_foo"])
    ]


@pytest.mark.parametrize(
    ("check", "code", "text", "trace"),
    [
        ("device.crash", "import ctypes; ctypes.string_at(0)", "with SIGSEGV", "string_at"),
        ("device.hang", "import time; time.sleep(600)", "within 2 s", "torch/__init__.py"),
        ("device", "import os; os._exit(3)", "with status 3", ""),
        ("device", "raise ImportError('no driver')", "with status 1", "no driver"),
        ("device", "import types; device = lambda name: fail(name)", "status 1", "NameError"),
    ],
)
def test_a_device_that_fails(
    machine: Machine, check: str, code: str, text: str, trace: str
) -> None:
    (machine.site / "torch/__init__.py").write_text(f"{code}\n")
    make_record(machine)
    machine.arguments = ["--device", "foo", "--timeout", "2"]
    rows = [row for row in machine.rows() if row["status"] != "ok"]
    assert [row["check"] for row in rows] == [check]
    assert text in rows[0]["text"]
    assert trace in "\n".join(rows[0]["why"])


@pytest.mark.parametrize(
    ("check", "code", "frame"),
    [
        ("device.crash", "import ctypes; ctypes.string_at(0)", "ctypes"),
        ("device.hang", "import time; time.sleep(600)", "sleep"),
    ],
)
def test_gdb_adds_the_native_stack(machine: Machine, check: str, code: str, frame: str) -> None:
    """Without gdb, the row says how to get it; with it, it has the frames."""
    (machine.site / "torch/__init__.py").write_text(f"{code}\n")
    make_record(machine)
    machine.arguments = ["--device", "foo", "--timeout", "2"]
    (row,) = (row for row in machine.rows() if row["status"] != "ok")
    assert "`apt-get install gdb` adds the native stack to these lines" in row["why"]
    (machine.bin / "gdb").symlink_to(shutil.which("gdb") or "gdb")
    (row,) = (row for row in machine.rows() if row["status"] != "ok")
    assert row["check"] == check
    native = [line for line in row["why"] if line.startswith("native: #")]
    assert native[0].startswith("native: #0 "), row
    assert frame in "\n".join(native)


def test_a_node_names_its_group(machine: Machine) -> None:
    """As udev makes them, for a group; this one keeps even its owner out."""
    node = machine.folder / "foo0"
    node.touch()
    if os.geteuid() == 0:
        os.chown(node, -1, 65000)
    node.chmod(0o060)
    machine.backend(DEVICE_NODES=[str(node)])
    (row,) = (row for row in machine.rows() if row["status"] != "ok")
    group = {"65000"} if os.geteuid() == 0 else {g.gr_name for g in grp.getgrall()}
    found = re.fullmatch(r"`sudo usermod -aG (\S+) \$USER`, then log out and in again", row["help"])
    assert found and found[1] in group
    assert row["why"] == [f"it is ----rw----, of group {found[1]}"]


def test_with_and_without_a_home(machine: Machine) -> None:
    assert "HOME" not in machine.environment  # nor in any other test of this file
    for home in ("/nonexistent", str(machine.folder), ""):
        machine.environment["HOME"] = home
        assert [row for row in machine.rows() if row["status"] != "ok"] == []


@pytest.mark.parametrize("device", [[], ["--device", "foo"]], ids=["", "device"])
def test_on_disks_that_take_no_file(machine: Machine, device: list[str]) -> None:
    """Full or read-only ones: no folder for temporary files, nothing in the project."""
    code = "import tempfile\ntempfile._candidate_tempdir_list = lambda: ['/nonexistent']\n"
    (machine.site / "sitecustomize.py").write_text(code)
    (machine.site / "torch/__init__.py").write_text("raise ImportError('reached')\n")
    make_record(machine)
    machine.arguments = device
    for folder in (machine.here, machine.venv, machine.folder):
        folder.chmod(0o555)
    rows = [row for row in machine.rows() if row["status"] != "ok"]
    machine.folder.chmod(0o755)
    assert ["reached" in "".join(row["why"]) for row in rows] == [True] * bool(device)


def test_commands_of_the_page(tmp_path: Path) -> None:
    """With a real backend, on this machine: nothing but good rows."""
    page = Path(__file__).resolve().parents[3] / "docs" / "doctor.md"
    (commands,) = re.findall(r"(?ms)^```console\n(.*?)^```", page.read_text("utf-8"))
    environment = Path(os.environ["BACKENDKIT_TEST_PYTHON"]).parents[1]
    (tmp_path / ".venv").symlink_to(environment)
    path = os.pathsep.join([str(Path(BACKENDGEN).parent), os.environ["PATH"]])
    variables = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(environment)}
    said = [
        subprocess.run(
            line,
            shell=True,
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        )
        for line in commands.splitlines()
    ]
    assert len(said) == 5
    texts = [done.stderr for done in said[:4]]
    assert ["fail" in text or "warn" in text for text in texts] == [False] * 4, texts
    assert re.search(r"^ok +foo +tensor, kernel, copy, stream, autograd work", texts[3], re.M)
    assert json.loads(said[4].stdout)["ok"] is True


def make_record(machine: Machine) -> None:
    install(machine.site, "torch", "2.13.0+cpu", ["torch", "torchgen"])
