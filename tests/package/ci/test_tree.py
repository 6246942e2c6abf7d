# SPDX-License-Identifier: Apache-2.0
"""Rules that every file of this repository keeps."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MAX_LINES, MAX_TEST_LINES = 400, 800

# What `backendgen new` writes belongs to the vendor, and a golden is compared byte for byte.
NOT_OURS = ("templates/project/", "templates/ci/", "examples/", "tests/generator/golden/cases/")
CODE = {".cpp", ".h", ".py", ".cmake", ".pyi"}

FORBIDDEN = {
    "unfinished work": re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b"),
    "a place on one machine": re.compile(r"(?<![\w.])/(work|root|home/\w+)/"),
    "a registry's host": re.compile(r"(py" + r"pi\.org|pytorch\.org/" + r"whl|pythonhosted\.org)"),
}


def files() -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    return sorted(name for name in listed.decode().split("\0") if name and (ROOT / name).is_file())


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def code() -> list[str]:
    return [name for name in files() if Path(name).suffix in CODE or name == "dev"]


def ours(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith(NOT_OURS)]


def test_there_is_something_to_judge() -> None:
    assert len(ours(code())) > 50


def test_licence_line() -> None:
    # What backendgen writes into a vendor's build is headed by a line of its own; the inputs of a
    # golden case are as a vendor writes them.
    missing = [
        name
        for name in ours(code())
        if not name.startswith(
            (
                "templates/custom/glue/",
                "templates/glue/",
                "templates/registrations/",
                "templates/ops/",
                "templates/packaging/",
                "tests/package/cmake/errors/",
            )
        )
        and text(name)
        and "SPDX-License-Identifier: Apache-2.0" not in text(name)[:200]
    ]
    assert missing == []


def test_files_are_short() -> None:
    long = []
    for name in ours(code()):
        limit = MAX_TEST_LINES if name.startswith("tests/") else MAX_LINES
        lines = text(name).count("\n")
        if lines > limit:
            long.append(f"{name}: {lines} lines")
    assert long == []


def test_test_files_have_names_of_their_own() -> None:
    # pytest imports them as modules beside each other, and stops at the second of one name.
    names = [Path(name).name for name in ours(files()) if name.startswith("tests/")]
    names = [name for name in names if name.startswith("test_") and name.endswith(".py")]
    assert sorted(set(names)) == sorted(names)


def test_modules_of_tests_have_names_of_their_own() -> None:
    # Python has one `machine`, whichever folder's tests import it first.
    places: dict[str, set[str]] = {}
    for name in ours(files()):
        if not name.startswith("tests/") or not name.endswith(".py"):
            continue
        for module in re.findall(r"^(?:from|import) (\w+)", text(name), re.M):
            beside = Path(name).with_name(f"{module}.py")
            if module != "conftest" and (ROOT / beside).is_file():
                places.setdefault(module, set()).add(str(beside))
    assert len(places) > 10
    assert {module: where for module, where in places.items() if len(where) > 1} == {}


def rooms() -> list[str]:
    """The rooms of the generator, each of which includes only those before it."""
    listed = re.search(r"set\(BACKENDGEN_ROOMS ([\w ]+)\)", text("generator/CMakeLists.txt"))
    assert listed
    return listed[1].split()


def upward_includes(source: str, room: str) -> list[str]:
    """Includes of a file of a room that name a room after it, or no room where one is due."""
    allowed = rooms()[: rooms().index(room) + 1]
    found = re.findall(r'^\s*#\s*include\s*([<"])([^/>"]+)', source, re.M)
    return [
        first
        for quote, first in found
        if first not in allowed and (quote == '"' or first in rooms())
    ]


def test_rooms_of_the_generator_include_only_those_before_them() -> None:
    found = [
        f"{name} includes {include}"
        for name in code()
        if name.startswith("generator/") and name.count("/") > 1
        for include in upward_includes(text(name), name.split("/")[1])
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        '#include "glue/writer.h"',
        "#include <commands/new.h>",
        '  #  include "ops/page.h"',
        '#include "cli.h"',
    ],
)
def test_an_include_that_points_up_is_found(line: str) -> None:
    around = '#include <vector>\n#include "base/disk.h"\n#include "description/load.h"\n'
    assert upward_includes(around, "description") == []
    assert len(upward_includes(f"{around}{line}\n", "description")) == 1


def test_one_header_calls_the_runtime() -> None:
    # driver.h translates what a Runtime throws and checks what it returns.
    header = text("include/backendkit/runtime.h")
    functions = set(re.findall(r"{ Runtime::(\w+)\(", header))
    assert len(functions) == 33
    call = re.compile(rf"\bRuntime::({'|'.join(functions)})\b")
    placed = (
        "include/backendkit/",
        "templates/glue/",
        "templates/custom/",
        "templates/registrations/",
    )
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in files()
        if name.startswith(placed)
        and name not in ("include/backendkit/device/driver.h", "include/backendkit/runtime.h")
        for number, line in enumerate(text(name).splitlines(), 1)
        if call.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_nothing_stands_here_that_must_not(what: str) -> None:
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name in ours(files())
        for number, line in enumerate(text(name).splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]
    assert found == []


def test_glue_registers_with_macros_of_its_own() -> None:
    # Those of PyTorch register beside another backend, which ends the program, and take it back
    # while threads may still compute; include/backendkit/library.h.
    names = [name for name in code() if name.startswith("templates/") and name.endswith(".cpp")]
    names = [name for name in names if not name.startswith(NOT_OURS)]
    assert len(names) >= 7
    uses = re.compile(r"^\s*(TORCH_LIBRARY|C10_REGISTER_GUARD)", re.M)
    assert [name for name in names if uses.search(text(name))] == []


def test_projects_include_only_public_headers() -> None:
    """docs/runtime.md lists them."""
    page = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
    public = set(re.findall(r"^- `(backendkit/[\w/]+\.h)`:", page, re.M))
    assert len(public) >= 3
    assert {one for one in public if not (ROOT / "include" / one).is_file()} == set()
    files = [
        *(ROOT / "examples").rglob("*.[hc]*"),
        *(ROOT / "templates" / "project").rglob("*.[hc]*"),
        *(ROOT / "docs").glob("*.md"),
    ]
    for path in files:
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert set(re.findall(r"#include <(backendkit/[^>]+)>", text)) <= public, path.name


def test_no_test_changes_the_environment_of_others() -> None:
    """pytest imports each conftest.py and test module of a process, whichever tests it runs."""
    change = re.compile(r"os\.environ(\[.*\] =|\.(pop|update|setdefault|clear)\()")
    found = [
        f"{path.relative_to(ROOT)}:{statement.lineno}"
        for pattern in ("conftest.py", "test_*.py")
        for path in (ROOT / "tests").rglob(pattern)
        if "golden" not in path.parts
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(statement, (ast.Expr, ast.Assign)) and change.match(ast.unparse(statement))
    ]
    assert found == []
