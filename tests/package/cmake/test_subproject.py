# SPDX-License-Identifier: Apache-2.0
"""BackendKit's source tree within a vendor's project, which it leaves as that was."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PARTS = ["CMakeLists.txt", "LICENSE", "cmake-modules", "generator", "include", "templates"]
FIND = "find_package(BackendKit 0.1 REQUIRED)"
TOUCH = """
set(CMAKE_CXX_COMPILE_OBJECT "\\"${CMAKE_COMMAND}\\" -E touch <OBJECT>")
set(CMAKE_CXX_CREATE_SHARED_LIBRARY "\\"${CMAKE_COMMAND}\\" -E touch <TARGET>")
"""
GIT = ("git", "-c", "user.name=Vendor", "-c", "user.email=vendor@example.com")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A git repository that holds this source tree."""
    folder = tmp_path_factory.mktemp("git") / "BackendKit"
    folder.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / part, ignore=ignore)
        else:
            shutil.copy(source, folder / part)
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "one"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True)
    return folder


def fetch(where, *options):
    lines = [
        "include(FetchContent)",
        f"FetchContent_Declare(BackendKit {where} {' '.join(options)})",
    ]
    return "\n".join([*lines, "FetchContent_MakeAvailable(BackendKit)"])


@pytest.fixture
def vendor(cmake, scaffold):
    """A vendor's project, in which `lines` stand in the place of find_package()."""

    def make(lines, touched=True):
        project = cmake(scaffold())
        lists = project.source / "CMakeLists.txt"
        text = lists.read_text()
        assert text.count(FIND) == 1
        lists.write_text(text.replace(FIND, (TOUCH if touched else "") + lines))
        return project

    return make


def configure(project, *options, tool="given", status=0):
    """Configures without the package, and with the program that is built unless told otherwise."""
    words = ["-DBackendKit_DIR=", *options]
    if tool == "given":
        words.append(f"-DBACKENDKIT_BACKENDGEN={os.environ['BACKENDGEN']}")
    result = project.configure(*words)
    assert bool(result.returncode) == bool(status), result.stdout + result.stderr
    return result


def add_to(project, *lines):
    with open(project.source / "CMakeLists.txt", "a") as file:
        file.write("\n".join([*lines, ""]))


def wheel(project):
    made = project.make("--target", "foo_wheel")
    assert made.returncode == 0, made.stdout
    (path,) = (project.build / "dist").iterdir()
    return path


def test_add_subdirectory_from_the_source_to_the_wheel(vendor, built):
    """The program is built as well, and the wheel is the one that find_package() leads to."""
    project = vendor(f"add_subdirectory({ROOT} third_party/BackendKit)", touched=False)
    add_to(project, "backendkit_wheel(foo_wheel BACKEND foo)", "enable_testing()")
    add_to(project, "backendkit_smoke_test(smoke BACKEND foo)")
    screen = configure(project, tool="built").stdout
    assert screen.count("-- BackendKit: building backendgen in ") == 1
    made = project.make()
    assert made.returncode == 0, made.stdout
    tested = project.run("ctest", "--test-dir", project.build, "--output-on-failure")
    assert re.search("100% tests passed.* out of 2", tested.stdout), tested.stdout
    packed = built.make("--target", "packed")
    assert packed.returncode == 0, packed.stdout
    (expected,) = (built.build / "out").glob("*.whl")
    assert wheel(project).read_bytes() == expected.read_bytes()
    again = configure(project, tool="built").stdout
    assert "building backendgen" not in again
    assert "no work to do" in project.make().stdout


