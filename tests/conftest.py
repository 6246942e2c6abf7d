# SPDX-License-Identifier: Apache-2.0
"""What the golden tests of the program and of the CMake functions share; parts run in parallel."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

# Inputs and expected results, in which there are projects with tests of their own.
collect_ignore_glob = ["generator/golden/cases/*", "package/cmake/errors/*"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: left out by `./dev test` without arguments")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write what is expected anew")
    every = (
        "also what takes long: hours of PyTorch's own tests (see tests/pytorch/unchanged), and all "
        "device tests on each kind of runtime"
    )
    parser.addoption("--every-test", action="store_true", help=every)


@pytest.fixture(scope="session")
def torch_folder() -> Path:
    """PyTorch's folder in the base environment, without the seconds that importing it takes."""
    ask = "import importlib.util; print(importlib.util.find_spec('torch').origin)"
    command = [os.environ["BACKENDKIT_TEST_BASE_PYTHON"], "-c", ask]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Path(found.strip()).parent


#: Device tests that start many processes or compile, whatever the runtime is: `./dev test` runs
#: them on the starter project, and with `--every-test` on every backend.
LONG_DEVICE_TESTS = (
    "test_compile",
    "test_cpu_programs",
    "test_endings",
    "test_failed_works",
    "test_frameworks",
    "test_groups_end",
    "test_hugging_face",
    "test_jobs",
    "test_late_registration",
    "test_likeness",
    "test_parallel",
    "test_processes",
    "test_sharing",
    "test_training_threads",
    "test_transformers",
)


@pytest.fixture(scope="session")
def device_tests(request: pytest.FixtureRequest) -> list[str]:
    """The arguments of pytest by which a backend that others look at runs the device tests."""
    if request.config.getoption("--every-test"):
        return ["--endings", "1"]
    return ["-k", " and ".join(f"not {module}.py" for module in LONG_DEVICE_TESTS)]


#: Folders of tests that take minutes: they build many backends, or run long suites.
LONGEST = ("pytorch/", "runtime/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadscope` a folder's tests share a process, as they share what they build.

    Marks for `--dist loadgroup` would do as well, but xdist loses them with pytest 9.2.
    """
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFolder(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "/".join(nodeid.split("/")[1:3])

        def _assign_work_unit(self, node: Any) -> None:
            """Folders with the longest tests come first, so that no core is idle at the end.

            xdist itself begins with those that have the most tests.
            """
            first = min(self.workqueue, key=lambda folder: not folder.startswith(LONGEST))
            self.workqueue.move_to_end(first, last=False)
            super()._assign_work_unit(node)

    return ByFolder(config, log)
