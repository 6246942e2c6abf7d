# SPDX-License-Identifier: Apache-2.0
"""What the golden tests of the program and of the CMake functions share."""

import pytest

# Inputs and expected results, in which there are projects with tests of their own.
collect_ignore_glob = ["golden/cases/*", "cmake/errors/*"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write what is expected anew")
