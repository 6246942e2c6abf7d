# SPDX-License-Identifier: Apache-2.0
"""PyTorch's profiler headers write text with fmt, which no backend's library should contain."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

INCLUDE = Path(__file__).resolve().parents[3] / "include"

KINETO = """
#pragma once
#include <fmt/format.h>
inline std::string metadata(const std::string& key, int value) {
  return fmt::format("\\"{}\\": {}", key, value) + fmt::format("{}", std::string("|end"));
}
"""
FMT = """
#ifndef FMT_FORMAT_H_
#define FMT_FORMAT_H_
#include <string>
namespace fmt {
template <class... Values>
std::string format(const char*, const Values&...) { return "fmt"; }
}
#endif
"""
MAIN = """
#include <iostream>
int main() {{ std::cout << metadata("stream", 7) << {more}; }}
"""
KINETO_H = "#include <backendkit/profiler/kineto.h>\n"
FMT_H = "#include <fmt/format.h>\n"


def output(folder: Path, program: str, *flags: str) -> str:
    (folder / "kineto").mkdir()
    (folder / "kineto" / "libkineto.h").write_text(KINETO)
    (folder / "main.cpp").write_text(program)
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Werror", *flags]
    command += [f"-I{folder}", f"-I{INCLUDE}", "main.cpp", "-o", "main"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def with_fmt(tmp_path):
    (tmp_path / "fmt").mkdir()
    (tmp_path / "fmt" / "format.h").write_text(FMT)
    return tmp_path


def test_kineto_gets_a_function_in_the_place_of_fmt(with_fmt):
    assert output(with_fmt, KINETO_H + MAIN.format(more='""')) == '"stream": 7|end'


def test_a_program_includes_fmt_before(with_fmt):
    assert output(with_fmt, FMT_H + KINETO_H + MAIN.format(more='""')) == "fmtfmt"


def test_a_program_includes_fmt_afterwards(with_fmt):
    program = KINETO_H + FMT_H + MAIN.format(more='fmt::format("", 1)')
    assert output(with_fmt, program) == '"stream": 7|endfmt'


def test_a_machine_has_no_fmt(tmp_path):
    missing = INCLUDE / "backendkit" / "profiler" / "missing"
    program = KINETO_H + MAIN.format(more='""')
    assert output(tmp_path, program, f"-idirafter{missing}") == '"stream": 7|end'