@pytest.mark.parametrize("how", ["a folder", "git", "git, later found"])
def test_fetch_content(vendor, repository, how):
    places = {
        "a folder": (f"SOURCE_DIR {ROOT}",),
        "git": (f"GIT_REPOSITORY file://{repository}", "GIT_TAG HEAD"),
        "git, later found": (f"GIT_REPOSITORY file://{repository}", "OVERRIDE_FIND_PACKAGE"),
    }
    lines = fetch(*places[how])
    if how == "git, later found":
        lines = lines.replace("FetchContent_MakeAvailable(BackendKit)", FIND)
        lines = lines.replace("OVERRIDE", "GIT_TAG HEAD OVERRIDE")
    project = vendor(lines)
    add_to(project, "backendkit_wheel(foo_wheel BACKEND foo)")
    screen = configure(project).stdout
    assert "-- BackendKit: foo, 0 kernels, PyTorch 2." in screen
    made = project.make()
    assert made.returncode == 0, made.stdout
    assert wheel(project).name == "torch_foo-0.1.0-py3-none-linux_x86_64.whl"


@pytest.mark.parametrize("how", ["add_subdirectory", "FetchContent", "OVERRIDE_FIND_PACKAGE"])
def test_it_can_be_found_afterwards(vendor, how):
    """By the project and by its other folders, in the place of a package elsewhere."""
    lines = {
        "add_subdirectory": f"add_subdirectory({ROOT} BackendKit)",
        "FetchContent": fetch(f"SOURCE_DIR {ROOT}"),
        "OVERRIDE_FIND_PACKAGE": fetch(f"SOURCE_DIR {ROOT}", "OVERRIDE_FIND_PACKAGE"),
    }
    project = vendor(f"{lines[how]}\n{FIND}\nadd_subdirectory(other)")
    other = project.source / "other"
    other.mkdir()
    (other / "CMakeLists.txt").write_text(
        f"{FIND}\n"
        "get_target_property(headers BackendKit::runtime INTERFACE_INCLUDE_DIRECTORIES)\n"
        'message(STATUS "headers in ${headers}, version ${BackendKit_VERSION}")\n'
    )
    elsewhere = f"-DBackendKit_DIR={os.environ['BACKENDKIT_BUILD']}"
    screen = configure(project, elsewhere).stdout
    assert f"-- headers in {ROOT}/include, version 0.1" in screen


def test_a_version_that_is_not_there(vendor):
    project = vendor(f"add_subdirectory({ROOT} BackendKit)\nfind_package(BackendKit 7 REQUIRED)")
    result = configure(project, status=1)
    assert 'compatible with requested version "7"' in " ".join(result.stderr.split())


def test_a_folder_below_adds_it_for_the_whole_project(vendor):
    project = vendor("add_subdirectory(third_party)")
    third_party = project.source / "third_party"
    third_party.mkdir()
    (third_party / "CMakeLists.txt").write_text(f"add_subdirectory({ROOT} BackendKit)\n")
    configure(project)
    assert project.make().returncode == 0


def test_added_twice(vendor, repository):
    project = vendor(
        f"add_subdirectory({ROOT} one)\nadd_subdirectory({repository} two)\n{FIND}\n"
        "get_target_property(headers BackendKit::runtime INTERFACE_INCLUDE_DIRECTORIES)\n"
        'message(STATUS "headers in ${headers}")'
    )
    assert f"-- headers in {ROOT}/include" in configure(project).stdout


SHOW = """
function(show)
  get_property(variables DIRECTORY PROPERTY VARIABLES)
  list(FILTER variables EXCLUDE REGEX "^(CMAKE_(PROJECT|CURRENT)_.*|.*_(BINARY|SOURCE)_DIR)$")
  foreach(name IN LISTS variables)
    message(STATUS "var ${name}=${${name}}")
  endforeach()
  get_property(cached DIRECTORY PROPERTY CACHE_VARIABLES)
  foreach(name IN LISTS cached)
    message(STATUS "cache ${name}")
  endforeach()
  foreach(name COMPILE_OPTIONS COMPILE_DEFINITIONS LINK_OPTIONS INCLUDE_DIRECTORIES TESTS
               BUILDSYSTEM_TARGETS IMPORTED_TARGETS COMPILE_FEATURES)
    get_property(value DIRECTORY PROPERTY ${name})
    message(STATUS "directory ${name}=${value}")
  endforeach()
endfunction()
"""
SETTINGS = """
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
set(BUILD_SHARED_LIBS ON)
set(BUILD_TESTING ON)
set(CMAKE_CXX_FLAGS "-Wall -Werror -fno-exceptions -include no_such_header.h")
add_compile_options(-Wpedantic)
enable_testing()
"""


