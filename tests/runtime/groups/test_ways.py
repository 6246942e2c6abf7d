# SPDX-License-Identifier: Apache-2.0
"""Other ways of collectives than the simulator's own: through the host, with fewer functions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DEVICE_TESTS = ROOT / "tests" / "device"
sys.path.append(str(ROOT / "tests" / "runtime" / "faults"))
from project import run  # noqa: E402

#: The functions that a Runtime may have besides those for communicators.
FUNCTIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
MESSAGES = ("send", "recv", "begin_group", "end_group")


def device_tests(python: str | Path, *arguments: str, **variables: str) -> str:
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--device", "foo"]
    done = subprocess.run(
        [*command, *arguments],
        cwd=DEVICE_TESTS,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


def test_through_the_host() -> None:
    """`./dev test` runs all device tests with the simulator's collectives."""
    files = ("test_collectives.py", "test_groups_end.py", "test_parallel.py")
    python = os.environ["BACKENDKIT_TEST_PYTHON"]
    text = device_tests(python, *files, FOO_SIMULATOR_COLLECTIVES="0")
    assert int(re.findall(r"(\d+) passed", text)[0]) > 600


@pytest.mark.parametrize("kept", [("all_reduce", "broadcast"), ("reduce_scatter",)], ids="-".join)
def test_fewer_functions(tmp_path: Path, kept: tuple[str, ...]) -> None:
    """The others are made of these, or go through the host."""
    project, site = tmp_path / "foo", tmp_path / "site"
    run(os.environ["BACKENDGEN"], "new", project)
    for name in ("runtime.h", "runtime.cpp"):
        path = project / "csrc" / name
        text = path.read_text(encoding="utf-8")
        for function in set(FUNCTIONS + MESSAGES) - set(kept):
            ends = r"[^;{]*;\n" if name == "runtime.h" else r".*?\n(?:  .*\n)*(?:}\n)?"
            head = rf"^ *(?:static )?\w+ (?:Runtime::)?{function}\("
            text, count = re.subn(head + ends, "", text, flags=re.M)
            assert count == 1, (name, function)
        path.write_text(text, encoding="utf-8")
    options = ["-DCMAKE_BUILD_TYPE=Release", f"-DBackendKit_DIR={os.environ['BACKENDKIT_BUILD']}"]
    options += [f"-DPython_EXECUTABLE={os.environ['BACKENDKIT_TEST_BASE_PYTHON']}"]
    run("cmake", "-G", "Ninja", "-S", project, "-B", tmp_path / "build", *options)
    run("cmake", "--build", tmp_path / "build")
    run("cmake", "--install", tmp_path / "build", "--prefix", site, "--component", "foo")
    metadata = site / "torch_foo-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch_foo\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text("[torch.backends]\nfoo = torch_foo:_autoload\n")
    ask = "import torch; print(*(k for k, v in torch.foo.capabilities().runtime.items() if v))"
    base = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    there = run(base, "-c", ask, PYTHONPATH=str(site)).split()
    assert {one for one in (*FUNCTIONS, "messages") if one in there} == set(kept)
    chosen = "float32 or uneven or bool or no_whole_memory or coalesc"
    text = device_tests(base, "-k", chosen, "test_collectives.py", PYTHONPATH=str(site))
    assert int(re.findall(r"(\d+) passed", text)[0]) > 60


FULL = """
import torch
import torch.distributed as dist
dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
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
def test_shared_memory_is_full() -> None:
    """The error says so, and the process goes on."""
    mount = "mount -t tmpfs -o size=64k none /dev/shm && exec "
    python = os.environ["BACKENDKIT_TEST_PYTHON"]
    text = run("unshare", "-m", "sh", "-c", f'{mount} "$0" -W ignore -c "$1"', python, FULL)
    first, second = text.splitlines()
    assert "foo::Runtime::create_communicator failed on foo:0" in first
    assert "bytes of shared memory: No space left on device" in first
    assert second == "[1.0, 1.0]"
