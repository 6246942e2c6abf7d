# SPDX-License-Identifier: Apache-2.0
"""Small wheels of a backend, for tests of `backendgen merge`; a case's make.py imports this."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "templates" / "tools"))
from backendkit_tools.releases import after  # noqa: E402
from backendkit_tools.wheelfile import Member, Wheel, wheel_bytes  # noqa: E402

__all__ = ["make"]

METADATA = """Metadata-Version: 2.4
Name: {package}
Version: {version}
Summary: für Foo
Requires-Dist: {requirement}
Requires-Dist: numpy

From here on it is README.
"""


def make(
    folder: str | Path,
    minor: str = "2.9",
    *,
    package: str = "torch_foo",
    version: str = "0.1.0",
    platform: str = "linux_x86_64",
    requirement: str = "",
    library: bool = True,
    files: dict[str, str] | None = None,
) -> Path:
    """Writes a wheel for one release of PyTorch into a folder; `files` are more files of it."""
    wheel = Wheel(package, version, tags=("py3", "none", platform))
    own = f"{wheel.dist_info}/"
    requirement = requirement or f"torch<{after(minor)},>={minor}"
    texts = {
        f"{package}/__init__.py": '"""Foo."""\n',
        f"{package}/lib/{minor}/lib{package}.so": f"library for {minor}",
        f"{own}METADATA": METADATA.format(
            package=package, version=version, requirement=requirement
        ),
        f"{own}WHEEL": f"Wheel-Version: 1.0\nTag: py3-none-{platform}\n",
    }
    if not library:
        del texts[f"{package}/lib/{minor}/lib{package}.so"]
    texts |= files or {}
    wheel.members = {name: Member(text.encode()) for name, text in texts.items()}
    path = Path(folder, wheel.filename)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(wheel_bytes(wheel))
    return path
