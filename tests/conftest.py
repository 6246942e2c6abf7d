# SPDX-License-Identifier: Apache-2.0
"""What the golden tests of the program and of the CMake functions share; parts run in parallel."""

from typing import Any

import pytest

# Inputs and expected results, in which there are projects with tests of their own.
collect_ignore_glob = ["generator/golden/cases/*", "package/cmake/errors/*"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write what is expected anew")
    every = "also those of PyTorch's own tests that take hours; see tests/pytorch/unchanged"
    parser.addoption("--every-test", action="store_true", help=every)


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

    return ByFolder(config, log)
