# SPDX-License-Identifier: Apache-2.0
"""The driver's libraries in a wheel of their own: [wheel.runtime].

The driver is two tiny libraries, the first of which needs the second. The backend is linked to the
first and opens the second by its name.
"""

from __future__ import annotations

import email.parser
import json
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, Environment, run
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.specifiers import SpecifierSet

BACKENDGEN = os.environ["BACKENDGEN"]
FIRMWARE = "int foo_devices(void) { return 2; }"
DRIVER = "int foo_devices(void); int foo_count(void) { return foo_devices(); }"
TABLE = """
[wheel.runtime]
version = "{version}"
libraries = ["driver/lib/libfoo*.so.?"]
"""
WORKS = "import torch; print((torch.ones(2, device='foo') + 1).tolist(), torch.foo.device_count())"
FAILS = "import torch, warnings; print(torch.foo.is_available())"
NEEDS = "torch_foo 0.1.0 needs foo-runtime>=4.2,<5,"


def compile_library(path: Path, source: str, *options: str | Path, soname: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    words = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{soname or path.name}", "-o", path]
    words += ["-x", "c", "-", "-x", "none", *options]
    subprocess.run(words, input=source, text=True, check=True)
    return path


def make_driver(project: Path) -> None:
    folder = project / "driver" / "lib"
    firmware = compile_library(folder / "libfoofirmware.so.2", FIRMWARE)
    compile_library(folder / "libfoodriver.so.4", DRIVER, firmware)


def tiny(folder: Path, table: str = TABLE.format(version="4.2.0")) -> Path:
    """A project of which nothing can be built but the driver's wheel."""
    folder.mkdir()
    (folder / "backend.toml").write_text(f'[backend]\nname = "foo"\nversion = "0.1.0"\n{table}')
    (folder / "runtime.h").touch()
    (folder / "LICENSE.driver").write_text("Ours.\n")
    make_driver(folder)
    return folder


def backendgen(project: Path, *words: str | Path, status: int = 0, **environment: str) -> str:
    words = (*words, "--python", sys.executable) if "--python" not in words else words
    return run(BACKENDGEN, *words, cwd=project, status=status, **environment).stdout


def runtime_wheel(project: Path, *words: str | Path, **environment: str) -> Path:
    backendgen(project, "wheel", "--runtime", *words, **environment)
    wheels = list((project / "dist").glob("foo_runtime-*.whl"))
    return max(wheels, key=lambda path: path.stat().st_mtime_ns)


def version_of(project: Path, version: str) -> None:
    path = project / "backend.toml"
    text, count = re.subn(
        r'(\[wheel.runtime\]\nversion = )".*"', rf'\1"{version}"', path.read_text()
    )
    assert count == 1
    path.write_text(text)


def metadata_of(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.parser.Parser().parsestr(archive.read(name).decode("utf-8"))


@pytest.fixture(scope="session")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose runtime calls the driver."""
    project = tmp_path_factory.mktemp("vendor") / "foo"
    ignore = shutil.ignore_patterns("build", "__pycache__")
    shutil.copytree(ROOT / "examples" / "minimal", project, ignore=ignore)
    make_driver(project)
    with open(project / "backend.toml", "a", encoding="utf-8") as description:
        description.write(TABLE.format(version="4.2.0"))
    cmake = project / "CMakeLists.txt"
    text = cmake.read_text()
    libraries = "${CMAKE_CURRENT_SOURCE_DIR}/driver/lib/libfoodriver.so.4"
    folder = "-Wl,-rpath-link,${CMAKE_CURRENT_SOURCE_DIR}/driver/lib"
    cmake.write_text(
        text.replace("runtime.cpp)", f"runtime.cpp LIBRARIES {libraries} dl {folder} WHEEL)")
    )
    runtime = project / "csrc" / "runtime.cpp"
    text = runtime.read_text()
    old = "int Runtime::device_count() { return kDevices; }"
    assert old in text
    new = (
        'int Runtime::device_count() {\n  return dlopen("libfoofirmware.so.2", RTLD_LAZY) == '
        "nullptr ? -1 : foo_count();\n}"
    )
    head = '#include <dlfcn.h>\n\nextern "C" int foo_count(void);\n\n'
    text = text.replace(old, new).replace("constexpr int kDevices = 2;\n", "")
    runtime.write_text(head + text)
    return project


@pytest.fixture(scope="session")
def wheels(vendor: Path, builder: Environment) -> tuple[Path, Path]:
    """The backend's wheel and the driver's, as an index takes them."""
    said = backendgen(vendor, "wheel", "--repair", "--python", builder.python)
    assert re.search(r"Repaired manylinux_\w+, without libfoodriver\.so\.4\n", said), said
    assert "Tested import torch; torch.ones(2" in said
    (own,) = (vendor / "dist").glob("torch_foo-*.whl")
    said = backendgen(vendor, "wheel", "--runtime", "--repair", "--python", builder.python)
    assert "Building foo-runtime 4.2.0\n" in said
    assert "Tested opened libfoofirmware.so.2, libfoodriver.so.4\n" in said
    (driver,) = (vendor / "dist").glob("foo_runtime-*.whl")
    assert re.fullmatch(r"foo_runtime-4\.2\.0-py3-none-manylinux[\w.]+\.whl", driver.name)
    return own, driver


def test_what_the_wheels_have(wheels: tuple[Path, Path]) -> None:
    own, driver = wheels
    assert "foo-runtime<5,>=4.2" in metadata_of(own).get_all("Requires-Dist", [])
    with zipfile.ZipFile(own) as archive:
        assert [name for name in archive.namelist() if "driver" in name or ".libs/" in name] == []
        listed = json.loads(archive.read("torch_foo-0.1.0.dist-info/sboms/backendkit.cdx.json"))
        assert "foo-runtime" in {one["name"] for one in listed["components"]}
    with zipfile.ZipFile(driver) as archive:
        assert sorted(name for name in archive.namelist() if "dist-info" not in name) == [
            "foo_runtime/__init__.py",
            "foo_runtime/lib/libfoodriver.so.4",
            "foo_runtime/lib/libfoofirmware.so.2",
            "foo_runtime/load_order.txt",
        ]
        order = archive.read("foo_runtime/load_order.txt").decode()
        assert order.split() == ["libfoofirmware.so.2", "libfoodriver.so.4"]
        listed_text = archive.read("foo_runtime-4.2.0.dist-info/sboms/backendkit.cdx.json").decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(listed_text) is None
    assert json.loads(listed_text)["components"] == []
    for wheel in wheels:
        subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], check=True)
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", wheel], check=True)
    words = [sys.executable, "-m", "check_wheel_contents", driver]
    subprocess.run(words, cwd=driver.parent, check=True)


def test_the_cmake_target_requires_it_too(
    wheels: tuple[Path, Path], vendor: Path, builder: Environment, tmp_path: Path
) -> None:
    (tree,) = (vendor / "build").glob("torch-*")
    build = ["cmake", "--build", tree, "--target", "foo_wheel"]
    run(*build, cwd=tmp_path)
    (made,) = (tree / "dist").glob("torch_foo-*.whl")
    assert "foo-runtime<5,>=4.2" in metadata_of(made).get_all("Requires-Dist", [])


def test_in_two_places_missing_older_and_newer(
    wheels: tuple[Path, Path], vendor: Path, environment: Environment, tmp_path: Path
) -> None:
    own, driver = wheels
    environment.pip("install", own, cwd=tmp_path)

    def warning(**variables: str) -> str:
        said = environment.says(FAILS, tmp_path, **variables)
        assert said.splitlines()[-1] == "False"
        return said

    said = warning()
    assert f"{NEEDS} which is not installed\n" in said
    assert 'help: `pip install "foo-runtime>=4.2,<5"`' in said

    # In another folder of Python's path.
    elsewhere = tmp_path / "elsewhere"
    environment.pip("install", "--target", elsewhere, driver, cwd=tmp_path)
    there = {"PYTHONPATH": str(elsewhere)}
    assert environment.says(WORKS, tmp_path, **there) == "[2.0, 2.0] 2"
    # The package itself is never imported.
    code = "import sys, torch; print(torch.foo.is_available(), 'foo_runtime' in sys.modules)"
    assert environment.says(code, tmp_path, **there) == "True False"

    # Beside the backend, older; then whole again; then newer, which has one library more.
    older = shutil.copytree(vendor, tmp_path / "older", ignore=shutil.ignore_patterns("build"))
    version_of(older, "4.1.0")
    environment.pip("install", runtime_wheel(older), cwd=tmp_path)
    said = warning()
    assert f"{NEEDS} but 4.1.0 is installed\n" in said
    doctor = [BACKENDGEN, "doctor", "torch_foo", "--python", environment.python]
    said = run(*doctor, cwd=tmp_path, status=1).stdout
    assert "needs foo-runtime>=4.2,<5, but 4.1.0 is installed" in said
    environment.pip("install", driver, cwd=tmp_path)
    assert environment.says(WORKS, tmp_path) == "[2.0, 2.0] 2"
    assert "ok    torch_foo" in run(*doctor, cwd=tmp_path).stdout

    newer = older
    version_of(newer, "4.3.0rc1")
    folder = newer / "driver" / "lib"
    power = compile_library(folder / "libfoopower.so.1", "int foo_power(void) { return 1; }")
    more = "int foo_power(void); int foo_devices(void) { return 2 + foo_power(); }"
    compile_library(folder / "libfoofirmware.so.2", more, power)
    environment.pip("install", runtime_wheel(newer), cwd=tmp_path)
    assert environment.says(WORKS, tmp_path) == "[2.0, 2.0] 3"

    # Spoilt after the installation.
    library = environment.site / "foo_runtime" / "lib" / "libfoopower.so.1"
    data = library.read_bytes()
    library.write_bytes(data[:5000])
    said = warning()
    assert "foo-runtime 4.3.0rc1, which torch_foo 0.1.0 needs, is damaged:" in said
    assert "--force-reinstall --no-deps --no-cache-dir foo-runtime==4.3.0rc1`" in said
    library.write_bytes(data)
    compile_library(library, "int foo_power(void);  int other(void) { return foo_power(); }")
    environment.pip("uninstall", "--yes", "foo-runtime", cwd=tmp_path)
    assert f"{NEEDS} which is not installed\n" in warning()


def test_an_editable_install_finds_it(
    wheels: tuple[Path, Path], vendor: Path, environment: Environment, tmp_path: Path
) -> None:
    environment.pip("install", "--editable", vendor, cwd=tmp_path)
    assert f"{NEEDS} which is not installed" in environment.says(FAILS, tmp_path)
    environment.pip("install", wheels[1], cwd=tmp_path)
    assert environment.says(WORKS, tmp_path) == "[2.0, 2.0] 2"


def test_the_commands_that_the_page_shows() -> None:
    """They are those of this file."""
    page = (ROOT / "docs" / "wheels.md").read_text(encoding="utf-8")
    part = page.partition("## The driver's libraries in a package of their own")[2]
    part = part.partition("\n## ")[0]
    blocks = re.findall(r"^```console\n(.*?)^```$", part, flags=re.M | re.S)
    assert blocks == ["backendgen wheel --runtime --repair\nbackendgen wheel --repair\n"]
    assert "needs foo-runtime>=4.2,<5, but 4.1.0 is installed\n" in part


def test_the_same_bytes(tmp_path: Path) -> None:
    made = set()
    for number, (zone, mask) in enumerate((("UTC", 0o022), ("Asia/Tokyo", 0o077))):
        old = os.umask(mask)
        try:
            project = tiny(tmp_path / f"project{number}")
            made.add(runtime_wheel(project, TZ=zone).read_bytes())
        finally:
            os.umask(old)
    assert len(made) == 1
    headers = metadata_of(next((project / "dist").iterdir()))
    assert (headers["Name"], headers["Version"]) == ("foo-runtime", "4.2.0")
    assert headers.get_all("License-File") == ["LICENSE.driver"]
    assert headers.get_all("Requires-Dist") is None


def licences_of(wheel: Path) -> tuple[str | None, list[str]]:
    """The expression, and the files, each of which the wheel has."""
    headers = metadata_of(wheel)
    files = headers.get_all("License-File", [])
    with zipfile.ZipFile(wheel) as archive:
        inside = f"{wheel.name.rpartition('-py3-')[0]}.dist-info/licenses/"
        names = [name for name in archive.namelist() if name.startswith(inside)]
        assert sorted(names) == [f"{inside}{name}" for name in files]
        listed = json.loads(archive.read(f"{inside[:-9]}sboms/backendkit.cdx.json"))
    expression = headers["License-Expression"]
    wanted = [{"expression": expression}] if expression else None
    assert listed["metadata"]["component"].get("licenses") == wanted
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", wheel], check=True)
    return expression, files


def test_the_licence(tmp_path: Path) -> None:
    project = tiny(tmp_path / "foo")
    for name in ("EULA.txt", "driver/EULA.txt", "driver/third.txt"):
        (project / name).write_text(f"{name}\n")
    plain = (project / "backend.toml").read_text()
    assert licences_of(runtime_wheel(project)) == (None, ["LICENSE.driver"])

    # What setup.py says of the backend's own wheel; it is not run, nor does it have to be right.
    setup = project / "setup.py"
    call = "from backendkit import build\nbuild.setup_backend({})\nraise SystemExit(1)\n"
    setup.write_text(call.format('license_expression="MIT", license_files=["EULA*", "/etc/*"]'))
    assert licences_of(runtime_wheel(project)) == ("MIT", ["EULA.txt"])
    setup.write_text(call.format("license_expression=name(), **other"))
    assert licences_of(runtime_wheel(project)) == (None, ["LICENSE.driver"])
    setup.write_text("print(")
    assert licences_of(runtime_wheel(project)) == (None, ["LICENSE.driver"])

    # What [wheel.runtime] says, which is all if it names files.
    setup.write_text(call.format('license_expression="MIT", license_files=["EULA*"]'))
    (project / "backend.toml").write_text(f'{plain}license = "LicenseRef-Foo OR ISC"\n')
    assert licences_of(runtime_wheel(project)) == ("LicenseRef-Foo OR ISC", ["EULA.txt"])
    files = 'license_files = ["driver/*.txt", "EULA.txt"]\n'
    (project / "backend.toml").write_text(plain + files)
    wanted = ["EULA.txt", "driver/EULA.txt", "driver/third.txt"]
    assert licences_of(runtime_wheel(project)) == (None, wanted)
    (project / "backend.toml").write_text(f'{plain}license = "ISC"\n{files}')
    assert licences_of(runtime_wheel(project, "--repair")) == ("ISC", wanted)

    (project / "backend.toml").write_text(f'{plain}license = "isc"\n')
    said = backendgen(project, "wheel", "--runtime", status=1)
    assert "error: the licence `isc` is not as SPDX writes it\nhelp: write `ISC`\n" in said
    (project / "backend.toml").write_text(f'{plain}license = "Vendor"\n')
    said = backendgen(project, "wheel", "--runtime", status=1)
    assert "error: the licence `Vendor` is no SPDX expression: " in said
    assert "help: write one such as `MIT`, or `LicenseRef-Foo` for a licence of your own" in said


def test_a_library_of_the_system_is_bundled(tmp_path: Path) -> None:
    """What the driver needs itself is judged as for the backend's wheel."""
    project = tiny(tmp_path / "foo")
    usb = compile_library(tmp_path / "usb" / "libfoousb.so.1", "int foo_usb(void) { return 1; }")
    needs = "int foo_usb(void); int foo_devices(void) { return foo_usb(); }"
    compile_library(project / "driver/lib/libfoofirmware.so.2", needs, usb)
    system = {"LD_LIBRARY_PATH": str(usb.parent)}
    said = backendgen(project, "wheel", "--runtime", status=1)
    assert "the libraries of foo_runtime cannot be opened one after another" in said
    said = backendgen(project, "wheel", "--runtime", "--repair", status=1, **system)
    assert "libfoofirmware.so.2 needs libfoousb.so.1, which is neither" in said
    text = (project / "backend.toml").read_text()
    text = text.replace("[wheel.runtime]", '[wheel]\nbundle = ["libfoousb*"]\n\n[wheel.runtime]')
    (project / "backend.toml").write_text(text)
    said = backendgen(project, "wheel", "--runtime", "--repair", **system)
    assert ", with libfoousb.so.1" in said
    (wheel,) = (project / "dist").glob("*manylinux*.whl")
    installed = tmp_path / "installed"
    shutil.unpack_archive(wheel, installed, "zip")
    libraries = installed / "foo_runtime" / "lib"
    code = f"import ctypes; print(ctypes.CDLL('{libraries}/libfoofirmware.so.2').foo_devices())"
    assert run(sys.executable, "-c", code, cwd=tmp_path).stdout == "1\n"


def test_libraries_that_cannot_be_packed(tmp_path: Path) -> None:
    project = tiny(tmp_path / "foo", TABLE.format(version="4.2.0").replace(".so.?", "*"))
    folder = project / "driver" / "lib"

    def refused(*words: str) -> str:
        said = backendgen(project, "wheel", "--runtime", *words, status=1)
        assert not (project / "dist").exists()
        return said

    said = refused("--python", "nothing")
    assert "cannot run `nothing`: No such file" in said
    assert "help: name a Python: `--python EXE`" in said

    (folder / "libfoo.txt").write_text("text")
    assert "driver/lib/libfoo.txt of [wheel.runtime] is not a library" in refused()
    (folder / "libfoo.txt").unlink()

    other = compile_library(folder / "libfoo_other.so", "int x;", soname="libfoodriver.so.4")
    said = refused()
    assert "driver/lib/libfoodriver.so.4 have one SONAME, libfoodriver.so.4" in said
    other.unlink()

    subprocess.run(["gcc", "-shared", "-o", other, "-x", "c", "/dev/null"], check=True)
    said = refused()
    assert "driver/lib/libfoo_other.so has no SONAME" in said
    assert "help: link it with `-Wl,-soname,libfoo_other.so`" in said
    other.unlink()

    circle = "int foo_count(void); int foo_devices(void) { return 0 * foo_count(); }"
    driver, firmware = folder / "libfoodriver.so.4", folder / "libfoofirmware.so.2"
    compile_library(firmware, circle, driver, "-Wl,--allow-shlib-undefined")
    said = refused()
    assert "libfoodriver.so.4 and libfoofirmware.so.2 need each other, and " in said
    compile_library(firmware, circle, driver, "-Wl,-rpath,$ORIGIN,--allow-shlib-undefined")
    compile_library(driver, DRIVER, firmware, "-Wl,-rpath,$ORIGIN")
    assert "Tested opened" in backendgen(project, "wheel", "--runtime")
    shutil.rmtree(project / "dist")

    data = bytearray(firmware.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")
    firmware.write_bytes(data)
    assert "is for x86_64 and libfoofirmware.so.2 is for aarch64" in refused()


def test_links_and_copies_are_one_library(tmp_path: Path) -> None:
    project = tiny(tmp_path / "foo", TABLE.format(version="4.2.0").replace(".so.?", ".so*"))
    folder = project / "driver" / "lib"
    (folder / "libfoodriver.so").symlink_to("libfoodriver.so.4")
    shutil.copy(folder / "libfoofirmware.so.2", folder / "libfoofirmware.so")
    said = backendgen(project, "wheel", "--runtime")
    assert "Verified 2 libraries, RECORD\n" in said


def test_versions_are_compared_as_pip_does(tmp_path: Path) -> None:
    """The generated package's comparison agrees with that of `packaging`, and so does `check`."""
    sys.path.insert(0, str(ROOT / "templates" / "python" / "common"))
    try:
        from _requirement import admits
    finally:
        sys.path.pop(0)
    generator = random.Random(7)

    def version() -> str:
        text = "1!" if generator.random() < 0.1 else ""
        text += ".".join(str(generator.randint(0, 2)) for _ in range(generator.randint(1, 3)))
        if generator.random() < 0.3:
            text += generator.choice(["a", "b", "rc"]) + str(generator.randint(0, 1))
        if generator.random() < 0.2:
            text += f".post{generator.randint(0, 1)}"
        if generator.random() < 0.2:
            text += f".dev{generator.randint(0, 1)}"
        return text

    operators = [">=", "<=", "==", "!=", ">", "<"]
    for _ in range(20_000):
        requirement, one = generator.choice(operators) + version(), version()
        expected = SpecifierSet(requirement, prereleases=True).contains(one)
        assert admits(requirement, one) == expected, (requirement, one)
    assert not admits(">=1", "unknown")
    assert admits(">=1,<2", "1.5+local")
