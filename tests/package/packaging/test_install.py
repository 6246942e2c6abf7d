# SPDX-License-Identifier: Apache-2.0
"""BackendKit, installed in every way: by pip and uv, by CMake, as a Debian package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, Environment, run

sys.path.insert(0, str(ROOT / "release"))
import installs

PYTHON_PLACES = {
    "prefix": ("lib/python{}/site-packages", "bin"),
    "target": ("", "bin"),
    "user": ("lib/python{}/site-packages", "bin"),
}
FIND = """
cmake_minimum_required(VERSION 3.22...4.0)
project(finds LANGUAGES CXX)
find_package(BackendKit 0.1 REQUIRED)
get_target_property(program BackendKit::backendgen IMPORTED_LOCATION)
message(STATUS "program: ${program}")
add_library(uses STATIC uses.cpp)
target_compile_features(uses PRIVATE cxx_std_20)
target_link_libraries(uses PRIVATE BackendKit::runtime)
"""


@pytest.fixture(scope="session")
def build_folder() -> Path:
    """Where the wheel is compiled: beside the other builds, so that ccache knows its files."""
    return Path(os.environ["BACKENDKIT_BUILD"]).with_name("product")


@pytest.fixture(scope="session")
def product(base: Path, build_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BackendKit's own wheel."""
    folder = tmp_path_factory.mktemp("backendkit-wheel")
    words = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    run(base, *words, cwd=folder, SKBUILD_BUILD_DIR=str(build_folder))
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `cmake --install` installs of the build."""
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", os.environ["BACKENDKIT_BUILD"], "--prefix", folder, cwd=folder)
    return folder


def found(folder: Path, *settings: str) -> Path:
    """The program that find_package finds, by a project's configuration in `folder`."""
    (folder / "CMakeLists.txt").write_text(FIND)
    (folder / "uses.cpp").touch()
    text = run("cmake", "-S", folder, "-B", folder / "build", *settings, cwd=folder).stdout
    place = re.search(r"-- program: (.*)", text)
    assert place
    return Path(place[1])


def minor(base: Path) -> str:
    return run(base, "-c", "import sys; print('%d.%d' % sys.version_info[:2])", cwd=ROOT).stdout[
        :-1
    ]


