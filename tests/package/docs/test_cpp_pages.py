# SPDX-License-Identifier: Apache-2.0
"""The C++ and CMake that pages show is what examples and tests compile."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "cpp_inference"


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def test_the_metadata_shown_is_what_a_backend_of_the_tests_keeps() -> None:
    metadata = ROOT / "tests" / "runtime" / "kernels" / "state" / "metadata.cpp"
    source = metadata.read_text(encoding="utf-8")
    shown = blocks("serialization.md", "cpp")
    assert len(shown) == 2
    assert [block for block in shown if block not in source] == []


def test_the_project_shown_is_the_example() -> None:
    (shown,) = blocks("cpp.md", "cmake")
    licence, _, project = (EXAMPLE / "CMakeLists.txt").read_text(encoding="utf-8").partition("\n")
    assert licence.startswith("# SPDX")
    assert shown == project


def test_the_function_shown_compiles(tmp_path: Path) -> None:
    (shown,) = blocks("cpp.md", "cpp")
    source = tmp_path / "page.cpp"
    source.write_text(shown)
    command = ["g++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_headers_shown_are_those_of_the_example() -> None:
    page = (ROOT / "docs" / "cpp.md").read_text(encoding="utf-8")
    code = (EXAMPLE / "inference.cpp").read_text(encoding="utf-8")
    included = re.findall(r"^#include <((?:ATen|c10|torch)/.*)>$", code, re.M)
    listed = [one for one in included if not one.startswith("ATen/ops/conv2d")]
    assert [one for one in listed if f"`{one}`" not in page] == []
