# SPDX-License-Identifier: Apache-2.0
"""What a build needs and does not find is named, with what to type."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import ROOT, run

SITE = "import sysconfig; print(sysconfig.get_path('purelib'))"


class Fresh:
    """What `python -m venv` makes, with PyTorch and BackendKit added to it and nothing else."""

    def __init__(self, folder: Path, base: Path, tools: Path) -> None:
        run(base, "-m", "venv", folder, cwd=folder.parent)
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.site = Path(run(self.python, "-c", SITE, cwd=folder).stdout.strip())
        self.base = Path(run(base, "-c", SITE, cwd=folder).stdout.strip())
        own = Path(run(tools, "-c", SITE, cwd=folder).stdout.strip())
        self.link("torch", "torchgen")
        for path in own.glob("backendkit*"):
            (self.site / path.name).symlink_to(path)
        (folder / "bin" / "backendgen").symlink_to(tools.parent / "backendgen")
        # Of the machine's programs those that compile, but no CMake and no Ninja.
        programs = folder / "programs"
        programs.mkdir()
        for name in ("sh", "c++", "g++", "cc", "gcc", "as", "ld", "ar", "ranlib", "git"):
            (programs / name).symlink_to(str(shutil.which(name)))
        self.path = f"{folder}/bin:{programs}"

    def link(self, *names: str) -> None:
        """Adds what the base environment has of these names."""
        for name in names:
            for path in [self.base / name, *self.base.glob(f"{name}-*.dist-info")]:
                (self.site / path.name).symlink_to(path)

    def take_setuptools(self) -> None:
        """Has the setuptools of the base environment in the place of the one that came along."""
        for path in self.site.glob("setuptools*"):
            shutil.rmtree(path)
        self.link("setuptools")

    def pip(self, *words: str | Path, cwd: Path, status: int = 1) -> str:
        command = [self.python, "-m", "pip", "--disable-pip-version-check", *words]
        return run(*command, cwd=cwd, status=status, PATH=self.path, PIP_NO_INDEX="1").stdout


@pytest.fixture
def fresh(tmp_path: Path, base: Path, tools: Path) -> Fresh:
    return Fresh(tmp_path / "fresh", base, tools)


def make_old(fresh: Fresh) -> str:
    """The version of the environment's setuptools, which `python -m venv` up to 3.11 installs.

    Later ones install none: there it is a copy without what 70.1 added.
    """
    if not (fresh.site / "setuptools").exists():
        shutil.copytree(fresh.base / "setuptools", fresh.site / "setuptools")
        (fresh.site / "setuptools" / "command" / "bdist_wheel.py").unlink()
        (found,) = fresh.base.glob("setuptools-*.dist-info")
        shutil.copytree(found, fresh.site / found.name)
    ask = "import setuptools; print(setuptools.__version__)"
    return run(fresh.python, "-c", ask, cwd=fresh.folder).stdout.split()[-1]


COMMANDS = [
    ("wheel", "--no-deps", "--no-build-isolation", "."),
    ("install", "--no-deps", "--no-build-isolation", "."),
    ("install", "--no-deps", "--no-build-isolation", "-e", "."),
]


@pytest.mark.parametrize("command", COMMANDS, ids=["wheel", "install", "editable"])
def test_an_old_setuptools(fresh: Fresh, copy: Path, command: tuple[str, ...]) -> None:
    version = make_old(fresh)
    text = fresh.pip(*command, cwd=copy)
    assert f"error: setuptools {version} in {fresh.python} is too old to build a backend's" in text
    assert 'help: `python -m pip install "setuptools>=70.1"`' in text
    assert "Traceback" not in text


def test_an_old_setuptools_and_no_pip(fresh: Fresh, copy: Path) -> None:
    version = make_old(fresh)
    text = run(fresh.python, "setup.py", "bdist_wheel", cwd=copy, status=1).stdout
    assert text.startswith(f"error: setuptools {version} in ")
    assert "Traceback" not in text


@pytest.mark.parametrize("missing", ["cmake", "ninja"])
def test_a_tool_is_missing(fresh: Fresh, copy: Path, missing: str) -> None:
    fresh.take_setuptools()
    fresh.link({"cmake": "ninja", "ninja": "cmake"}[missing])
    text = fresh.pip("wheel", "--no-deps", "--no-build-isolation", ".", cwd=copy)
    assert f"error: found no `{missing}`" in text
    assert f"help: `python -m pip install {missing}`" in text
    assert "Traceback" not in text


def test_what_an_old_pip_calls(fresh: Fresh, copy: Path) -> None:
    fresh.take_setuptools()
    text = run(fresh.python, "setup.py", "develop", cwd=copy, status=1, PATH=fresh.path).stdout
    assert "error: `setup.py develop` cannot install a backend" in text
    assert "help: `python -m pip install --upgrade pip`, then `python -m pip install" in text
    assert "Traceback" not in text
    assert [path.name for path in fresh.site.iterdir() if "foo" in path.name] == []


def test_backendkit_without_what_builds_it(fresh: Fresh, tmp_path: Path) -> None:
    text = fresh.pip("install", "--no-deps", "--no-build-isolation", ROOT, cwd=tmp_path)
    assert "error: found no scikit-build-core, which builds BackendKit" in text
    assert 'help: `python -m pip install "scikit-build-core>=0.10"`' in text
    assert "Traceback" not in text


def test_backendkit_with_what_builds_it(base: Path, tmp_path: Path) -> None:
    """The hooks that pip and build call are there, by the names of PEP 517 and 660."""
    code = (
        "import sys; sys.path.insert(0, 'python/backend'); import backendkit_backend as b\n"
        "print(all(callable(getattr(b, one, None)) for one in sys.argv[1:]))"
    )
    hooks = ["build_wheel", "build_sdist", "build_editable", "get_requires_for_build_wheel"]
    hooks += ["get_requires_for_build_sdist", "get_requires_for_build_editable"]
    assert run(base, "-c", code, *hooks, cwd=ROOT).stdout.strip() == "True"
