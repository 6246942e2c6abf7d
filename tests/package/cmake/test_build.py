# SPDX-License-Identifier: Apache-2.0
"""What add_torch_backend() builds, and that it builds no more than it must."""

import json
import os
import re
import subprocess
import time
import zipfile
from pathlib import Path

import pytest


def dynamic(library, tag):
    text = subprocess.run(
        ["readelf", "-dW", str(library)], capture_output=True, text=True, check=True
    ).stdout
    return [line.split("[")[1].split("]")[0] for line in text.splitlines() if f"({tag})" in line]


def flags_of(project, source):
    commands = json.loads((project.build / "compile_commands.json").read_text())
    return next(one["command"] for one in commands if one["file"].endswith(source)).split()


def optimization(project, source):
    return [flag for flag in flags_of(project, source) if re.fullmatch(r"-O\w", flag)][-1]


def test_the_glue_is_small_and_the_sources_keep_their_flags(built, scaffold, cmake):
    for name in ("backend", "distributed", "fallback"):
        assert optimization(built, f"foo-generated/{name}.cpp") == "-Os"
    assert optimization(built, "foo-generated/has_kernel.cpp") == "-O2"
    assert optimization(built, "csrc/runtime.cpp") == "-O3"
    project = cmake(scaffold())
    assert project.configure("-DCMAKE_CXX_FLAGS_RELEASE=-Os").returncode == 0
    assert optimization(project, "foo-generated/backend.cpp") == "-Os"


def test_static_objects_of_the_vendor_outlive_the_glue_s(built):
    """Files are linked in this order; that of process groups has no static object that matters."""
    rules = (built.build / "build.ninja").read_text()
    (link,) = re.findall(r"^build libtorch_foo\.so: \S+ ([^|]*)", rules, re.MULTILINE)
    objects = [Path(one).name.removesuffix(".cpp.o") for one in link.split()]
    assert [objects[0], *sorted(objects[1:3])] == ["distributed", "kernels", "runtime"]
    assert {"backend", "fallback", "has_kernel"} <= set(objects[3:])


def test_kineto_finds_the_headers_that_an_old_pytorch_lacks(built):
    flags = [one for one in flags_of(built, "backend.cpp") if one.startswith("-idirafter")]
    assert [Path(one[len("-idirafter") :], "fmt", "format.h").is_file() for one in flags] == [True]


def test_the_status_line(built):
    assert "-- BackendKit: foo, 0 kernels, PyTorch 2." in built.log
    assert "generated files" in built.log


def test_the_library_needs_pytorch_and_the_system_alone(built):
    library = built.build / "libtorch_foo.so"
    system = ("libstdc++.so", "libgcc_s.so", "libc.so", "libm.so", "ld-linux")
    needed = [name for name in dynamic(library, "NEEDED") if not name.startswith(system)]
    assert sorted(needed) == ["libc10.so", "libtorch_cpu.so"]
    assert dynamic(library, "RUNPATH") + dynamic(library, "RPATH") == ["$ORIGIN"]


def test_no_path_of_this_machine_is_inside(built):
    content = (built.build / "libtorch_foo.so").read_bytes()
    for path in (built.source, built.build, os.environ["BACKENDKIT_BUILD"]):
        assert str(path).encode() not in content
    assert b"/site-packages/" not in content


