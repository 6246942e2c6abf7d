# SPDX-License-Identifier: Apache-2.0
"""What is in a backend's wheel, and what is not."""

from __future__ import annotations

import configparser
import email
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import GLUE, Environment

SYSTEM_LIBRARIES = {"libc.so.6", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0", "libstdc++.so.6"}
PYTORCH = {"libc10.so", "libtorch_cpu.so"}

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into an ELF file")


@pytest.fixture(scope="module")
def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def library(
    contents: dict[str, bytes], minor: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("library") / "libtorch_foo.so"
    path.write_bytes(contents[f"torch_foo/lib/{minor}/libtorch_foo.so"])
    return path


def test_files(wheel: Path, contents: dict[str, bytes], minor: str) -> None:
    expected = [f"torch_foo/{name}.py" for name in (*GLUE, "extras")]
    expected += ["torch_foo/LICENSE.BackendKit", "torch_foo/py.typed"]
    expected += [f"torch_foo/lib/{minor}/libtorch_foo.so"]
    cmake = ["torch_fooConfig.cmake", "torch_fooConfigVersion.cmake", "torch_files.cmake"]
    cmake += ["find_torch.py"]
    expected += [f"torch_foo/share/cmake/torch_foo/{name}" for name in cmake]
    metadata = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt")
    metadata += ("sboms/backendkit.cdx.json",)
    expected += [f"torch_foo-0.1.0.dist-info/{name}" for name in metadata]
    assert sorted(contents) == sorted(expected)
    assert wheel.name.startswith("torch_foo-0.1.0-py3-none-")


def test_tag(contents: dict[str, bytes], wheel: Path) -> None:
    facts = email.message_from_bytes(contents["torch_foo-0.1.0.dist-info/WHEEL"])
    assert facts["Tag"] == wheel.stem.split("-", 2)[2]
    assert facts["Root-Is-Purelib"] == "false"


def test_metadata(contents: dict[str, bytes], minor: str) -> None:
    metadata = email.message_from_bytes(contents["torch_foo-0.1.0.dist-info/METADATA"])
    major, number = minor.split(".")
    assert metadata["Name"] == "torch_foo"
    assert metadata["Version"] == "0.1.0"
    assert metadata["Summary"] == "PyTorch backend for foo devices"
    assert metadata["Requires-Python"] == ">=3.9"
    (requirement,) = metadata.get_all("Requires-Dist")
    assert requirement.startswith("torch")
    bounds = set(requirement[len("torch") :].split(","))
    assert bounds == {f">={minor}", f"<{major}.{int(number) + 1}"}


def test_entry_points(contents: dict[str, bytes]) -> None:
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.read_string(contents["torch_foo-0.1.0.dist-info/entry_points.txt"].decode())
    groups = {name: dict(parser[name]) for name in parser.sections()}
    assert groups == {
        "torch.backends": {"torch_foo": "torch_foo:_autoload"},
        "torch.distributed.backends": {"fooccl": "torch_foo._distributed:register_entry"},
        "torch_dynamo_backends": {"foo": "torch_foo.extras:device_names"},
        "torchrun.logs_specs": {"foo_logs": "torch_foo.extras:device_names"},
        "console_scripts": {"foo-devices": "torch_foo.extras:device_names"},
    }


def test_dates_and_modes(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    assert modes.pop("torch_foo-0.1.0.dist-info/RECORD") == 0o664  # as setuptools writes it
    assert set(modes.values()) <= {0o644, 0o755}


def test_no_path_of_the_build(
    contents: dict[str, bytes], project: Path, builder: Environment, base: Path, tools: Path
) -> None:
    environments = [builder.python.parents[1], base.parents[1], tools.parents[1]]
    places = [str(folder).encode() for folder in [project, project.parent, *environments]]
    places += [b"/usr/include", b"site-packages"]
    found = [
        f"{place.decode()} in {name}"
        for name, content in contents.items()
        for place in places
        if place in content
    ]
    assert found == []


@linux
def test_libraries_it_needs(library: Path) -> None:
    text = subprocess.run(
        ["readelf", "-dW", library], capture_output=True, text=True, check=True
    ).stdout
    fields = [line.split("[")[1].split("]")[0] for line in text.splitlines() if "[" in line]
    paths = [line for line in text.splitlines() if "RUNPATH" in line or "RPATH" in line]
    assert len(paths) == 1 and "[$ORIGIN]" in paths[0]
    needed = {name for name in fields if ".so" in name and name != "libtorch_foo.so"}
    assert needed >= PYTORCH
    others = needed - PYTORCH - SYSTEM_LIBRARIES
    assert [name for name in others if not name.startswith("ld-linux")] == []


def test_installed_and_used(wheel: Path, environment: Environment, tmp_path: Path) -> None:
    environment.pip("install", wheel, cwd=tmp_path)
    code = "import torch; print((torch.ones(2, device='foo') + 1).tolist())"
    assert environment.says(code, tmp_path) == "[2.0, 2.0]"
    assert (environment.programs / "foo-devices").is_file()
    ask = (
        "from importlib.metadata import entry_points as e; "
        "print([p.load()() for p in e(group='torch_dynamo_backends') if p.name == 'foo'])"
    )
    assert environment.says(ask, tmp_path) == "[['foo:0', 'foo:1']]"
