# SPDX-License-Identifier: Apache-2.0
"""Faults that people have: each plants itself, waits, and does what doctor's help says.

A fault is a generator: up to its `yield` it breaks the machine, after it comes the remedy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from doctor_machine import Machine, compile_library, install

Steps = Callable[[Machine], Iterator[None]]


@dataclass(frozen=True)
class Fault:
    name: str
    status: str
    check: str
    text: str  # a part of the row's text
    help: str  # a part of its help
    steps: Steps


FAULTS: list[Fault] = []


def fault(status: str, check: str, text: str, help_: str) -> Callable[[Steps], Steps]:
    def add(steps: Steps) -> Steps:
        FAULTS.append(Fault(steps.__name__, status, check, text, help_, steps))
        return steps

    return add


# --- programs


@fault("warn", "compiler", "found no C++ compiler", "apt-get install g++")
def no_compiler(m: Machine) -> Iterator[None]:
    target = (m.bin / "c++").readlink()
    (m.bin / "c++").unlink()
    yield
    (m.bin / "g++").symlink_to(target)


@fault("warn", "compiler", "cannot compile C++20", "g++ 11 or newer")
def old_compiler(m: Machine) -> Iterator[None]:
    target = (m.bin / "c++").readlink()
    m.program("c++", "echo 'unrecognized option -std=c++20' >&2; exit 1")
    yield
    (m.bin / "c++").unlink()
    (m.bin / "c++").symlink_to(target)


@fault("warn", "compiler", "which CXX names, cannot be started", "unset CXX")
def cxx_names_nothing(m: Machine) -> Iterator[None]:
    m.environment["CXX"] = "g++-99"
    yield
    del m.environment["CXX"]


@fault("fail", "compiler", "found no C++ compiler", "apt-get install g++")
def no_compiler_in_a_project(m: Machine) -> Iterator[None]:
    (m.here / "backend.toml").write_text("")
    target = (m.bin / "c++").readlink()
    (m.bin / "c++").unlink()
    yield
    (m.bin / "c++").symlink_to(target)


@fault("warn", "cmake", "found no `cmake`", "pip install cmake")
def no_cmake(m: Machine) -> Iterator[None]:
    (m.bin / "cmake").unlink()
    yield
    m.program("cmake", "echo cmake version 4.0.0")


@fault("warn", "cmake", "3.18.4 is too old", "pip install --upgrade cmake")
def old_cmake(m: Machine) -> Iterator[None]:
    m.program("cmake", "echo cmake version 3.18.4")
    yield
    m.program("cmake", "echo cmake version 3.22.0")


@fault("warn", "ninja", "found no `ninja`", "pip install ninja")
def no_ninja(m: Machine) -> Iterator[None]:
    (m.bin / "ninja").unlink()
    yield
    m.program("ninja", "echo 1.11.1")


# --- Python


@fault("fail", "python", "cannot run", "--python EXE")
def no_python(m: Machine) -> Iterator[None]:
    del m.environment["VIRTUAL_ENV"]
    yield
    m.arguments = ["--python", str(m.python)]


@fault("warn", "python.start", "prints something", "sitecustomize.py")
def chatty_start(m: Machine) -> Iterator[None]:
    (m.site / "sitecustomize.py").write_text("print('row\\tfail\\tx')\n")
    yield
    (m.site / "sitecustomize.py").unlink()


@fault("fail", "python.start", "ends with status 3", "sitecustomize.py")
def start_ends(m: Machine) -> Iterator[None]:
    (m.site / "sitecustomize.py").write_text("import os; os._exit(3)\n")
    yield
    (m.site / "sitecustomize.py").unlink()


@fault("fail", "python.start", "signal 6", "crash.pth")
def start_crashes(m: Machine) -> Iterator[None]:
    (m.site / "crash.pth").write_text("import os; os.abort()\n")
    yield
    (m.site / "crash.pth").unlink()


@fault("fail", "python.start", "does not start within 10 s", "sitecustomize.py")
def start_hangs(m: Machine) -> Iterator[None]:
    (m.site / "sitecustomize.py").write_text("import time; time.sleep(600)\n")
    yield
    (m.site / "sitecustomize.py").unlink()


@fault("warn", "setuptools", "65.5.0 is too old", 'pip install --upgrade "setuptools>=70.1"')
def old_setuptools(m: Machine) -> Iterator[None]:
    shutil.rmtree(m.site / "setuptools-75.0.0.dist-info")
    old = install(m.site, "setuptools", "65.5.0", [])
    yield
    shutil.rmtree(old)
    install(m.site, "setuptools", "75.0.0", [])


@fault("warn", "setuptools", "not installed", "pip install")
def no_setuptools(m: Machine) -> Iterator[None]:
    shutil.rmtree(m.site / "setuptools-75.0.0.dist-info")
    yield
    install(m.site, "setuptools", "75.0.0", [])


@fault("warn", "pip", "not installed", "-m ensurepip")
def no_pip(m: Machine) -> Iterator[None]:
    shutil.rmtree(m.site / "pip-24.0.dist-info")
    yield
    install(m.site, "pip", "24.0", [])


@fault("warn", "backendkit", "the package is 0.0.1", "-m backendkit doctor")
def other_backendkit(m: Machine) -> Iterator[None]:
    old = install(m.site, "backendkit", "0.0.1", [])
    yield
    shutil.rmtree(old)


# --- PyTorch


@fault("fail", "torch", "found no PyTorch", "pip install torch")
def no_torch(m: Machine) -> Iterator[None]:
    (m.site / "torch").rename(m.folder / "torch")
    yield
    (m.folder / "torch").rename(m.site / "torch")


@fault("fail", "torch.library", "libtorch_cpu.so is missing", "--force-reinstall")
def no_libtorch_cpu(m: Machine) -> Iterator[None]:
    library = m.site / "torch/lib/libtorch_cpu.so"
    data = library.read_bytes()
    library.unlink()
    yield
    library.write_bytes(data)


@fault("fail", "torch.library", "is truncated", "--force-reinstall")
def truncated_libtorch(m: Machine) -> Iterator[None]:
    library = m.site / "torch/lib/libtorch_cpu.so"
    data = library.read_bytes()
    library.write_bytes(data[:2000])
    yield
    library.write_bytes(data)


@fault("fail", "torch.version", "version.py cannot be read: No such file", "torch==2.13.0")
def no_version(m: Machine) -> Iterator[None]:
    text = (m.site / "torch/version.py").read_text()
    (m.site / "torch/version.py").unlink()
    yield
    (m.site / "torch/version.py").write_text(text)


@fault("fail", "torch.version", "cannot be read: ", "torch==2.13.0")
def unreadable_version(m: Machine) -> Iterator[None]:
    text = (m.site / "torch/version.py").read_text()
    (m.site / "torch/version.py").write_text("<<<<<<< HEAD\n")
    yield
    (m.site / "torch/version.py").write_text(text)


@fault("fail", "torch.metadata", "pip installed 2.12.0, but the files are of 2.13.0", "==2.12.0")
def other_metadata(m: Machine) -> Iterator[None]:
    shutil.rmtree(m.site / "torch-2.13.0+cpu.dist-info")
    wrong = install(m.site, "torch", "2.12.0", [])
    yield
    shutil.rmtree(wrong)
    install(m.site, "torch", "2.13.0+cpu", ["torch", "torchgen"])


@fault("warn", "torch.metadata", "was not installed by pip", "pip install torch==2.13.0")
def no_metadata(m: Machine) -> Iterator[None]:
    shutil.rmtree(m.site / "torch-2.13.0+cpu.dist-info")
    yield
    install(m.site, "torch", "2.13.0+cpu", ["torch", "torchgen"])


@fault("fail", "torch.torchgen", "the list of its operators is missing", "--force-reinstall")
def no_torchgen(m: Machine) -> Iterator[None]:
    (m.site / "torchgen").rename(m.folder / "torchgen")
    yield
    (m.folder / "torchgen").rename(m.site / "torchgen")


@fault("fail", "torch.files", "1 of its files missing or changed", "--force-reinstall")
def changed_torch(m: Machine) -> Iterator[None]:
    (m.site / "torch/__init__.py").write_text("import debug\n")
    yield
    (m.site / "torch/__init__.py").write_text("")


@fault("fail", "torch.release", "2.4.1 is too old", "pip install --upgrade torch")
def old_torch(m: Machine) -> Iterator[None]:
    (m.site / "torch/version.py").write_text("__version__ = '2.4.1'\n")
    yield
    (m.site / "torch/version.py").write_text("__version__ = '2.13.0+cpu'\ncuda = None\n")


@fault("fail", "torch.python", "is for another Python", "--force-reinstall")
def torch_of_another_python(m: Machine) -> Iterator[None]:
    (m.site / "torch/_C.cpython-36m-x86_64-linux-gnu.so").write_text("")
    yield
    (m.site / "torch/_C.cpython-36m-x86_64-linux-gnu.so").unlink()


@fault("warn", "torch.copies", "two are on Python's path", "unset PYTHONPATH")
def two_torches(m: Machine) -> Iterator[None]:
    shutil.copytree(m.site / "torch", m.folder / "other/torch")
    shutil.copytree(m.site / "torchgen", m.folder / "other/torchgen")
    m.environment["PYTHONPATH"] = str(m.folder / "other")
    yield
    del m.environment["PYTHONPATH"]


@fault("warn", "torch.hidden", "hides the installed PyTorch", "cd ..")
def torch_here(m: Machine) -> Iterator[None]:
    (m.here / "torch.py").write_text("")
    yield
    m.here = m.here.parent


# --- backends


@fault("fail", "backend.module", "there is no module `torch_foo`", "--force-reinstall")
def no_module(m: Machine) -> Iterator[None]:
    shutil.rmtree(m.site / "torch_foo")
    yield
    m.backend()


@fault("fail", "backend.module", "has no `_autoload`", "--force-reinstall")
def no_autoload(m: Machine) -> Iterator[None]:
    (m.site / "torch_foo/__init__.py").write_text("")
    m.record()
    yield
    m.backend()


@fault("fail", "backend.module", "cannot be read: ", "--force-reinstall")
def syntax_error(m: Machine) -> Iterator[None]:
    (m.site / "torch_foo/__init__.py").write_text("def _autoload(:\n")
    yield
    m.backend()


@fault("fail", "backend.release", "was built for PyTorch 2.12, but this is", '"torch==2.12.*"')
def other_release(m: Machine) -> Iterator[None]:
    m.backend(minor="2.12")
    yield
    m.backend()


@fault("fail", "backend.files", "_build.py is missing", "--force-reinstall")
def missing_file(m: Machine) -> Iterator[None]:
    (m.site / "torch_foo/_build.py").unlink()
    yield
    m.backend()


@fault("fail", "backend.files", "__init__.py is changed", "--force-reinstall")
def changed_file(m: Machine) -> Iterator[None]:
    with (m.site / "torch_foo/__init__.py").open("a") as file:
        file.write("# edited\n")
    yield
    m.backend()


@fault("fail", "backend.library", "is truncated", "--force-reinstall")
def truncated_library(m: Machine) -> Iterator[None]:
    m.own_library.write_bytes(m.own_library.read_bytes()[:3000])
    m.record()
    yield
    m.backend()


@fault("fail", "backend.machine", "is for riscv64", "install a wheel for")
def other_machine(m: Machine) -> Iterator[None]:
    data = bytearray(m.own_library.read_bytes())
    data[18:20] = (243).to_bytes(2, "little")
    m.own_library.write_bytes(data)
    m.record()
    yield
    m.backend()


@fault("fail", "backend.missing", "libfoodrv.so.1 is missing", "LD_LIBRARY_PATH")
def missing_library(m: Machine) -> Iterator[None]:
    driver = compile_library(m.folder / "driver/libfoodrv.so.1", "int drv(void) { return 0; }")
    m.backend(options=[str(driver)])
    yield
    m.environment["LD_LIBRARY_PATH"] = str(driver.parent)


def newer(m: Machine, name: str, version: str) -> None:
    """A backend that was built with a newer one of the system's libraries."""
    script = m.folder / "versions"
    script.write_text(f"{version} {{ fresh; }};\n")
    stub = compile_library(
        m.folder / "stub" / name,
        "void fresh(void) {}",
        "-nostdlib",
        f"-Wl,--version-script={script}",
    )
    m.backend(
        source="void fresh(void); void foo(void) { fresh(); }", options=[str(stub), "-nostdlib"]
    )