def test_the_project_stays_as_it_was(cmake, tmp_path):
    """Variables, cache, options, tests, targets and installed files; none is BackendKit's own."""
    project = cmake(tmp_path / "vendor")
    project.source.mkdir()
    lists = [
        "cmake_minimum_required(VERSION 3.22...4.0)", "project(vendor LANGUAGES CXX)", SETTINGS,
        SHOW, "show()", 'message(STATUS "== added")', f"add_subdirectory({ROOT} BackendKit)",
        "show()", 'message(STATUS "== end")', "install(FILES mine.txt DESTINATION .)",
        "add_custom_target(mine ALL COMMAND ${CMAKE_COMMAND} -E true)",
    ]  # fmt: skip
    (project.source / "CMakeLists.txt").write_text("\n".join(lists) + "\n")
    (project.source / "mine.txt").write_text("mine\n")
    text = configure(project, "-DCMAKE_BUILD_TYPE=").stdout
    text, _, _ = text.partition("== end")
    before, _, after = text.partition("== added")
    lines = [set(re.findall(r"^-- (?:var|cache|directory) .*$", t, re.M)) for t in (before, after)]
    assert len(lines[0]) > 100
    standard = {f"-- cache BackendKit_{name}" for name in ("BINARY_DIR", "SOURCE_DIR")}
    standard.add("-- cache BackendKit_IS_TOP_LEVEL")
    parts = (
        "",
        "_MAJOR",
        "_MINOR",
        "_PATCH",
        "_TWEAK",
    )  # CMake's own, of any project within another
    standard |= {f"-- cache CMAKE_PROJECT_VERSION{part}" for part in parts}
    changed = {line for line in lines[0] ^ lines[1] if not line.startswith("-- var BackendKit_")}
    assert changed - standard == set()
    # The two targets are imported, which costs a build nothing.
    listed = project.run("ninja", "-C", project.build, "-t", "targets", "all").stdout
    assert [line for line in listed.splitlines() if "backendgen" in line] == []
    made = project.make("--verbose")
    assert made.returncode == 0, made.stdout
    assert "[1/1]" in made.stdout
    assert "No tests were found" in project.run("ctest", "--test-dir", project.build).stderr
    installed = project.run("cmake", "--install", project.build, "--prefix", tmp_path / "prefix")
    assert installed.returncode == 0, installed.stderr
    assert [path.name for path in (tmp_path / "prefix").rglob("*")] == ["mine.txt"]


def test_a_backendgen_of_another_version(vendor, tmp_path):
    other = tmp_path / "backendgen"
    other.write_text("#!/bin/sh\necho backendgen 9.8.7\n")
    other.chmod(0o755)
    project = vendor(f"add_subdirectory({ROOT} BackendKit)")
    result = configure(project, f"-DBACKENDKIT_BACKENDGEN={other}", tool="none", status=1)
    assert "is version 9.8.7, but this source tree is BackendKit 0.1.0." in " ".join(
        result.stderr.split()
    )


def test_a_backendgen_that_does_not_run(vendor, tmp_path):
    project = vendor(f"add_subdirectory({ROOT} BackendKit)")
    missing = f"-DBACKENDKIT_BACKENDGEN={tmp_path}/backendgen"
    result = configure(project, missing, tool="none", status=1)
    assert "is no backendgen that runs here." in " ".join(result.stderr.split())


