# SPDX-License-Identifier: Apache-2.0
"""A backend whose kernels draw random numbers and attend, and which keeps state of its tensors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import build, run

HERE = Path(__file__).parent
EXAMPLE = '# "add.out" = "foo::add"\n'
SOURCES = ("attention.cpp", "metadata.cpp", "pinned.cpp", "random.cpp")
COUNT = "  static int device_count();\n"
METADATA = "".join(
    f"  static void {name}(const at::Tensor& tensor, backendkit::TensorMetadata& metadata);\n"
    for name in ("save_metadata", "load_metadata")
)


@pytest.fixture(scope="module")
def state_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package of the backend is."""
    folder = tmp_path_factory.mktemp("state")
    project = folder / "foo"
    done = run(os.environ["BACKENDGEN"], "new", project)
    assert done.returncode == 0, done.stdout
    kernels = (HERE / "state" / "operators.toml").read_text(encoding="utf-8")
    sources = " ".join(f"csrc/{source}" for source in SOURCES)
    for file, old, new in [
        ("backend.toml", EXAMPLE, kernels),
        ("CMakeLists.txt", "SOURCES", f"SOURCES {sources}"),
        ("csrc/runtime.h", COUNT, COUNT + METADATA),
    ]:
        text = (project / file).read_text(encoding="utf-8")
        assert text.count(old) == 1
        (project / file).write_text(text.replace(old, new), encoding="utf-8")
    for source in SOURCES:
        shutil.copy(HERE / "state" / source, project / "csrc")
    return build(project, folder)


@pytest.mark.parametrize("part", ["attention", "random", "metadata", "pinned", "processes"])
def test_state(state_site: Path, part: str) -> None:
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / f"check_{part}.py"]
    environment = {"PYTHONPATH": str(state_site), "FOO_SIMULATOR_DELAY": "200"}
    done = run(sys.executable, *command, **environment)
    assert done.returncode == 0, done.stdout[-8000:]
    assert re.search(r"^\d+ passed", done.stdout, re.M), done.stdout


#: What a C++ program that uses PyTorch is compiled and linked with.
ASK = """
import torch
from torch.utils import cpp_extension
print(torch._C._GLIBCXX_USE_CXX11_ABI * 1)
print(*cpp_extension.include_paths(), sep="\\n")
print()
print(*cpp_extension.library_paths(), sep="\\n")
"""


def test_a_module_of_a_c_program(state_site: Path, tmp_path: Path) -> None:
    """`torch::nn::Module::to` keeps a parameter, which PyTorch itself refuses to set."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    text = subprocess.check_output([sys.executable, "-c", ASK], text=True, env=environment)
    first, second = text.strip().split("\n\n")
    abi, *headers = first.splitlines()
    folders = second.splitlines()
    program = tmp_path / "module_moves"
    done = run(
        os.environ.get("CXX", "c++"), "-std=c++20", "-O0", HERE / "state" / "module_moves.cpp",
        f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *[f"-I{folder}" for folder in headers],
        *[f"-L{folder}" for folder in folders], *[f"-Wl,-rpath,{folder}" for folder in folders],
        "-Wl,--no-as-needed", "-ltorch_cpu", "-lc10", "-ldl", "-o", program,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:]
    (library,) = state_site.rglob("libtorch_foo.so")
    done = run(program, library)
    assert (done.returncode, done.stdout) == (0, "the same\n")