@fault("fail", "backend.versions", "needs GLIBC_2.99 of libc.so.6", "built on an older one")
def newer_glibc(m: Machine) -> Iterator[None]:
    newer(m, "libc.so.6", "GLIBC_2.99")
    yield
    m.backend()


@fault("fail", "backend.versions", "needs GLIBCXX_3.4.99 of libstdc++.so.6", "built on an older")
def newer_libstdcxx(m: Machine) -> Iterator[None]:
    newer(m, "libstdc++.so.6", "GLIBCXX_3.4.99")
    yield
    m.backend()


@fault("fail", "backend.symbols", "_ZN3c105ErrorC1ESs", "a wheel built for PyTorch 2.13")
def other_abi(m: Machine) -> Iterator[None]:
    m.backend(source="void _ZN3c105ErrorC1ESs(void); void foo(void) { _ZN3c105ErrorC1ESs(); }")
    yield
    m.backend()


@fault("warn", "backend.rpath", "/builds/vendor/lib, which does not exist", "$ORIGIN")
def absolute_rpath(m: Machine) -> Iterator[None]:
    m.backend(options=["-Wl,-rpath,/builds/vendor/lib"])
    yield
    m.backend(options=["-Wl,-rpath,$ORIGIN"])


@fault("fail", "backend.rivals", "claims PrivateUse1, and so does", "pip uninstall torch_zoo")
def two_backends(m: Machine) -> Iterator[None]:
    m.backend("zoo")
    yield
    shutil.rmtree(m.site / "torch_zoo")
    shutil.rmtree(m.site / "torch_zoo-0.1.0.dist-info")


