# SPDX-License-Identifier: Apache-2.0
"""What docs/wheels.md and docs/troubleshooting.md show is what happens."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WHEELS = (ROOT / "docs" / "wheels.md").read_text(encoding="utf-8")
TROUBLES = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
TOOLS = os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"]

# Each object is a small one with debug information: the page's commands meet a real library.
TINY = """
set(CMAKE_CXX_COMPILE_OBJECT
    "<CMAKE_CXX_COMPILER> <FLAGS> -x c++ -c ${CMAKE_CURRENT_LIST_DIR}/tiny.cpp -o <OBJECT>")
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        list(command),
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",  # readelf prints notes that are no text
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def sections(library: Path) -> set[str]:
    text = run("readelf", "-SW", library, cwd=library.parent)
    return set(re.findall(r"\] (\.\S+)", text))


def build_id(library: Path) -> str:
    return run("readelf", "-n", library, cwd=library.parent).split("Build ID: ")[1].split()[0]


def test_separate_debug_symbols_of_a_repaired_wheel(tmp_path: Path) -> None:
    commands = "".join(blocks(WHEELS, "console"))
    assert "backendgen wheel --repair\n" in commands
    assert "backendgen wheel --debug-symbols\n" in commands
    backendgen = os.environ["BACKENDGEN"]
    run(backendgen, "new", "foo", cwd=tmp_path)
    project = tmp_path / "foo"
    (tmp_path / "tiny.cpp").write_text("[[gnu::used]]\nstatic int use() { return 1; }\n")
    (tmp_path / "tiny.cmake").write_text(TINY)
    arguments = f"-DCMAKE_PROJECT_INCLUDE={tmp_path}/tiny.cmake"
    words = ["wheel", "--repair", "--debug-symbols", "--no-smoke", "--python", TOOLS]
    said = run(backendgen, *words, cwd=project, CMAKE_ARGS=arguments)
    assert "Split debug symbols" in said
    assert "Repaired manylinux" in said

    (wheel,) = (project / "dist").glob("*.whl")
    assert "manylinux_2_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        (member,) = [name for name in archive.namelist() if name.endswith(".so")]
        stripped = Path(archive.extract(member, tmp_path))
        assert "torch_foo-0.1.0.dist-info/sboms/backendkit.cdx.json" in archive.namelist()
    assert ".gnu_debuglink" in sections(stripped)
    assert not {".debug_info", ".symtab"} & sections(stripped)
    with zipfile.ZipFile(project / "dist" / f"{wheel.stem}.debug.zip") as archive:
        (name,) = archive.namelist()
        whole = Path(archive.extract(name, tmp_path))
    assert {".debug_info", ".symtab"} <= sections(whole)
    identity = build_id(stripped)
    assert name == f".build-id/{identity[:2]}/{identity[2:]}.debug"
    assert build_id(whole) == identity
    link = run("readelf", "--string-dump=.gnu_debuglink", stripped, cwd=tmp_path)
    assert whole.name in link

    symbols = run("nm", whole, cwd=tmp_path).splitlines()
    address = next(line.split()[0] for line in symbols if "3usev" in line)
    shown = run("addr2line", "-Cfe", whole, f"0x{address}", cwd=project)
    assert shown.splitlines()[0] == "use()"
    assert shown.splitlines()[1].endswith("tiny.cpp:2")


PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