def test_the_program_is_built_again_when_its_sources_change(cmake, tmp_path):
    """Of a source tree whose program is one short file; by the next build of the project."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for part in ("CMakeLists.txt", "LICENSE", "cmake-modules", "include", "release", "templates"):
        (tree / part).symlink_to(ROOT / part)
    generator = tree / "generator"
    generator.mkdir()
    shutil.copy(ROOT / "generator" / "Subproject.cmake", generator)
    (generator / "CMakeLists.txt").write_text("add_executable(backendgen main.cpp)\n")
    main = generator / "main.cpp"
    main.write_text('#include <cstdio>\nint main() { std::puts("first"); }\n')
    project = cmake(tmp_path / "vendor")
    project.source.mkdir()
    (project.source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22...4.0)\nproject(vendor LANGUAGES CXX)\n"
        f"add_compile_options(-m32 -Werror)\nadd_subdirectory({tree} BackendKit)\n"
        "get_target_property(program BackendKit::backendgen IMPORTED_LOCATION)\n"
        'message(STATUS "program: ${program}")\nadd_custom_target(mine ALL COMMAND ${program})\n'
    )
    first = configure(project, tool="built").stdout
    assert "-- BackendKit: building backendgen in " in first
    program = re.search("program: (.*)", first).group(1)
    assert program == str(project.build / "BackendKit" / "host" / "generator" / "backendgen")
    assert project.run(program).stdout == "first\n"
    assert "building backendgen" not in configure(project, tool="built").stdout
    main.write_text(main.read_text().replace("first", "second"))
    made = project.make()
    assert made.returncode == 0, made.stdout + made.stderr
    assert project.run(program).stdout == "second\n"


def test_a_program_that_cannot_be_built(vendor, tmp_path):
    project = vendor(f"add_subdirectory({ROOT} BackendKit)")
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\necho 'this compiler is broken' >&2\nexit 1\n")
    compiler.chmod(0o755)
    wrong = f"-DBACKENDKIT_HOST_CXX_COMPILER={compiler}"
    result = configure(project, wrong, tool="built", status=1)
    text = " ".join(result.stderr.split())
    assert (
        "BackendKit: could not configure backendgen, which this project needs while it is" in text
    )
    assert "this compiler is broken" in text
    assert "-DBACKENDKIT_HOST_CXX_COMPILER=<path>, or a backendgen 0.1.0 with" in text


def test_the_program_is_for_this_machine_when_cross_compiling(vendor, tmp_path):
    """Neither the toolchain file nor the variables that name the target's compiler reach it."""
    compiler = tmp_path / "cross-g++"
    compiler.write_text("#!/bin/sh\necho cross >&2\nexit 1\n")
    compiler.chmod(0o755)
    file = tmp_path / "cross.cmake"
    file.write_text(
        "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\n"
        f"set(CMAKE_CXX_COMPILER {compiler})\nset(CMAKE_CXX_COMPILER_FORCED ON)\n"
    )
    project = vendor(f"add_subdirectory({ROOT} BackendKit)")
    # A source tree that says how its CMake was called, and ends.
    tree = tmp_path / "tree"
    tree.mkdir()
    for part in PARTS:
        if part not in ("CMakeLists.txt", "generator"):
            (tree / part).symlink_to(ROOT / part)
    (tree / "generator").mkdir()
    shutil.copy(ROOT / "generator" / "Subproject.cmake", tree / "generator")
    text = (ROOT / "CMakeLists.txt").read_text()
    says = 'enable_language(CXX)\nmessage(FATAL_ERROR "<${CMAKE_CXX_COMPILER}> <$ENV{CXXFLAGS}>")\n'
    assert "enable_language(CXX)\n" in text
    (tree / "CMakeLists.txt").write_text(text.replace("enable_language(CXX)\n", says))
    lists = project.source / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace(str(ROOT), str(tree)))
    environment = {"CXX": str(compiler), "CXXFLAGS": "-cross", "CMAKE_TOOLCHAIN_FILE": str(file)}
    result = project.configure("-DBackendKit_DIR=", environment=environment)
    assert result.returncode != 0
    (said,) = re.findall(r"<(.*)> <(.*)>", result.stderr)
    assert said[0] != str(compiler) and said[0].endswith(("c++", "g++", "clang++"))
    assert said[1] == ""
