# SPDX-License-Identifier: Apache-2.0
"""What setuptools has to know of a wheel whose library CMake compiled.

The setup.py of a backend's project imports it through backendkit.build. The one that packages what
`cmake --install` laid out has a copy beside it, because it needs only setuptools.
"""

from __future__ import annotations

from setuptools import Distribution
from setuptools.command.bdist_wheel import bdist_wheel

__all__ = ["EPOCH", "PlatformDistribution", "PlatformWheel"]

# The date of a wheel's files unless SOURCE_DATE_EPOCH is set: 1980-01-01, the first day that a zip
# file can store.
EPOCH = "315532800"


class PlatformDistribution(Distribution):
    """Contains a library for one platform, which setuptools did not compile."""

    def has_ext_modules(self) -> bool:
        return True


class PlatformWheel(bdist_wheel):
    """`bdist_wheel`: for one platform, and for every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]
