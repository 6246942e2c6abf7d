# SPDX-License-Identifier: Apache-2.0
"""Each message of the CMake functions, whole.

A folder of errors/ has a CMakeLists.txt, other files of the project, and the message that is
expected; `pytest tests/package/cmake --update` writes the messages.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ERRORS = pathlib.Path(__file__).parent / "errors"
CASES = sorted(path.name for path in ERRORS.iterdir())


def message(text, project):
    """What CMake printed of the error, without its place and with the paths of this run named."""
    found = re.search(r"CMake Error at [^\n]*\n(.*?)(?:\nCall Stack|\Z)", text, re.DOTALL)
    if found is None:
        return text
    body = re.sub(r"^\s*\n|\s+$", "", found.group(1))
    for path, name in (
        (os.environ["BACKENDKIT_BUILD"], "<backendkit>"),
        (str(project.source), "<source>"),
        (str(project.python), "<python>"),
    ):
        body = body.replace(path, name)
    return body + "\n"


def python_of(case, project, tmp_path):
    """The Python that a case wants: one without PyTorch, or none at all."""
    if case.startswith("no_python"):
        return tmp_path / "no" / "python"
    if case.startswith("no_torch"):
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True
        )
        return tmp_path / "bare" / "bin" / "python"
    return project.python


@pytest.mark.parametrize("case", CASES)
def test_error(case, cmake, fake_python, tmp_path, request):
    project = cmake(tmp_path / "project")
    shutil.copytree(ERRORS / case, project.source, ignore=shutil.ignore_patterns("message.txt"))
    project.python = python_of(case, project, tmp_path)
    environment = fake_python("2.4.1") if case.startswith("old_torch") else None
    result = project.configure(environment=environment)
    assert result.returncode != 0, result.stdout
    actual = re.sub(r"\s*\n\s*", " ", message(result.stderr, project))
    if request.config.getoption("--update"):
        (ERRORS / case / "message.txt").write_text(message(result.stderr, project))
    expected = re.sub(r"\s*\n\s*", " ", (ERRORS / case / "message.txt").read_text())
    # CMake breaks lines by the length of paths, so words are compared, not lines.
    assert actual.split() == expected.split()


def test_a_package_that_does_not_run_is_not_found(cmake, tmp_path):
    """REQUIRED ends with the reason; QUIET goes on without BackendKit."""
    package = tmp_path / "package"
    package.mkdir()
    build = pathlib.Path(os.environ["BACKENDKIT_BUILD"])
    text = (build / "BackendKitConfig.cmake").read_text()
    broken = re.sub(r'_places "[^"]*"', f'_places "{tmp_path}/no/backendgen"', text)
    assert broken != text
    (package / "BackendKitConfig.cmake").write_text(broken)
    for words, status in (("REQUIRED", 1), ("QUIET", 0)):
        source = tmp_path / words
        source.mkdir()
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22...4.0)\nproject(x LANGUAGES NONE)\n"
            f"find_package(BackendKit {words})\n"
            'message(STATUS "found: ${BackendKit_FOUND}")\n'
        )
        project = cmake(source, package=package)
        result = project.configure()
        assert bool(result.returncode) == bool(status), result.stderr
        if status:
            assert "does not run. Install BackendKit again." in " ".join(result.stderr.split())
        else:
            assert "found: 0" in result.stdout