@fault("fail", "backend.rivals", "claims the device `foo`", "pip uninstall torch_zoo")
def one_device_twice(m: Machine) -> Iterator[None]:
    m.backend("zoo", DEVICE="foo")
    yield
    shutil.rmtree(m.site / "torch_zoo")
    shutil.rmtree(m.site / "torch_zoo-0.1.0.dist-info")


@fault("warn", "backend.twice", "is installed twice", "rm -r")
def two_versions(m: Machine) -> Iterator[None]:
    entry = "torch_foo = torch_foo:_autoload"
    old = install(m.site, "torch_foo", "0.2.0", [], entry)
    yield
    shutil.rmtree(old)


@fault("fail", "backend.entry_points", "entry_points.txt cannot be read", "--force-reinstall")
def broken_entry_points(m: Machine) -> Iterator[None]:
    path = m.site / "torch_foo-0.1.0.dist-info/entry_points.txt"
    path.write_text("torch_foo:_autoload\n")
    yield
    m.backend()


@fault("warn", "backend.files", "has no RECORD", "--force-reinstall")
def no_record(m: Machine) -> Iterator[None]:
    (m.site / "torch_foo-0.1.0.dist-info/RECORD").unlink()
    yield
    m.backend()


@fault("warn", "leftovers", "~orch_foo", "rm -r")
def leftover(m: Machine) -> Iterator[None]:
    (m.site / "~orch_foo").mkdir()
    yield
    (m.site / "~orch_foo").rmdir()