def environment_with(version: str, folder: Path) -> Path:
    """A Python with BackendKit, whose PyTorch is the installed one under another version."""
    base = Path(os.environ["BACKENDKIT_TEST_BASE_PYTHON"])
    packages = Path(run(base, "-c", PURELIB, cwd=base.parent).strip())
    run(base, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    site = Path(run(python, "-c", PURELIB, cwd=folder).strip())
    (site / "torch").mkdir()
    for entry in (packages / "torch").iterdir():
        (site / "torch" / entry.name).symlink_to(entry)
    (site / "torch" / "version.py").unlink()
    (site / "torch" / "version.py").write_text(f"__version__ = '{version}+cpu'\n")
    (site / "torchgen").symlink_to(packages / "torchgen")
    seen = run(TOOLS, "-c", PURELIB, cwd=folder).strip()
    (site / "seen.pth").write_text(f"import site; site.addsitedir({seen!r})\n")
    return python


def test_one_wheel_for_several_releases(tmp_path: Path) -> None:
    """The page's commands, for environments beside the project and for wheels built apart."""
    said = run(
        os.environ["BACKENDKIT_TEST_BASE_PYTHON"],
        "-c",
        "import torch; print(torch.__version__)",
        cwd=tmp_path,
    )
    major, number, *_ = said.split(".")
    shown = ["2.11", "2.12", "2.13"]
    minors = [f"{major}.{int(number) + step}" for step in (-2, -1, 0)]
    commands = "".join(blocks(WHEELS, "console"))
    (build, merge) = re.findall(r"^backendgen (wheel --torch .*|merge .*)$", commands, re.M)
    for name, minor in zip(shown, minors):
        build, merge = build.replace(name, minor), merge.replace(name, minor)
    run(os.environ["BACKENDGEN"], "new", "foo", cwd=tmp_path)
    project = tmp_path / "foo"
    (tmp_path / "tiny.cpp").write_text("[[gnu::used]]\nstatic int use() { return 1; }\n")
    (tmp_path / "tiny.cmake").write_text(TINY)
    pythons = [environment_with(f"{minor}.0", project / f"env-{minor}") for minor in minors]
    environment = {
        "PATH": f"{Path(os.environ['BACKENDGEN']).parent}{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": str(pythons[-1].parents[1]),
        "CMAKE_ARGS": f"-DCMAKE_PROJECT_INCLUDE={tmp_path}/tiny.cmake",
    }
    said = run("sh", "-c", f"backendgen {build} --no-smoke", cwd=project, **environment)
    assert f"Merged torch_foo 0.1.0 for PyTorch {minors[0]} to {minors[-1]}" in said
    (wheel,) = (project / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert f"torch>={minors[0]},<{major}.{int(number) + 1}" in archive.read(
            "torch_foo-0.1.0.dist-info/METADATA"
        ).decode("utf-8")
        for minor in minors:
            assert f"torch_foo/lib/{minor}/libtorch_foo.so" in archive.namelist()
    for minor in minors:
        shutil.copytree(project / "build" / "wheel" / minor, project / f"wheels-{minor}")
    run("sh", "-c", f"backendgen {merge} --out merged", cwd=project, **environment)
    assert (project / "merged" / wheel.name).read_bytes() == wheel.read_bytes()

    local = f"backendgen {build} --no-smoke --local-version --out local"
    run("sh", "-c", local, cwd=project, **environment)
    names = sorted(path.name for path in (project / "local").glob("*.whl"))
    assert names == sorted(wheel.name.replace("0.1.0", f"0.1.0+torch{minor}") for minor in minors)
    run("sh", "-c", "backendgen merge local/*.whl --out again", cwd=project, **environment)
    assert (project / "again" / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_license_arguments(tmp_path: Path) -> None:
    """The page's setup.py is one that setuptools takes."""
    (text,) = blocks(WHEELS, "python")
    run(os.environ["BACKENDGEN"], "new", "foo", cwd=tmp_path)
    for name in ("EULA.txt", "NOTICE"):
        (tmp_path / "foo" / name).write_text("a text\n")
    (tmp_path / "foo" / "setup.py").write_text(text)
    said = run(TOOLS, "setup.py", "--quiet", "egg_info", cwd=tmp_path / "foo")
    assert "Unknown distribution option" not in said
    (info,) = (tmp_path / "foo" / "build" / "metadata").glob("*/PKG-INFO")
    metadata = info.read_text()
    assert "License-Expression: LicenseRef-Vendor\n" in metadata
    assert re.findall("^License-File: (.*)$", metadata, re.M) == ["EULA.txt", "NOTICE"]


def test_the_messages_of_a_build() -> None:
    """Each that the page quotes is in the program that says it."""
    table = WHEELS.partition("## What a build needs")[2].partition("## ")[0]
    said = [
        re.sub(r"^`+ ?| ?`+$", "", cell)
        for row in re.findall(r"^\| (`.*?) \| ", table, re.M)
        for cell in re.split(r", (?=``)", row.partition(", by pip")[0])
    ]
    assert len(said) == 7
    sources = "".join(
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("python/backendkit/build.py", "python/backend/backendkit_backend.py")
    )
    for message in said[:-1]:
        message = message.strip()
        words = re.split(r"65\.5\.0|\.\.\./python|`cmake`|`ninja`", message)
        assert [word for word in words if word.strip("` ") not in sources] == [], message


def test_the_program_of_the_troubleshooting_page(tmp_path: Path) -> None:
    (text,) = blocks(TROUBLES, "python")
    with zipfile.ZipFile(os.environ["BACKENDKIT_TEST_WHEEL"]) as archive:
        archive.extractall(tmp_path / "site")
    base = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONPATH": str(tmp_path / "site")}
    assert (
        run(base, "-c", f"{text}\nprint(torch.foo.is_available())", cwd=tmp_path, **off) == "True\n"
    )
    without = text.replace("import torch_foo\n", "")
    failed = subprocess.run(
        [base, "-c", without],
        env={**os.environ, **off},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert failed.returncode == 1
    assert re.search(
        r"Expected one of cpu, .* device type at start of device string: foo", failed.stderr
    )


def test_the_picture_of_a_wheel() -> None:
    drawn = (ROOT / "docs" / "pictures" / "wheel.svg").read_text(encoding="utf-8")
    names = re.findall(r">(torch_foo[^<]*/[^<]+)<", drawn)
    assert len(names) == 8
    with zipfile.ZipFile(os.environ["BACKENDKIT_TEST_WHEEL"]) as archive:
        assert set(names) <= set(archive.namelist())
