"""Builds and packages this backend: CMake compiles the library, setuptools makes the wheel.

Name, version, summary and entry points come from backend.toml, and the PyTorch that the wheel
requires is the one that it was built with.
"""

from backendkit.build import setup_backend

setup_backend(
    # Any argument of setuptools.setup(), such as:
    # author="...",
    # license_expression="...",  # SPDX, from setuptools 77 on; LICENSE* beside this file is packed
    # install_requires=["numpy"],
)