@fault("warn", "leftovers", "has no METADATA", "rm -r")
def empty_dist_info(m: Machine) -> Iterator[None]:
    (m.site / "zoo-1.0.dist-info").mkdir()
    yield
    (m.site / "zoo-1.0.dist-info").rmdir()


@fault("warn", "metadata", "METADATA cannot be read", "rm -r")
def broken_metadata(m: Machine) -> Iterator[None]:
    info = install(m.site, "zoo", "1.0", [])
    (info / "METADATA").write_bytes(b"Name: zoo\nVersion: 1.0\nAuthor: \xff\xfe\n")
    yield
    shutil.rmtree(info)


@fault("warn", "backend.hidden", "hides the installed package", "cd ..")
def source_here(m: Machine) -> Iterator[None]:
    (m.here / "torch_foo").mkdir()
    (m.here / "torch_foo/__init__.py").write_text("")
    yield
    m.here = m.here.parent


@fault("fail", "backend.editable", "is an editable install of", "pip install --no-build-isolation")
def editable_moved(m: Machine) -> Iterator[None]:
    shutil.rmtree(m.site / "torch_foo")
    url = {"url": f"file://{m.folder}/gone", "dir_info": {"editable": True}}
    info = m.site / "torch_foo-0.1.0.dist-info"
    (info / "direct_url.json").write_text(json.dumps(url))
    yield
    (info / "direct_url.json").unlink()
    m.backend()


@fault("fail", "backend.editable", "whose Python files were in", "pip install --no-build-isolation")
def editable_source_moved(m: Machine) -> Iterator[None]:
    (m.site / "torch_foo/_editable.py").write_text("SOURCE = '/gone/torch_foo'\n")
    m.record()
    yield
    (m.site / "torch_foo/_editable.py").write_text(f"SOURCE = {str(m.here)!r}\n")
    m.record()


@fault("fail", "backend.version", "pip installed 0.1.0, but the files are of 0.3.0", "==0.1.0")
def other_version(m: Machine) -> Iterator[None]:
    m.backend(VERSION="0.3.0")
    yield
    m.backend()


