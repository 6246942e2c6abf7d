# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that writes a suite's results for a report card of the device tests.

torchcts run --device foo --level 1 -p backendkit.results --results=torchcts.json
"""

from __future__ import annotations

import sys

from backendkit import device_tests_dir

# At the end: the suite's own modules must not hide another suite's.
if device_tests_dir() not in sys.path:
    sys.path.append(device_tests_dir())

from report_card.suite import pytest_addoption, pytest_configure

__all__ = ["pytest_addoption", "pytest_configure"]
