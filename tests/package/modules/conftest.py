# SPDX-License-Identifier: Apache-2.0
"""The Python of a backend's package without a built library; nothing has to be built or installed.

The modules change PyTorch, so each test runs in a process of its own, forked from one that has only
imported torch.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from package_without_library import Package

#: For one test, which takes milliseconds.
LIMIT_S = 100


@pytest.fixture
def package(tmp_path: Path) -> Package:
    """The package, of which nothing is imported yet."""
    return Package(tmp_path)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Runs a test in a forked process, and fails with the text of its failure."""
    here, there = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(LIMIT_S)
            os.close(here)
            status = _run(pyfuncitem, there)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(there)
    with open(here, encoding="utf-8") as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        pytest.fail(text or f"the test's process ended with status {status}", pytrace=False)
    return True


def _run(item: pytest.Function, pipe: int) -> int:
    try:
        item.obj(**{name: item.funcargs[name] for name in item._fixtureinfo.argnames})
    except BaseException:
        text = str(item.repr_failure(pytest.ExceptionInfo.from_current()))
        with open(pipe, "w", encoding="utf-8") as file:
            file.write(text)
        return 1
    return 0
