# SPDX-License-Identifier: Apache-2.0
"""What the setup.py of a backend's project does: CMake builds, setuptools packages.

All output goes below build/, so that a second build compiles only what changed:

    build/torch-2.13/      CMake's folder for that release of PyTorch
    build/torch-2.13-symbols/  the same for a build with debug symbols
    build/stage/           what `cmake --install` installed for a wheel
    build/editable/2.13/   the same for `pip install -e .`, without the vendor's Python files
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import setuptools
from setuptools import Command, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.errors import ExecError, SetupError

import backendkit
from backendkit.sources import find_sources

try:
    from backendkit.platform_wheel import EPOCH, PlatformDistribution, PlatformWheel
except ModuleNotFoundError:
    raise SystemExit(
        f"error: setuptools {setuptools.__version__} in {sys.executable} is too old to build a "
        "backend's wheel, which needs 70.1 or newer\n"
        'help: `python -m pip install "setuptools>=70.1"`'
    ) from None

__all__ = ["setup_backend"]

#: What the description requires; the second only if it has [wheel.runtime].
_REQUIREMENTS = ("torch_requirement", "runtime_requirement")


def setup_backend(**keywords: Any) -> None:
    """Calls setuptools.setup() for the project in the working folder.

    Name, version, summary, entry points and what is required come from backend.toml;
    `keywords` are further arguments of setup(), and `install_requires` adds to what is required.

    The environment: CMAKE_ARGS (further arguments for CMake), CMAKE_BUILD_TYPE (default Release;
    Debug where DEBUG is set), CMAKE_GENERATOR, CMAKE_BUILD_PARALLEL_LEVEL, SOURCE_DATE_EPOCH,
    BACKENDKIT_DEBUG_SYMBOLS (1: the library has debug symbols, as `backendgen wheel
    --debug-symbols` wants it).
    """
    os.environ.setdefault("SOURCE_DATE_EPOCH", EPOCH)
    os.umask(0o022)  # a wheel stores the modes of its files
    project = _Project()
    PlatformWheel.backendkit_version = backendkit.__version__
    # Not next to setup.py: there Python would treat the metadata as an installed package, and its
    # entry points as those of an installed backend.
    base = Path("build", "metadata")
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    arguments: dict[str, Any] = {
        "name": project.package,
        "version": project.facts["version"],
        "description": project.facts["summary"],
        "python_requires": ">=3.9",
        "entry_points": project.facts["entry_points"],
        "packages": [project.package],
        "ext_modules": [],
        "distclass": PlatformDistribution,
        "zip_safe": False,
        "options": {"egg_info": {"egg_base": str(base)}},
        "cmdclass": {
            "bdist_wheel": PlatformWheel,
            "build_py": _Build,
            "develop": _Develop,
            "editable_wheel": _EditableWheel,
            "sdist": _Sdist,
        },
    }
    if os.path.isfile("README.md"):
        arguments["long_description"] = Path("README.md").read_text(encoding="utf-8")
        arguments["long_description_content_type"] = "text/markdown"
    arguments.update(keywords)
    own = [project.facts[key] for key in _REQUIREMENTS if key in project.facts]
    arguments["install_requires"] = [*own, *keywords.get("install_requires", [])]
    setup(**arguments)


class _Project:
    """The project in the working folder, the PyTorch of this Python, and CMake for both."""

    def __init__(self) -> None:
        self.folder = Path.cwd()
        try:
            program = backendkit.executable()
        except FileNotFoundError as error:
            raise SystemExit(
                f"error: {error}\n"
                "help: `python -m pip install --force-reinstall --no-deps backendkit`"
            ) from None
        command = [program, "check", "backend.toml", "--format", "json"]
        command += ["--torch", _torch_folder()]
        checked = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=False)
        if checked.returncode != 0:
            raise SystemExit(checked.returncode)  # backendgen has said why
        self.facts: dict[str, Any] = json.loads(checked.stdout)
        self.package: str = self.facts["package"]
        self.torch_minor = ".".join(self.facts["torch_version"].split(".")[:2])

    def build(self, stage: Path) -> None:
        """Compiles what changed and installs the package in `stage`, after emptying it."""
        symbols = "-symbols" if _wants_symbols() else ""
        tree = self.folder / "build" / f"torch-{self.torch_minor}{symbols}"
        cmake = _tool("cmake", "CMAKE_BIN_DIR")
        _run(cmake, "-S", str(self.folder), "-B", str(tree), *self._configuration(tree))
        name = self.facts["name"]
        build = ["--build", str(tree), "--config", _build_type(), "--target", name]
        _run(cmake, *build, note=self._note())
        shutil.rmtree(stage, ignore_errors=True)
        place = ["--prefix", str(stage), "--component", name]
        _run(cmake, "--install", str(tree), "--config", _build_type(), *place)

    def _note(self) -> str:
        """What to add to the error if this PyTorch is newer than the newest tested one."""
        newest = self.facts["torch_newest_tested"]
        if _numbers(self.torch_minor) <= _numbers(newest):
            return ""
        return (
            f"\nnote: PyTorch {self.facts['torch_version']} is newer than {newest}, the newest "
            "release that this BackendKit was tested with"
            "\nhelp: `pip install --upgrade backendkit`, or build for an older PyTorch"
        )

    def _configuration(self, tree: Path) -> list[str]:
        arguments = [
            f"-DBackendKit_DIR={backendkit.cmake_dir()}",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-DCMAKE_BUILD_TYPE={_build_type()}",
            f"-DBACKENDKIT_DEBUG_SYMBOLS={'ON' if _wants_symbols() else 'OFF'}",
        ]
        generator = os.environ.get("CMAKE_GENERATOR", "Ninja")
        if generator == "Ninja":
            arguments += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={_tool('ninja', 'BIN_DIR')}"]
        # CMake rejects a build folder of another generator, or of a project that has moved.
        cache = tree / "CMakeCache.txt"
        if cache.is_file():
            lines = cache.read_text(encoding="utf-8", errors="replace").splitlines()
            here = f"CMAKE_HOME_DIRECTORY:INTERNAL={self.folder.as_posix()}"
            if here not in lines or f"CMAKE_GENERATOR:INTERNAL={generator}" not in lines:
                shutil.rmtree(tree)
        return arguments + shlex.split(os.environ.get("CMAKE_ARGS", ""))


def _torch_folder() -> str:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise SystemExit(
            f"error: found no PyTorch in {sys.executable}\n"
            "note: a backend is built for the PyTorch that is installed, which an isolated build "
            "does not see\n"
            "help: install the release to build for: `pip install torch==X.Y.Z`\n"
            "help: build without isolation: `pip install --no-build-isolation .`, or "
            "`python -m build --no-isolation`"
        )
    return os.path.dirname(spec.origin)


def _tool(name: str, folder: str) -> str:
    """The program `name` of the pip package, whose attribute `folder` has its place, or of PATH."""
    if importlib.util.find_spec(name) is not None:
        path = shutil.which(name, path=getattr(importlib.import_module(name), folder, ""))
        if path is not None:
            return path
    path = shutil.which(name)
    if path is None:
        raise SetupError(f"found no `{name}`\nhelp: `python -m pip install {name}`")
    return path


def _build_type() -> str:
    debug = os.environ.get("DEBUG", "").lower() not in ("", "0", "no", "off", "false")
    return os.environ.get("CMAKE_BUILD_TYPE") or ("Debug" if debug else "Release")


def _wants_symbols() -> bool:
    return os.environ.get("BACKENDKIT_DEBUG_SYMBOLS") == "1"


def _numbers(release: str) -> list[int]:
    return [int(number) for number in release.split(".")]


def _run(program: str, *arguments: str, note: str = "") -> None:
    sys.stdout.flush()
    status = subprocess.run([program, *arguments], check=False).returncode
    if status != 0:
        step = {"-S": "configure", "--build": "build"}.get(arguments[0], "install")
        raise ExecError(f"CMake could not {step} the backend: see its messages above{note}")


class _Build(build_py):
    """`build_py`: all of the package comes from CMake."""

    def run(self) -> None:
        stage = Path("build", "stage").absolute()
        _Project().build(stage)
        shutil.rmtree(self.build_lib, ignore_errors=True)
        self.copy_tree(str(stage), self.build_lib)

    def get_source_files(self) -> list[str]:
        return find_sources(self.distribution.get_name()).files

    def get_data_files_without_manifest(self) -> list[Any]:
        return []

    def get_data_files(self) -> list[Any]:
        return []


class _Sdist(sdist):
    """`sdist`: packages the sources, and lists on stderr the left-out files that may be some."""

    def make_distribution(self) -> None:
        # Not the metadata that setuptools keeps there.
        self.filelist.exclude_pattern(None, prefix="build")
        sources = find_sources(self.distribution.get_name())
        if sources.trouble:
            print(f"note: {sources.trouble}", file=sys.stderr)
        left_out = sorted(set(sources.doubtful) - set(self.filelist.files))
        for path in left_out:
            print(
                f"note: the sdist leaves out {path}, which looks like the output of a build",
                file=sys.stderr,
            )
        if left_out:
            print(
                "help: if it is a source file, `git add --force` it, or add "
                f"`include {left_out[0]}` to MANIFEST.in",
                file=sys.stderr,
            )
        super().make_distribution()

    def make_archive(  # type: ignore[override]
        self, base_name: str, format: str, root_dir: Any = None, base_dir: Any = None, **who: Any
    ) -> str:
        """A `.tar.gz` has only names, contents and whether a file is a program; all else is fixed.

        So the same sources give the same bytes, whoever packs them, where and when.
        """
        if format != "gztar" or root_dir is not None or base_dir is None:
            return super().make_archive(base_name, format, root_dir, base_dir, **who)
        path = f"{base_name}.tar.gz"
        seconds = int(os.environ["SOURCE_DATE_EPOCH"])
        names = sorted(p.as_posix() for p in Path(base_dir).rglob("*") if p.is_file())
        with contextlib.ExitStack() as opened:
            file = opened.enter_context(open(path, "wb"))
            packed = opened.enter_context(gzip.GzipFile("", "wb", 9, file, mtime=0))
            archive = opened.enter_context(
                tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT)
            )
            for name in names:
                member = tarfile.TarInfo(name)
                member.mtime = seconds
                member.mode = 0o755 if os.access(name, os.X_OK) else 0o644
                member.size = os.path.getsize(name)
                with open(name, "rb") as source:
                    archive.addfile(member, source)
        return path


class _Develop(Command):
    """`develop`, which would put the source folder on Python's path: nothing is built there."""

    description = "refuse: pip installs"
    user_options: list[Any] = []

    def initialize_options(self) -> None:
        """There are no options."""

    def finalize_options(self) -> None:
        """There are no options."""

    def run(self) -> None:
        raise SetupError(
            "`setup.py develop` cannot install a backend\n"
            "note: a pip before 21.3 calls it for `pip install -e`\n"
            "help: `python -m pip install --upgrade pip`, then "
            "`python -m pip install --no-build-isolation -e .`"
        )


