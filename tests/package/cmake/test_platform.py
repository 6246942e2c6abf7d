# SPDX-License-Identifier: Apache-2.0
"""A compiler whose output cannot be linked with the PyTorch that was found is refused."""

import shutil
import stat
import struct

import pytest

AARCH64 = (2, 1, 183)
I386 = (1, 1, 3)
X86_64 = (2, 1, 62)


def elf(bits, order, machine):
    """The first bytes of a shared library for a machine, by the ELF specification's numbers."""
    identity = b"\x7fELF" + bytes([bits, order, 1]) + bytes(9)
    return identity + struct.pack("<HH" if order == 1 else ">HH", 3, machine) + bytes(44)


def words(result):
    return " ".join(result.stderr.split())


def toolchain(path, *lines):
    text = ["set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)", *lines]
    path.write_text("\n".join(text) + "\n")
    return f"-DCMAKE_TOOLCHAIN_FILE={path}"


@pytest.fixture
def cross_compiler(tmp_path):
    """The machine's g++, whose objects claim to be for AArch64."""
    compiler = tmp_path / "aarch64-linux-gnu-g++"
    real = shutil.which("g++")
    compiler.write_text(
        f'#!/bin/sh\n{real} "$@" || exit\n'
        'for word in "$@"; do\n'
        "  case $previous:$word in\n"
        "    -o:*.o) printf '\\267\\000' |\n"
        '      dd of="$word" bs=1 seek=18 conv=notrunc status=none ;;\n'
        "  esac\n  previous=$word\ndone\n"
    )
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    return toolchain(
        tmp_path / "aarch64.cmake",
        "set(CMAKE_SYSTEM_NAME Linux)",
        "set(CMAKE_SYSTEM_PROCESSOR aarch64)",
        f"set(CMAKE_CXX_COMPILER {compiler})",
    )


def test_an_aarch64_toolchain_and_this_machine_s_pytorch(cmake, scaffold, cross_compiler, tmp_path):
    project = cmake(scaffold())
    result = project.configure(cross_compiler)
    assert result.returncode != 0
    text = words(result)
    assert (
        "add_torch_backend(): the compiler builds for aarch64, but the PyTorch in "
        f"{project.python} is for x86_64. {tmp_path}/aarch64-linux-gnu-g++ " in text
    )
    assert "torch/lib/libtorch_cpu.so Build for x86_64, or name the folder of a PyTorch for" in text
    assert "aarch64: -DBACKENDKIT_TORCH=<path>/torch." in text


def test_a_pytorch_for_the_target_is_taken(cmake, scaffold, cross_compiler, fake_python, tmp_path):
    """BACKENDKIT_TORCH names it; the wheel is named after the target."""
    fake_python("2.13.0", head=elf(*AARCH64))
    project = cmake(scaffold())
    lists = project.source / "CMakeLists.txt"
    touch = '"\\"${CMAKE_COMMAND}\\" -E touch '
    rules = f'set(CMAKE_CXX_COMPILE_OBJECT {touch}<OBJECT>")\n'
    rules += f'set(CMAKE_CXX_CREATE_SHARED_LIBRARY {touch}<TARGET>")\n'
    text = lists.read_text().replace("foo SOURCES", "foo WHEEL SOURCES")
    lists.write_text(text.replace("find_package(", f"{rules}find_package("))
    torch = tmp_path / "site" / "torch"
    result = project.configure(cross_compiler, f"-DBACKENDKIT_TORCH={torch}")
    assert result.returncode == 0, result.stderr
    made = project.make("--target", "foo_wheel")
    assert made.returncode == 0, made.stdout
    (wheel,) = (project.build / "dist").iterdir()
    assert wheel.name == "torch_foo-0.1.0-py3-none-linux_aarch64.whl"


def test_a_folder_that_is_no_pytorch(cmake, scaffold, tmp_path):
    result = cmake(scaffold()).configure(f"-DBACKENDKIT_TORCH={tmp_path}")
    assert result.returncode != 0
    text = words(result)
    assert (
        "add_torch_backend(): BACKENDKIT_TORCH must be the folder 'torch' of an unpacked wheel"
        in text
    )
    assert f"there is no version.py in {tmp_path}" in text


@pytest.mark.parametrize("how", ["a toolchain file", "the project"])
def test_32_bits(cmake, scaffold, tmp_path, how):
    project = cmake(scaffold())
    options = [toolchain(tmp_path / "m32.cmake", "set(CMAKE_CXX_FLAGS_INIT -m32)")]
    if how == "the project":
        options = []
        lists = project.source / "CMakeLists.txt"
        lists.write_text(
            lists.read_text().replace("add_torch_b", "add_compile_options(-m32)\nadd_torch_b")
        )
    result = project.configure(*options)
    assert result.returncode != 0
    assert "the compiler builds for i386, but the PyTorch in" in words(result)


@pytest.mark.parametrize(
    "machine, name",
    [
        (AARCH64, "aarch64"),
        (I386, "i386"),
        ((2, 1, 21), "ppc64"),
        ((2, 2, 21), "ppc64, big-endian"),
        ((2, 2, 22), "s390x"),
        ((2, 1, 243), "riscv"),
        ((1, 1, 62), "x86_64 with 32-bit pointers"),
        ((2, 1, 4711), "ELF machine 4711"),
    ],
)
def test_a_pytorch_for_another_machine(cmake, scaffold, fake_python, machine, name):
    environment = fake_python("2.13.0", head=elf(*machine))
    result = cmake(scaffold()).configure(environment=environment)
    assert result.returncode != 0
    assert f" is for {name}. " in words(result)


@pytest.mark.parametrize(
    "library, ours, theirs",
    [
        ("libc++.so.1", "libstdc++", "libc++"),
        ("libc.musl-x86_64.so.1", "glibc", "musl"),
    ],
)
def test_another_library(cmake, scaffold, fake_python, library, ours, theirs):
    environment = fake_python("2.13.0", head=elf(*X86_64), needed=[library])
    result = cmake(scaffold()).configure(environment=environment)
    assert result.returncode != 0
    text = words(result)
    assert f"add_torch_backend(): the compiler uses {ours}, but the PyTorch in " in text
    assert f" was built with {theirs}. " in text
    assert text.count(f"Build with {theirs}.") == 1


def test_the_same_libraries(cmake, scaffold, fake_python):
    environment = fake_python(
        "2.13.0", head=elf(*X86_64), needed=["libstdc++.so.6", "libc.so.6", "libm.so.6"]
    )
    result = cmake(scaffold()).configure(environment=environment)
    assert result.returncode == 0, result.stderr


def test_a_second_run_asks_the_compiler_nothing(cmake, scaffold):
    project = cmake(scaffold())
    assert project.configure().returncode == 0
    probe = project.build / "CMakeFiles" / "backendkit-probe" / "machine.a"
    before = probe.stat().st_mtime_ns
    assert project.configure().returncode == 0
    assert probe.stat().st_mtime_ns == before
    assert project.configure("-DCMAKE_CXX_FLAGS=-O1").returncode == 0
    assert probe.stat().st_mtime_ns != before


def test_a_project_without_cxx(cmake, scaffold):
    project = cmake(scaffold())
    lists = project.source / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("LANGUAGES CXX", "LANGUAGES C"))
    result = project.configure()
    assert result.returncode != 0
    text = "add_torch_backend(): needs C++. Enable it: project(<name> LANGUAGES CXX)."
    assert text in words(result)
