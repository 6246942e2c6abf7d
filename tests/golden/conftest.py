# SPDX-License-Identifier: Apache-2.0
"""Options of the golden tests."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="write what the program does into cases/"
    )
