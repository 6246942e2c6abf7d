# SPDX-License-Identifier: Apache-2.0
"""Process groups whose collectives are the driver's: those of examples/collectives, and fewer."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DEVICE_TESTS = ROOT / "tests" / "device"
sys.path.append(str(ROOT / "tests" / "runtime" / "faults"))
from project import add_collectives, add_entry_point, install, replace_once, run  # noqa: E402

#: The functions that a Runtime may have besides those for communicators.
FUNCTIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
MESSAGES = ("send", "recv", "begin_group", "end_group")
COPIES_ELEMENTS = "  static bool copy_elements(const at::Tensor& src, const at::Tensor& dst);\n"
#: The device tests of groups.
GROUPS = [
    f"test_{name}.py"
    for name in ("bound_groups", "collectives", "failed_works", "groups_end", "parallel")
]
HAVE = "import torch; print(*(k for k, v in torch.foo.capabilities().runtime.items() if v))"


def build(folder: Path, *kept: str, copies_elements: bool = False) -> Path:
    """A new project with collectives of the driver, but without those not kept."""
    run(os.environ["BACKENDGEN"], "new", folder / "foo")
    add_collectives(folder / "foo")
    if copies_elements:
        add_copies_of_elements(folder / "foo")
    for name in ("collectives.h", "collectives.cpp"):
        path = folder / "foo" / "csrc" / name
        text = path.read_text(encoding="utf-8")
        for function in set(FUNCTIONS + MESSAGES) - set(kept):
            ends = r"[^;{]*;\n" if name.endswith(".h") else r".*?\n(?:  .*\n)*(?:}\n)?"
            head = rf"^ *(?:static )?\w+ (?:Collectives::)?{function}\("
            text, count = re.subn(head + ends, "", text, flags=re.M)
            assert count == 1, (name, function)
        path.write_text(text, encoding="utf-8")
    package = Path(os.environ["BACKENDKIT_BUILD"])
    site = install(folder / "foo", package, os.environ["BACKENDKIT_TEST_BASE_PYTHON"])
    add_entry_point(site)
    there = run(os.environ["BACKENDKIT_TEST_BASE_PYTHON"], "-c", HAVE, PYTHONPATH=str(site)).split()
    assert "communicators" in there
    messages = ["messages"] if set(MESSAGES) <= set(kept) else []
    assert {one for one in (*FUNCTIONS, "messages") if one in there} == {
        *(one for one in kept if one in FUNCTIONS),
        *messages,
    }
    return site


def add_copies_of_elements(project: Path) -> None:
    synchronize = "  static void synchronize(int device);\n"
    replace_once(project / "csrc" / "runtime.h", synchronize, synchronize + COPIES_ELEMENTS)
    kernel = HERE / "copy_elements.cpp"
    replace_once(project / "CMakeLists.txt", "SOURCES", f"SOURCES {kernel}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("driver"), *FUNCTIONS, *MESSAGES)


def device_tests(python: str, *arguments: str, **variables: str) -> int:
    """How many pass; all others fail the test."""
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--device", "foo"]
    text = run(*command, *arguments, cwd=DEVICE_TESTS, **variables)
    return int(re.findall(r"(\d+) passed", text)[0])


def device_tests_of(site: Path, *arguments: str) -> int:
    python = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    return device_tests(python, *arguments, PYTHONPATH=str(site))


@pytest.mark.parametrize("size", [pytest.param("2", marks=pytest.mark.long), "4"])
def test_by_the_driver(site: Path, size: str) -> None:
    """`./dev test` runs all device tests with collectives through the host."""
    assert device_tests_of(site, "--world-size", size, *GROUPS) > 650


def test_four_ranks_through_the_host() -> None:
    python = os.environ["BACKENDKIT_TEST_PYTHON"]
    assert device_tests(python, "--world-size", "4", *GROUPS) > 650


@pytest.mark.parametrize(
    "kept",
    [
        ("all_reduce", "broadcast"),
        ("reduce_scatter",),
        pytest.param(("all_gather",), marks=pytest.mark.long),
        pytest.param(("broadcast",), marks=pytest.mark.long),
        pytest.param(MESSAGES, marks=pytest.mark.long),
    ],
    ids="-".join,
)
def test_fewer_functions(tmp_path: Path, kept: tuple[str, ...]) -> None:
    """The others are made of these, or go through the host."""
    chosen = "float32 or uneven or bool or no_whole_memory or coalesc"
    assert device_tests_of(build(tmp_path, *kept), "-k", chosen, "test_collectives.py") > 60


def test_results_that_a_kernel_brings(tmp_path: Path) -> None:
    """For tensors that are not dense, where the vendor has a kernel for them."""
    chosen = "no_whole_memory or begins_before or layouts or transposed"
    site = build(tmp_path, *FUNCTIONS, *MESSAGES, copies_elements=True)
    assert device_tests_of(site, *GROUPS, "-k", chosen) > 70


FULL = """
import torch
import torch.distributed as dist
dist.init_process_group("cpu:gloo,foo:fooccl", store=dist.HashStore(), rank=0, world_size=1)
try:
    dist.all_reduce(torch.ones(2, device="foo"))
except RuntimeError as error:
    print(str(error).splitlines()[0])
there = torch.ones(2)
dist.all_reduce(there)
print(there.tolist())
dist.destroy_process_group()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts memory")
def test_shared_memory_is_full(site: Path) -> None:
    """The error says so, and the process goes on."""
    mount = "mount -t tmpfs -o size=64k none /dev/shm && exec "
    python = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    program = ("unshare", "-m", "sh", "-c", f'{mount} "$0" -W ignore -c "$1"', python, FULL)
    first, second = run(*program, PYTHONPATH=str(site)).splitlines()
    assert "foo::Runtime::create_communicator failed on foo:0" in first
    assert "bytes of shared memory: No space left on device" in first
    assert second == "[1.0, 1.0]"