def test_symbols_are_hidden(built):
    text = subprocess.run(
        ["nm", "-DC", "--defined-only", str(built.build / "libtorch_foo.so")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = [line.split(maxsplit=2)[2] for line in text.splitlines()]
    assert [name for name in names if name.startswith(("foo::", "backendkit::"))] == []


def test_nothing_is_built_twice(built):
    assert "no work to do" in built.make().stdout


def test_one_kernel_is_one_file(built):
    kernels = built.source / "csrc" / "kernels.cpp"
    time.sleep(0.01)
    os.utime(kernels)
    output = built.make().stdout
    assert [line.split("/")[-1] for line in output.splitlines() if "Building" in line] == [
        "kernels.cpp.o"
    ]
    assert "Linking" in output


def test_many_kernels_share_a_precompiled_header(scaffold, cmake):
    project = cmake(scaffold())
    folder = subprocess.run(
        [project.python, "-c", "import torchgen; print(torchgen.__path__[0])"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    functions = Path(folder, "packaged/ATen/native/native_functions.yaml").read_text()
    names = re.findall(r"^- func: (\w+\.out)\(", functions, re.MULTILINE)
    lines = [f'"{name}" = "foo::kernel_{index}"\n' for index, name in enumerate(names)]
    assert len(lines) > 200
    description = project.source / "backend.toml"
    head = description.read_text().partition("[operators.kernels]")[0]
    description.write_text(f"{head}[operators.kernels]\n{''.join(lines)}")
    configured = project.configure()
    assert configured.returncode == 0, configured.stderr
    precompiled = "-include"
    assert precompiled in flags_of(project, "register_kernels_0.cpp")
    for source in ("csrc/kernels.cpp", "has_kernel.cpp", "backend.cpp"):
        assert precompiled not in flags_of(project, source)
    # A header that was precompiled with another optimization would not be used.
    assert optimization(project, "register_kernels_0.cpp") == "-O3"
    assert optimization(project, "backend.cpp") == "-Os"


def test_few_kernels_do_not(built):
    commands = (built.build / "compile_commands.json").read_text()
    assert "-include " not in commands


def test_a_touched_description_compiles_nothing(built):
    os.utime(built.source / "backend.toml")
    output = built.make().stdout
    assert "none changed" in output
    assert "Building CXX" not in output


def test_a_second_run_of_cmake_changes_nothing(built):
    assert built.configure().returncode == 0
    assert "Building CXX" not in built.make().stdout


def test_the_smoke_test_runs(built):
    result = built.run("ctest", "--test-dir", built.build, "-L", "backendkit")
    assert result.returncode == 0, result.stdout
    assert "100% tests passed" in result.stdout
    assert "out of 2" in result.stdout


def test_the_wheel_target(built):
    result = built.make("--target", "packed")
    assert result.returncode == 0, result.stdout
    (wheel,) = (built.build / "out").glob("*.whl")
    assert wheel.name == "torch_foo-0.1.0-py3-none-linux_x86_64.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.endswith(".so")]
    assert "torch_foo/extras.py" in names


def test_the_installed_package(built, tmp_path):
    result = built.run(
        "cmake", "--install", built.build, "--prefix", tmp_path, "--component", "foo"
    )
    assert result.returncode == 0, result.stderr
    package = tmp_path / "torch_foo"
    (library,) = package.glob("lib/*/*")
    assert library.name == "libtorch_foo.so"
    assert {"__init__.py", "extras.py", "py.typed"} <= {path.name for path in package.iterdir()}


def test_where_the_package_goes_can_be_said(cmake, scaffold, tmp_path):
    project = cmake(scaffold())
    text = (project.source / "CMakeLists.txt").read_text()
    text = text.replace("add_torch_backend(foo", "add_torch_backend(foo PACKAGE_DIRECTORY lib/py")
    (project.source / "CMakeLists.txt").write_text(text)
    assert project.configure().returncode == 0
    script = (project.build / "cmake_install.cmake").read_text()
    assert "/lib/py/lib/2." in script


@pytest.mark.parametrize(
    "symbol, definition",
    [
        ("_ZN3c105ErrorC1ENS_14SourceLocationESs", "-D_GLIBCXX_USE_CXX11_ABI=0"),
        ("_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcE",
         "-D_GLIBCXX_USE_CXX11_ABI=1"),
    ],
    ids=["old", "new"],
)  # fmt: skip
def test_the_abi_is_read_from_pytorch_s_library(cmake, scaffold, fake_python, symbol, definition):
    project = cmake(scaffold())
    result = project.configure(environment=fake_python("2.6.0+cu124", symbol))
    assert result.returncode == 0, result.stderr
    assert definition in flags_of(project, "kernels.cpp")


@pytest.mark.parametrize("stated", ["CXX_STANDARD 23", "INTERFACE cxx_std_23"])
def test_a_pytorch_that_wants_a_newer_standard_gets_it(cmake, scaffold, fake_python, stated):
    project = cmake(scaffold())
    assert project.configure(environment=fake_python("2.99.0", standard=stated)).returncode == 0
    assert {"-std=gnu++23", "-std=c++23", "-std=gnu++2b"} & set(flags_of(project, "kernels.cpp"))


@pytest.mark.parametrize("version, warns", [("2.99.0a0+git1", True), ("2.15.9", False)])
def test_a_pytorch_newer_than_all_that_were_tested(cmake, scaffold, fake_python, version, warns):
    result = cmake(scaffold()).configure(environment=fake_python(version))
    assert result.returncode == 0, result.stderr
    screen = " ".join(result.stderr.split())
    text = "add_torch_backend(): PyTorch 2.99.0 is newer than 2.15, the newest release that this"
    assert (text in screen) == warns
    assert ("CMake Warning" in screen) == warns


def test_a_folder_called_torch_is_not_pytorch(cmake, scaffold, monkeypatch, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('wrong torch')\n")
    monkeypatch.chdir(tmp_path)
    result = cmake(scaffold()).configure()
    assert result.returncode == 0, result.stderr


def test_own_functions_must_be_declared(cmake, scaffold):
    project = cmake(scaffold())
    assert project.configure().returncode == 0
    assert "-Werror=missing-declarations" in flags_of(project, "csrc/kernels.cpp")
    assert "-Werror=missing-declarations" not in flags_of(project, "backend.cpp")


@pytest.mark.parametrize("kind", ["Debug", "RelWithDebInfo"])
def test_other_build_types_configure(cmake, scaffold, kind):
    project = cmake(scaffold())
    assert project.configure(f"-DCMAKE_BUILD_TYPE={kind}").returncode == 0
    assert "-g" in flags_of(project, "kernels.cpp")


def test_an_install_prefix_serves_too(cmake, scaffold, tmp_path):
    build = os.environ["BACKENDKIT_BUILD"]
    subprocess.run(
        ["cmake", "--install", build, "--prefix", str(tmp_path / "prefix")],
        check=True, capture_output=True,
    )  # fmt: skip
    moved = tmp_path / "elsewhere"
    (tmp_path / "prefix").rename(moved)
    project = cmake(scaffold(), package=moved / "share" / "cmake" / "BackendKit")
    result = project.configure()
    assert result.returncode == 0, result.stderr
    assert str(moved) in " ".join(flags_of(project, "kernels.cpp"))


def test_a_pip_installation_serves_too(cmake, scaffold):
    python = os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"]
    folder = subprocess.run(
        [python, "-c", "import backendkit; print(backendkit.cmake_dir())"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    result = cmake(scaffold(), package=folder).configure()
    assert result.returncode == 0, result.stderr