@pytest.mark.parametrize("scheme", PYTHON_PLACES)
def test_the_program_is_found_wherever_pip_puts_it(
    scheme: str, product: Path, base: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "place"
    words = ["-m", "pip", "install", "--no-index", "--no-deps", "--ignore-installed", product]
    words += ["--user"] if scheme == "user" else [f"--{scheme}", folder]
    python = Path(os.path.realpath(base)) if scheme == "user" else base
    run(python, *words, cwd=tmp_path, PYTHONUSERBASE=str(folder), PIP_BREAK_SYSTEM_PACKAGES="1")
    site, programs = PYTHON_PLACES[scheme]
    site = str(folder / site.format(minor(base)))
    program = folder / programs / "backendgen"
    assert program.is_file()
    ask = f"import sys; sys.path.insert(0, {site!r}); import backendkit as b; "
    said = run(
        base, "-c", ask + "print(b.executable(), b.cmake_dir())", cwd=tmp_path
    ).stdout.split()
    assert Path(said[0]) == program
    assert found(tmp_path, f"-DBackendKit_DIR={said[1]}") == program
    # And by CMAKE_PREFIX_PATH, as the entry point of scikit-build-core sets it.
    shutil.rmtree(tmp_path / "build")
    assert found(tmp_path, f"-DCMAKE_PREFIX_PATH={site}/backendkit") == program


def test_an_editable_installation_has_all_parts(
    base: Path, build_folder: Path, product: Path, tmp_path: Path
) -> None:
    environment = Environment(tmp_path / "environment", base)
    environment.pip("install", "-e", ROOT, cwd=tmp_path, SKBUILD_BUILD_DIR=str(build_folder))
    code = "import backendkit as b; print(b.executable(), b.cmake_dir(), b.include_dir())"
    program, cmake, include = environment.says(code, tmp_path).split()
    assert Path(program) == environment.programs / "backendgen"
    assert Path(include, "backendkit", "runtime.h").is_file()
    assert found(tmp_path, f"-DBackendKit_DIR={cmake}") == Path(program)


def test_a_program_of_another_version_is_not_taken(
    product: Path, base: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "place"
    words = ["-m", "pip", "install", "--no-index", "--no-deps", "--target", folder, product]
    run(base, *words, cwd=tmp_path)
    program = folder / "bin" / "backendgen"
    program.write_text("#!/bin/sh\necho backendgen 0.0.9\n")
    (tmp_path / "CMakeLists.txt").write_text(FIND)
    settings = [f"-DCMAKE_PREFIX_PATH={folder}/backendkit", "-B", tmp_path / "build"]
    text = run("cmake", "-S", tmp_path, *settings, cwd=tmp_path, status=1).stdout
    assert "backendgen 0.1.0 is at none of these places" in " ".join(text.split())
    assert str(program) in text


def test_the_module_says_where_the_parts_are(product: Path, base: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "environment", base)
    environment.pip("install", product, cwd=tmp_path)

    def module(*words: str, status: int = 0) -> str:
        return run(
            environment.python, "-m", "backendkit", *words, cwd=tmp_path, status=status
        ).stdout

    assert Path(module("--cmake-dir")[:-1], "BackendKitConfig.cmake").is_file()
    assert Path(module("--include-dir")[:-1], "backendkit", "runtime.h").is_file()
    assert module("--version") == "0.1.0\n"
    assert "--cmake-dir" in module("--help")
    assert module("help", "new").startswith("new: start a project")
    assert "unknown command" in module("nonsense", status=2)
    assert "unrecognized arguments: --more" in module("--version", "--more", status=2)


def test_without_a_compiler(product: Path, base: Path, tmp_path: Path) -> None:
    """`new`, `check`, `ops` and `doctor` need neither compiler nor CMake nor PyTorch."""
    run(base, "-m", "venv", tmp_path / "bare", cwd=tmp_path)
    programs = tmp_path / "bare" / "bin"
    install = [programs / "pip", "install", "--no-index", "--no-deps", product]
    run(*install, cwd=tmp_path, PATH=str(programs))
    backendgen = programs / "backendgen"
    assert backendgen.read_bytes()[:4] == b"\x7fELF"
    alone = {**os.environ, "PATH": str(programs)}
    installs.try_program([backendgen], tmp_path / "tried", alone)


@pytest.fixture
def uv(base: Path) -> Iterator[Path]:
    yield base.parent / "uv"


def test_uv_installs_it(uv: Path, product: Path, base: Path, tmp_path: Path) -> None:
    quiet = {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_NO_PROGRESS": "1", "UV_OFFLINE": "1"}
    place = tmp_path / "environment"
    run(uv, "venv", "--python", base, place, cwd=tmp_path, **quiet)
    words = ["pip", "install", "--python", place / "bin" / "python", "--no-index", "--no-deps"]
    run(uv, *words, "--find-links", product.parent, "backendkit", cwd=tmp_path, **quiet)
    shown = run(place / "bin" / "backendgen", "--version", cwd=tmp_path).stdout
    assert shown.startswith("backendgen 0.1.0\n")
    ask = "import backendkit as b; print(b.executable())"
    said = run(place / "bin" / "python", "-c", ask, cwd=tmp_path).stdout[:-1]
    assert Path(said) == place / "bin" / "backendgen"
    alone = {**os.environ, "PATH": str(place / "bin")}
    installs.try_program([place / "bin" / "backendgen"], tmp_path / "tried", alone)


def test_scikit_build_core_finds_it(product: Path, base: Path, tmp_path: Path) -> None:
    """A project that scikit-build-core builds passes nothing for find_package(BackendKit)."""
    environment = Environment(tmp_path / "environment", base)
    environment.pip("install", product, cwd=tmp_path)
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["scikit-build-core", "backendkit"]\n'
        'build-backend = "scikit_build_core.build"\n'
        '[project]\nname = "finds"\nversion = "1.0"\n'
        "[tool.scikit-build]\nsearch.site-packages = false\n"
    )
    (project / "CMakeLists.txt").write_text(
        FIND + "file(WRITE ${PROJECT_BINARY_DIR}/found.txt ${program})\n"
        "install(FILES ${PROJECT_BINARY_DIR}/found.txt DESTINATION .)\n"
    )
    (project / "uses.cpp").write_text(
        '#if !__has_include(<backendkit/runtime.h>)\n#error "no headers"\n#endif\n'
    )
    environment.pip("wheel", "-w", tmp_path, project, cwd=tmp_path)
    (wheel,) = tmp_path.glob("finds-*.whl")
    text = subprocess.run(["unzip", "-p", wheel, "found.txt"], capture_output=True, check=True)
    assert text.stdout.decode() == str(environment.programs / "backendgen")


PAGES = (
    "share/man/man1/backendgen.1",
    "share/bash-completion/completions/backendgen",
    "share/zsh/site-functions/_backendgen",
    "share/fish/vendor_completions.d/backendgen.fish",
)


def test_cmake_installs_it(prefix: Path, tmp_path: Path) -> None:
    assert found(tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}") == prefix / "bin" / "backendgen"
    for name in PAGES:
        assert (prefix / name).stat().st_size > 1000, name
    # Moved elsewhere, it works the same.
    moved = prefix.rename(prefix.with_name("moved"))
    try:
        shutil.rmtree(tmp_path / "build")
        assert found(tmp_path, f"-DCMAKE_PREFIX_PATH={moved}") == moved / "bin" / "backendgen"
    finally:
        moved.rename(prefix)


def test_the_wheel_has_pages_and_completions(product: Path, base: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "environment", base)
    environment.pip("install", product, cwd=tmp_path)
    for name in PAGES:
        assert (tmp_path / "environment" / name).stat().st_size > 1000, name


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    config = Path(os.environ["BACKENDKIT_BUILD"], "CPackConfig.cmake")
    # Everyone can read the folders, whatever the umask is.
    strict = ["sh", "-c", 'umask 077; exec "$0" "$@"']
    run(*strict, "cpack", "-B", folder, "-G", "DEB;TGZ", "--config", config, cwd=folder)
    return folder


def test_the_debian_package(packages: Path, tmp_path: Path) -> None:
    (package,) = packages.glob("*.deb")
    assert re.fullmatch(r"backendkit_0\.1\.0_\w+\.deb", package.name)
    flags = ["--fail-on", "error,warning", "--tag-display-limit", "0", "--allow-root"]
    judged = run("lintian", *flags, package, cwd=tmp_path)
    assert "E: " not in judged.stdout
    assert "W: " not in judged.stdout
    root = tmp_path / "root"
    (root / "var" / "lib" / "dpkg" / "info").mkdir(parents=True)
    for name in ("status", "available"):
        (root / "var" / "lib" / "dpkg" / name).touch()
    run("dpkg", "--root", root, "--force-depends", "--install", package, cwd=tmp_path)
    listed = run("dpkg", "--root", root, "-s", "backendkit", cwd=tmp_path).stdout
    assert "Status: install ok installed" in listed
    assert re.search(r"^Depends: libc6 \(>= ", listed, re.M)
    program = root / "usr" / "bin" / "backendgen"
    assert found(tmp_path, f"-DCMAKE_PREFIX_PATH={root}/usr") == program
    folders = [path for path in (root / "usr").rglob("*") if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o755}
    assert (root / "usr/share/man/man1/backendgen.1.gz").is_file()
    assert (root / "usr/share/zsh/vendor-completions/_backendgen").is_file()
    copyright = (root / "usr/share/doc/backendkit/copyright").read_text()
    assert "libyaml" in copyright
    run("dpkg", "--root", root, "--purge", "backendkit", cwd=tmp_path)
    assert not program.exists()


def test_the_archive(packages: Path, tmp_path: Path) -> None:
    (archive,) = packages.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        assert {member.mode for member in packed if member.isdir()} == {0o755}
        packed.extractall(tmp_path / "root", filter="data")
    (folder,) = (tmp_path / "root").iterdir()
    assert found(tmp_path, f"-DCMAKE_PREFIX_PATH={folder}") == folder / "bin" / "backendgen"
