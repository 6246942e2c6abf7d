"""Builds and packages this backend: CMake compiles the library, setuptools makes the wheel.

Name, version, summary and entry points come from backend.toml. The wheel requires the PyTorch
release that it was built with.
"""

from backendkit.build import setup_backend

setup_backend(
    # Any argument of setuptools.setup(), such as:
    # author="...",
    # license_expression="...",  # SPDX, needs setuptools 77; LICENSE* next to this file is included
    # install_requires=["numpy"],
)
