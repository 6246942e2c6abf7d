# SPDX-License-Identifier: Apache-2.0
"""What setuptools has to know of a wheel whose library CMake compiled.

The setup.py of a backend's project imports it through backendkit.build. The one that packages what
`cmake --install` laid out has a copy beside it, and one of sbom.py, because it needs only
setuptools.
"""

from __future__ import annotations

import email.parser
from pathlib import Path
from typing import Any, ClassVar

from setuptools import Distribution
from setuptools.command.bdist_wheel import bdist_wheel

if __package__:
    from backendkit.sbom import NAME, sbom
else:
    from sbom import NAME, sbom

__all__ = ["EPOCH", "PlatformDistribution", "PlatformWheel"]

# The date of a wheel's files unless SOURCE_DATE_EPOCH is set: 1980-01-01, the first day that a zip
# file can store.
EPOCH = "315532800"


class PlatformDistribution(Distribution):
    """Contains a library for one platform, which setuptools did not compile."""

    def has_ext_modules(self) -> bool:
        return True


class PlatformWheel(bdist_wheel):
    """`bdist_wheel`: for one platform and every Python, with the list of what is in it."""

    #: Of the BackendKit that builds; setup.py sets it.
    backendkit_version: ClassVar[str]

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]

    def write_wheelfile(self, wheelfile_base: str, *arguments: Any, **options: Any) -> None:
        """Also writes the SBOM: METADATA and the package's files are in place by now."""
        super().write_wheelfile(wheelfile_base, *arguments, **options)
        own = Path(wheelfile_base)
        metadata = email.parser.Parser().parsestr((own / "METADATA").read_text(encoding="utf-8"))
        folder = Path(self.bdist_dir)
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and own not in path.parents
        }
        place = own / NAME
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(sbom(metadata, files, self.backendkit_version))
