# SPDX-License-Identifier: Apache-2.0
"""What the golden tests of the program and of the CMake functions share; parts run in parallel."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent

# Inputs and expected results, in which there are projects with tests of their own.
collect_ignore_glob = ["golden/cases/*", "cmake/errors/*"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write what is expected anew")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--dist loadgroup` a folder's tests share a process, as they share what they build."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            part = item.path.relative_to(HERE).parts[0]
            item.add_marker(pytest.mark.xdist_group(part))