# --- the driver


@fault("fail", "driver.library", "libfoodrv.so.7 of the driver is not found", "apt-get install foo")
def no_driver(m: Machine) -> Iterator[None]:
    m.backend(DRIVER_LIBRARIES=["libfoodrv.so.7"], DRIVER_INSTALL="`apt-get install foo-driver`")
    yield
    driver = compile_library(m.folder / "driver/libfoodrv.so.7", "int drv(void) { return 0; }")
    m.environment["LD_LIBRARY_PATH"] = str(driver.parent)


@fault("fail", "driver.node", "there is no", "install the driver of the device")
def no_node(m: Machine) -> Iterator[None]:
    m.backend(DEVICE_NODES=[f"{m.folder}/foo*"])
    yield
    (m.folder / "foo0").write_text("")


@fault("fail", "driver.permission", "cannot be read and written by you", "sudo chmod a+rw ")
def node_of_others(m: Machine) -> Iterator[None]:
    node = m.folder / "foo0"
    node.touch(mode=0o440)
    m.backend(DEVICE_NODES=[f"{m.folder}/foo*"])
    yield
    node.chmod(0o666)


# --- the package with the driver's libraries


def runtime(m: Machine, version: str = "4.2.0") -> Path:
    """Installs foo-runtime, whose second library needs the first; its folder of libraries."""
    libraries = m.site / "foo_runtime/lib"
    first = compile_library(libraries / "libfoofw.so.2", "int fw(void) { return 2; }")
    needs = "int fw(void); int drv(void) { return fw(); }"
    compile_library(libraries / "libfoodrv.so.4", needs, str(first))
    (m.site / "foo_runtime/__init__.py").write_text("")
    (m.site / "foo_runtime/load_order.txt").write_text("libfoofw.so.2\nlibfoodrv.so.4\n")
    install(m.site, "foo_runtime", version, ["foo_runtime"])
    facts = {"RUNTIME_PACKAGE": "foo-runtime", "RUNTIME_REQUIRES": ">=4.2,<5"}
    m.backend(
        source="int drv(void); int foo(void) { return drv(); }",
        options=[str(libraries / "libfoodrv.so.4"), f"-Wl,-rpath-link,{libraries}"],
        DRIVER_LIBRARIES=["libfoodrv.so.4"],
        **facts,
    )
    return libraries


@fault("fail", "runtime.installed", "needs foo-runtime>=4.2,<5, which is not", '"foo-runtime>=4.2')
def no_runtime(m: Machine) -> Iterator[None]:
    runtime(m)
    shutil.rmtree(m.site / "foo_runtime")
    shutil.rmtree(m.site / "foo_runtime-4.2.0.dist-info")
    yield
    runtime(m)


@fault("fail", "runtime.version", "needs foo-runtime>=4.2,<5, but 4.1.0 is", "pip install")
def old_runtime(m: Machine) -> Iterator[None]:
    runtime(m, "4.1.0")
    yield
    shutil.rmtree(m.site / "foo_runtime-4.1.0.dist-info")
    runtime(m)


@fault("fail", "runtime.missing", "libfoopower.so.1 is missing", "LD_LIBRARY_PATH")
def runtime_needs_more(m: Machine) -> Iterator[None]:
    libraries = runtime(m)
    power = compile_library(m.folder / "power/libfoopower.so.1", "int power(void) { return 1; }")
    needs = "int power(void); int fw(void) { return power(); }"
    compile_library(libraries / "libfoofw.so.2", needs, str(power))
    install(m.site, "foo_runtime", "4.2.0", ["foo_runtime"])
    yield
    m.environment["LD_LIBRARY_PATH"] = str(power.parent)


@fault("fail", "runtime.library", "libfoofw.so.2 is truncated", "--force-reinstall")
def truncated_runtime(m: Machine) -> Iterator[None]:
    library = runtime(m) / "libfoofw.so.2"
    library.write_bytes(library.read_bytes()[:3000])
    install(m.site, "foo_runtime", "4.2.0", ["foo_runtime"])
    yield
    runtime(m)


@fault("fail", "backend.files", "libfoofw.so.2 is missing", "foo-runtime==4.2.0")
def runtime_without_a_library(m: Machine) -> Iterator[None]:
    (runtime(m) / "libfoofw.so.2").unlink()
    yield
    runtime(m)


