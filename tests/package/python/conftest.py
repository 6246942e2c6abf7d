# SPDX-License-Identifier: Apache-2.0
"""Installed backends, whole and spoilt, for tests that each run in fresh processes.

`./dev test` exports BACKENDKIT_TEST_BASE_PYTHON (a Python with PyTorch and no backend) and
BACKENDKIT_TEST_WHEEL (the wheel of the scaffolded backend torch_foo, built for that PyTorch).
"""

import os
import re
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Optional

import pytest


def _from_environment(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise pytest.UsageError(f"{name} is not set: run these tests with ./dev test")
    return value


class Site:
    """A folder with the unpacked wheel, to be put on PYTHONPATH; entry points work from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "torch_foo"

    @property
    def library(self) -> Path:
        """The one library of the wheel."""
        (path,) = self.package.glob("lib/*/*torch_foo.*")
        return path

    def set_constant(self, name: str, value: object) -> None:
        """Changes what backend.toml said, in the generated constants."""
        path = self.package / "_build.py"
        text, count = re.subn(rf"(?m)^({name}\b[^=]*=).*$", rf"\1 {value!r}", path.read_text())
        assert count == 1, name
        path.write_text(text)

    def write(self, name: str, text: str) -> None:
        """Writes a module of the vendor's."""
        (self.package / name).write_text(text)

    def patch_library(self, old: bytes, new: bytes) -> None:
        """Replaces a string of the library by one of the same length."""
        content = self.library.read_bytes()
        assert old in content
        assert len(old) == len(new)
        self.library.write_bytes(content.replace(old, new))

    def pretend_release(self, release: str) -> None:
        """Makes the library one for another release of PyTorch."""
        self.library.parent.rename(self.package / "lib" / release)


class Interpreter:
    """Runs code in fresh processes of a Python that has PyTorch."""

    def __init__(self, executable: str, folder: Path) -> None:
        self.executable = executable
        self.folder = folder

    def start(
        self,
        code: str,
        *sites: Site,
        flags: tuple[str, ...] = (),
        arguments: tuple[str, ...] = (),
        environment: Optional[dict[str, str]] = None,
        folder: Optional[Path] = None,
    ) -> "subprocess.CompletedProcess[str]":
        """The finished process that ran the code with these packages installed."""
        settings = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "TORCH_"))}
        settings["PYTHONPATH"] = os.pathsep.join(str(site.folder) for site in sites)
        settings.update(environment or {})
        return subprocess.run(
            [self.executable, *flags, "-c", code, *arguments],
            env=settings,
            cwd=folder or self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def lines(self, code: str, *sites: Site, **options: object) -> list[str]:
        """What the code prints; it must succeed and leave nothing on stderr."""
        done = self.start(code, *sites, **options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    def warning(self, code: str, *sites: Site, **options: object) -> tuple[list[str], str]:
        """What the code prints, and the one warning on stderr; it must succeed."""
        done = self.start(code, *sites, **options)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("Warning: ") == 1, done.stderr
        return done.stdout.splitlines(), done.stderr.split("Warning: ", 1)[1].strip()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    """A Python with PyTorch and without any backend."""
    folder = tmp_path_factory.mktemp("elsewhere")
    return Interpreter(_from_environment("BACKENDKIT_TEST_BASE_PYTHON"), folder)


@pytest.fixture
def new_site(tmp_path: Path) -> Callable[[], Site]:
    """Makes folders with the backend installed."""
    wheel = _from_environment("BACKENDKIT_TEST_WHEEL")
    count = 0

    def make() -> Site:
        nonlocal count
        count += 1
        folder = tmp_path / f"site{count}"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        return Site(folder)

    return make


@pytest.fixture
def site(new_site: Callable[[], Site]) -> Site:
    """A folder with the backend installed, whole until the test spoils it."""
    return new_site()
