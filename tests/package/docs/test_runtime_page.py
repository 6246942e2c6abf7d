# SPDX-License-Identifier: Apache-2.0
"""docs/runtime.md and the Runtime's headers say the same."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
HEADER = (ROOT / "include" / "backendkit" / "device" / "check_runtime.h").read_text(
    encoding="utf-8"
)


def required() -> list[str]:
    """The signatures that the header's messages ask for, adjacent literals joined."""
    whole = re.sub(r'"\s+"', "", HEADER)
    return re.findall(r'"Runtime needs: static (.*?)"', whole)


def optional() -> list[str]:
    found = re.findall(r"BACKENDKIT_CHECK_OPTIONAL\(\w+, \w+,\s+((?:\"[^\"]*\"\s*)+)\)", HEADER)
    return ["".join(re.findall(r'"([^"]*)"', literals)) for literals in found]


def compile_page(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    source = tmp_path / "page.cpp"
    source.write_text(
        f"{text}#include <backendkit/device/check_runtime.h>\n"
        "static_assert(backendkit::check_runtime<foo::Runtime>());\n"
    )
    command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", str(source)]
    return subprocess.run(command, capture_output=True, text=True)


def blocks() -> tuple[str, str]:
    """The type, and the line that a vendor may add to it."""
    whole, line = re.findall(r"^```cpp\n(.*?)^```$", PAGE, re.M | re.S)
    return whole, line


def block() -> str:
    return blocks()[0]


def test_every_function_is_in_a_table() -> None:
    assert re.findall(r"^\| `(.*?)` \|", PAGE, re.M) == required() + optional()
    assert len(required()) == 7
    assert len(optional()) == 38


def with_all() -> str:
    """The type shown, with every function that a vendor may add."""
    begin = "struct Runtime {\n"
    functions = "".join(f"  static {one};\n" for one in optional())
    return "#include <backendkit/collectives.h>\n" + block().replace(begin, begin + functions)


def test_the_functions_to_add_fit(tmp_path: Path) -> None:
    done = compile_page(tmp_path, with_all())
    assert done.returncode == 0, done.stderr


def test_a_wrong_signature_is_named(tmp_path: Path) -> None:
    wrong = with_all().replace("bool query_stream(", "int query_stream(")
    done = compile_page(tmp_path, wrong)
    assert done.returncode == 1
    expected = "static bool query_stream(backendkit::StreamHandle stream, int device)"
    assert f"Runtime::query_stream must be: {expected}" in done.stderr


def test_half_a_group_is_refused(tmp_path: Path) -> None:
    (line,) = [one for one in optional() if "query_event" in one]
    done = compile_page(tmp_path, with_all().replace(f"  static {line};\n", ""))
    assert done.returncode == 1
    assert "a Runtime with events must implement create_event" in done.stderr


def test_the_type_shown_is_a_runtime(tmp_path: Path) -> None:
    done = compile_page(tmp_path, block())
    assert done.returncode == 0, done.stderr


def test_the_line_to_add_fits(tmp_path: Path) -> None:
    whole, line = blocks()
    begin = "struct Runtime {\n"
    assert whole.count(begin) == 1
    done = compile_page(tmp_path, whole.replace(begin, begin + line))
    assert done.returncode == 0, done.stderr


def test_a_function_left_out_is_named(tmp_path: Path) -> None:
    done = compile_page(tmp_path, block().replace("static void synchronize(int device);", ""))
    assert done.returncode == 1
    assert "Runtime needs: static void synchronize(int device)" in done.stderr