@fault("fail", "runtime.files", "has no list of its libraries", "foo-runtime==4.2.0")
def other_foo_runtime(m: Machine) -> Iterator[None]:
    runtime(m)
    (m.site / "foo_runtime/load_order.txt").unlink()
    install(m.site, "foo_runtime", "4.2.0", ["foo_runtime"])
    yield
    runtime(m)


# --- variables


@fault("fail", "environment.autoload", "TORCH_DEVICE_BACKEND_AUTOLOAD=0 is set", "unset TORCH_")
def no_autoloading(m: Machine) -> Iterator[None]:
    m.environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    yield
    del m.environment["TORCH_DEVICE_BACKEND_AUTOLOAD"]


@fault("warn", "environment.unknown", "BACKENDKIT_FALBACK", "did you mean BACKENDKIT_FALLBACK?")
def misspelt(m: Machine) -> Iterator[None]:
    m.environment["BACKENDKIT_FALBACK"] = "warn"
    yield
    del m.environment["BACKENDKIT_FALBACK"]


@fault("warn", "environment.value", "unknown value `wran`", "set it to warn or error")
def wrong_value(m: Machine) -> Iterator[None]:
    m.environment["BACKENDKIT_FALLBACK"] = "wran"
    yield
    del m.environment["BACKENDKIT_FALLBACK"]


@fault("warn", "environment.value", "BACKENDKIT_SKIP_HANDSHAKE=1", "unset BACKENDKIT_SKIP")
def no_handshake(m: Machine) -> Iterator[None]:
    m.environment["BACKENDKIT_SKIP_HANDSHAKE"] = "1"
    yield
    del m.environment["BACKENDKIT_SKIP_HANDSHAKE"]


@fault("fail", "environment.search_path", "brings another PyTorch", "unset LD_LIBRARY_PATH")
def other_libtorch(m: Machine) -> Iterator[None]:
    shutil.copytree(m.site / "torch/lib", m.folder / "libtorch")
    m.environment["LD_LIBRARY_PATH"] = str(m.folder / "libtorch")
    yield
    del m.environment["LD_LIBRARY_PATH"]


@fault("warn", "environment.preload", "which is not there", "unset LD_PRELOAD")
def preload_missing(m: Machine) -> Iterator[None]:
    m.environment["LD_PRELOAD"] = str(m.folder / "libjemalloc.so")
    yield
    del m.environment["LD_PRELOAD"]


@fault("warn", "environment.conda", "is active, but this Python is of", "conda deactivate")
def other_conda(m: Machine) -> Iterator[None]:
    m.environment["CONDA_PREFIX"] = str(m.folder / "conda")
    yield
    del m.environment["CONDA_PREFIX"]


@fault("warn", "environment.conda", "next to conda's llvm-openmp", "conda remove llvm-openmp")
def mixed_conda(m: Machine) -> Iterator[None]:
    (m.venv / "conda-meta").mkdir()
    (m.venv / "conda-meta/llvm-openmp-17.0.6-h0.json").write_text("{}")
    yield
    (m.venv / "conda-meta/llvm-openmp-17.0.6-h0.json").unlink()


# --- builds


def cache(m: Machine, *lines: str) -> None:
    (m.here / "backend.toml").write_text("")
    tree = m.here / "build/torch-2.13"
    tree.mkdir(parents=True)
    (tree / "CMakeCache.txt").write_text("\n".join([*lines, ""]))


@fault("warn", "build", "it was made for the sources in", "rm -r 'build/torch-2.13'")
def build_of_other_sources(m: Machine) -> Iterator[None]:
    cache(m, "CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere/foo")
    yield
    shutil.rmtree(m.here / "build/torch-2.13")


@fault("warn", "build", "its Python is not there any more", "rm -r 'build/torch-2.13'")
def build_of_a_removed_python(m: Machine) -> Iterator[None]:
    cache(m, "Python_EXECUTABLE:UNINITIALIZED=/gone/bin/python")
    yield
    shutil.rmtree(m.here / "build/torch-2.13")


@fault("warn", "build", "its PyTorch is not there any more", "rm -r 'build/torch-2.13'")
def build_of_a_removed_torch(m: Machine) -> Iterator[None]:
    cache(m)
    rules = m.here / "build/torch-2.13/build.ninja"
    rules.write_text("INCLUDES = -isystem /gone/site-packages/torch/include\n")
    yield
    shutil.rmtree(m.here / "build/torch-2.13")
