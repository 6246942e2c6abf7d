# SPDX-License-Identifier: Apache-2.0
"""The device tests notice faults: each of faults.py is planted, and tests have to fail.

The starter project is built once, from copies in which every fault is there beside what is right;
the variable BACKENDKIT_FAULT says which one a process has.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from fault import Fault
from faults import FAULTS

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests" / "runtime" / "faults"))
from project import add_collectives, add_entry_point, install, make_faulty, run  # noqa: E402

DEVICE_TESTS = ROOT / "tests" / "device"
#: There are two of it, which `#pragma once` takes for one only if they are equally old.
SWITCH = """#ifndef PLANTED_H
#define PLANTED_H

#include <cstdlib>

/// Whether this process has a fault, by its place in faults.py.
inline bool planted(int number) {
  static const int chosen = [] {
    const char* const text = std::getenv("BACKENDKIT_FAULT");
    return text == nullptr ? -1 : std::atoi(text);
  }();
  return chosen == number;
}

#endif
"""
#: Seconds after which a test of a fault that hangs counts as one that noticed it.
PATIENCE = 40
#: A fault or -1, tests, seconds that they may take, and variables of their environment.
Job = tuple[int, list[str], float, dict[str, str]]


def with_fault(fault: Fault, number: int) -> str:
    """What stands for the right text: it and the faulty one, with a switch."""
    if fault.file.endswith(".py"):
        chosen = f"__import__('os').environ.get('BACKENDKIT_FAULT') == '{number}'"
        return f"(({fault.faulty}) if {chosen} else ({fault.right}))"
    if fault.right.endswith(";"):
        return f"if (::planted({number})) {{ {fault.faulty} }} else {{ {fault.right} }}"
    return f"(::planted({number}) ? ({fault.faulty}) : ({fault.right}))"


def plant(folder: Path, head: str) -> None:
    """Plants the faults of the files below `head` in their copies in `folder`."""
    texts: dict[Path, str] = {}
    for number, fault in enumerate(FAULTS):
        if not fault.file.startswith(head):
            continue
        path = folder / fault.file
        if path not in texts:
            texts[path] = path.read_text(encoding="utf-8")
        count = texts[path].count(fault.right)
        assert count == 1, (
            f"`{fault.name}` of tests/runtime/mutation: {fault.file} has its right text "
            f"{count} times, expected once; the source changed, so change the fault:\n{fault.right}"
        )
        texts[path] = texts[path].replace(fault.right, with_fault(fault, number))
    for path, text in texts.items():
        if path.suffix != ".py":
            text = f'#include "{folder}/planted.h"\n{text}'
        path.write_text(text, encoding="utf-8")


def planted_backendkit(folder: Path) -> Path:
    """The CMake package of this build of BackendKit, with headers that have the faults."""
    shutil.copytree(ROOT / "include", folder / "include")
    (folder / "planted.h").write_text(SWITCH)
    build = Path(os.environ["BACKENDKIT_BUILD"])
    text = (build / "BackendKitConfig.cmake").read_text(encoding="utf-8")
    assert str(ROOT / "include") in text
    text = text.replace(str(ROOT / "include"), str(folder / "include"))
    package = folder / "package"
    package.mkdir()
    (package / "BackendKitConfig.cmake").write_text(
        text.replace("${PACKAGE_PREFIX_DIR}", str(build)), encoding="utf-8"
    )
    shutil.copy(build / "BackendKitConfigVersion.cmake", package)
    return package


@dataclass(frozen=True)
class Backend:
    """The starter project's backend with all the faults, installed in a folder."""

    site: Path

    def test(self, jobs: list[Job]) -> list[tuple[int, str]]:
        """What pytest ends with and prints for each job, a process each; -9 if it hangs."""
        path = os.pathsep.join([str(self.site), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run(
            [sys.executable, Path(__file__).with_name("runner.py")],
            cwd=DEVICE_TESTS,
            env={**os.environ, "PYTHONPATH": path},
            input=json.dumps(jobs),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    folder = tmp_path_factory.mktemp("planted")
    package = planted_backendkit(folder)
    plant(folder, "include/")
    run(os.environ["BACKENDGEN"], "new", folder / "foo", cwd=folder)
    add_collectives(folder / "foo")
    make_faulty(folder / "foo")
    (folder / "foo" / "planted.h").write_text(SWITCH)
    plant(folder / "foo", "csrc/")
    site = install(folder / "foo", package, sys.executable, "-DCMAKE_CXX_FLAGS_RELEASE=-O1")
    plant(site, "torch_foo/")
    add_entry_point(site)
    return Backend(site)


def test_faults_are_many_and_named_once() -> None:
    assert len(FAULTS) >= 25
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_each_fault_has_its_place(tmp_path: Path) -> None:
    """Without a build, which the tests of what the faults do need."""
    shutil.copytree(ROOT / "include", tmp_path / "include")
    run(os.environ["BACKENDGEN"], "new", tmp_path / "foo", cwd=tmp_path)
    add_collectives(tmp_path / "foo")
    make_faulty(tmp_path / "foo")
    with zipfile.ZipFile(os.environ["BACKENDKIT_TEST_WHEEL"]) as wheel:
        wheel.extractall(tmp_path)
    plant(tmp_path, "include/")
    plant(tmp_path / "foo", "csrc/")
    plant(tmp_path, "torch_foo/")


@pytest.mark.long
def test_without_a_fault_all_pass(backend: Backend) -> None:
    jobs: list[Job] = []
    for variables in dict.fromkeys(fault.variables for fault in FAULTS):
        with_these = [fault for fault in FAULTS if fault.variables == variables]
        tests = list(dict.fromkeys(test for fault in with_these for test in fault.tests))
        of_faults = [test for test in tests if test.startswith("../")]
        of_device = [test for test in tests if test not in of_faults]
        jobs += [(-1, these, 900, dict(variables)) for these in (of_device, of_faults) if these]
    for status, text in backend.test(jobs):
        assert status == 0, text
        assert "passed" in text
        assert "skipped" not in text


@pytest.mark.long
def test_each_fault_is_noticed(backend: Backend) -> None:
    """A test that fails notices it, as does a process that crashes, or hangs where that is said."""
    jobs: list[Job] = []
    for number, fault in enumerate(FAULTS):
        seconds = PATIENCE if fault.hangs else 600
        jobs += [(number, [test], seconds, dict(fault.variables)) for test in fault.tests]
    unnoticed = []
    for (number, tests, _, _), (status, text) in zip(jobs, backend.test(jobs)):
        killed = status == -signal.SIGKILL
        if not (status == 1 or (killed and FAULTS[number].hangs) or (status < 0 and not killed)):
            found = f"{FAULTS[number].name}: {tests[0]} ended with {status}"
            unnoticed.append(f"{found}\n{text[-600:]}")
    assert not unnoticed, "\n".join(unnoticed)
