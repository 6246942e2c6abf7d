# SPDX-License-Identifier: Apache-2.0
"""C++ programs of these tests, built with a sanitizer and with PyTorch's headers and libraries."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "runtime" / "faults"))
from project import run  # noqa: E402

ASK_PYTORCH = """
import json, torch
print(json.dumps([torch.__path__[0], int(torch._C._GLIBCXX_USE_CXX11_ABI)]))
"""


def build(program: Path, sanitizer: str, *sources: Path, libraries: tuple[str | Path, ...]) -> None:
    """Builds a program, which finds BackendKit's headers and those beside its sources."""
    python = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    torch, abi = json.loads(run(python, "-c", ASK_PYTORCH, TORCH_DEVICE_BACKEND_AUTOLOAD="0"))
    flags = ["-std=c++20", "-g", "-O1", "-Wall", "-Wextra", f"-fsanitize={sanitizer}", "-pthread"]
    flags += [f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-I{ROOT / 'include'}"]
    flags += [f"-I{folder}" for folder in dict.fromkeys(one.parent for one in sources)]
    flags += ["-isystem", f"{torch}/include", "-isystem", f"{torch}/include/torch/csrc/api/include"]
    flags += [f"-L{torch}/lib", f"-Wl,-rpath,{torch}/lib", "-Wl,--no-as-needed"]
    run(os.environ.get("CXX", "c++"), *flags, *sources, "-o", program, *libraries)
