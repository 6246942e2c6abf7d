# SPDX-License-Identifier: Apache-2.0
"""A PyTorch on disk, which is read and never imported."""

from __future__ import annotations

import ast
from functools import cached_property
from pathlib import Path


class NoRelease(Exception):
    """Why a folder holds no PyTorch."""


class Release:
    """The files of an installed or unpacked PyTorch; `folder` contains `torch`."""

    def __init__(self, folder: Path) -> None:
        self.folder = find_site(folder)
        self.torch = self.folder / "torch"
        self.include = self.torch / "include"
        self.version = version_of(self.torch / "version.py").split("+")[0]

    def text(self, path: Path) -> str:
        return path.read_text(encoding="utf-8", errors="replace")

    @cached_property
    def entry_points(self) -> Path | None:
        """entry_points.txt of the package `torch`."""
        found = sorted(self.folder.glob("torch-*.dist-info/entry_points.txt"))
        return found[-1] if found else None

    @cached_property
    def libraries(self) -> list[Path]:
        """What a backend's library is linked with."""
        names = ("libc10.so", "libtorch_cpu.so", "libtorch.so")
        return [path for name in names if (path := self.torch / "lib" / name).is_file()]


def find_site(folder: Path) -> Path:
    """The folder that contains `torch`, of an environment, its `site-packages`, or `torch`."""
    places = [folder, folder.parent, *sorted(folder.glob("lib/python3.*/site-packages"))]
    for place in places:
        if (place / "torch" / "version.py").is_file():
            return place.resolve()
    raise NoRelease(f"no PyTorch in {folder}: it should hold `torch` or be an environment with it")


def version_of(path: Path) -> str:
    """The value of `__version__` in torch/version.py."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(one, ast.Name) and one.id == "__version__" for one in targets):
            assert isinstance(node, ast.Assign)
            value = ast.literal_eval(node.value)
            if isinstance(value, str):
                return value
    raise NoRelease(f"{path} has no version")
