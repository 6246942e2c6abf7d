# SPDX-License-Identifier: Apache-2.0
"""Gives a wheel a local version that names its PyTorch: 0.1.0 becomes 0.1.0+torch2.13.

The arguments are WHEEL MINOR. The new wheel takes the place of the old.
"""

from __future__ import annotations

import sys
from pathlib import Path

from backendkit_tools.repair import refresh_sbom
from backendkit_tools.screen import fail
from backendkit_tools.wheelfile import Wheel, WheelError, read_wheel, wheel_bytes, write_whole

__all__ = ["rename_version"]


def rename_version(wheel: Wheel, version: str) -> None:
    """Changes the version in the wheel's name, in METADATA and in the name of `.dist-info`."""
    before = wheel.dist_info
    headers = wheel.headers("METADATA")
    headers.replace_header("Version", version)
    wheel.set_headers("METADATA", headers)
    wheel.version = version
    wheel.members = {
        wheel.dist_info + name[len(before) :] if name.startswith(f"{before}/") else name: member
        for name, member in wheel.members.items()
    }


def main() -> None:
    path, minor = Path(sys.argv[1]), sys.argv[2]
    try:
        wheel = read_wheel(path)
        rename_version(wheel, f"{wheel.version}+torch{minor}")
        refresh_sbom(wheel)
        write_whole(path.with_name(wheel.filename), wheel_bytes(wheel))
    except WheelError as error:
        fail(str(error))
    path.unlink()


if __name__ == "__main__":
    main()