class _EditableWheel(Command):
    """`editable_wheel`: a wheel that contains only the path of build/editable."""

    description = "create a wheel for `pip install -e .`"
    user_options = [
        ("dist-dir=", "d", "directory to put the wheel in"),
        ("dist-info-dir=", "I", "path to a pre-built .dist-info directory"),
    ]

    def initialize_options(self) -> None:
        self.dist_dir = "dist"
        self.dist_info_dir = None

    def finalize_options(self) -> None:
        """Both options are used unchanged."""

    def run(self) -> None:
        project = _Project()
        place = project.folder / "build" / "editable" / project.torch_minor
        project.build(place)
        source = project.folder / project.package
        _remove_copies(source, place / project.package)

        paths = project.folder / "build" / "editable" / "path"
        shutil.rmtree(paths, ignore_errors=True)
        paths.mkdir(parents=True)
        name = f"__editable__.{project.package}.pth"
        (paths / name).write_text(f"{place}\n", encoding="utf-8")
        self.reinitialize_command("build", build_lib=str(paths))
        self.reinitialize_command("bdist_wheel", dist_dir=self.dist_dir, skip_build=True)
        self.run_command("bdist_wheel")


def _remove_copies(source: Path, package: Path) -> None:
    """Deletes the copies of files of `source` from `package`, which names their folder instead."""
    for path in source.rglob("*"):
        copy = package / path.relative_to(source)
        if path.is_file() and copy.is_file():
            copy.unlink()
    says = "The folder of the Python files that this editable install uses directly."
    text = f'"""{says}"""\n\nSOURCE = {str(source)!r}\n'
    (package / "_editable.py").write_text(text, encoding="utf-8")
