# SPDX-License-Identifier: Apache-2.0
"""Which files of a project belong in its sdist.

Every file that git tracks belongs in it, whatever its name: the vendor has decided so. Any other
file belongs in it unless git ignores it, or its name or contents show that it is a build result, a
cache or a leftover.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = ["Sources", "find_sources"]

# A folder with one of these was made by CMake, venv, conda, or a program that marks its caches.
_MARKS = ("CMakeCache.txt", "pyvenv.cfg", "conda-meta", "CACHEDIR.TAG")
_CACHES = ("__pycache__", "CMakeFiles", "node_modules")
# In the project's own folder: setup.py's and those of `python -m build`. Further down, a folder of
# one of these names may hold sources.
_RESULTS = ("build", "dist")
_LEFTOVER = re.compile(
    r"\..*|.*\.(py[co]|sw[op]|orig|rej|bak)|.*~|#.*#"
    r"|CMakeCache\.txt|cmake_install\.cmake|CMakeUserPresets\.json|compile_commands\.json"
    r"|Thumbs\.db|desktop\.ini"
)
# Compiled files, which may nevertheless be sources: a library or program that the build needs.
_COMPILED = re.compile(r".*\.(o|obj|a|lib|so|so\.[\d.]+|dylib|dll|pyd|exe|whl|egg)|(vg)?core\.\d+")
_ELF_HEAD = struct.Struct("<4s12xHH")
_ELF_CORE = 4


class Sources(NamedTuple):
    """The files of a project, relative to its folder and sorted."""

    #: What belongs in the sdist.
    files: list[str]
    #: What was left out because it looks like the output of a build, but may be a source.
    doubtful: list[str]
    #: Why git could not be asked; empty if it was asked, or if the project does not use git.
    trouble: str


def find_sources(package: str) -> Sources:
    """The files of the project in the working folder; `package` is the name of its archives."""
    trouble = ""
    tracked: list[str] | None = None
    if shutil.which("git") is None:
        if os.path.exists(".gitignore") or _in_repository():
            trouble = "found no git, so .gitignore was not read"
    else:
        tracked, trouble = _tracked()
    found: set[str] = set()
    for path in tracked or ():
        found.update(_files(path) if os.path.isdir(path) else [path])
    archive = re.compile(rf"{re.escape(package)}-.*\.(tar\.gz|zip)")
    rest = [path for path in _files(".") if path not in found]
    rest = [path for path in rest if not _LEFTOVER.fullmatch(os.path.basename(path))]
    if shutil.which("git") is not None:
        ignored = _ignored(rest, tracked is not None)
        rest = [path for path in rest if path not in ignored]
    doubtful = set()
    for path in rest:
        name = os.path.basename(path)
        if _COMPILED.fullmatch(name) or archive.fullmatch(name) or _is_compiled(path):
            doubtful.add(path)
    return Sources(sorted(found.union(rest) - doubtful), sorted(doubtful), trouble)


def _files(top: str) -> Iterator[str]:
    """The files below a folder, except in folders that cannot contain the vendor's own files.

    Relative links to folders are followed, because they belong to the project's tree.
    """
    for folder, folders, files in os.walk(top, followlinks=True):
        at_top = os.path.normpath(folder) == "."
        folders[:] = sorted(
            name
            for name in folders
            if not (at_top and name in _RESULTS) and _may_hold_sources(folder, name)
        )
        for name in sorted(files):
            path = os.path.normpath(f"{folder}/{name}")
            if os.path.isfile(path):
                yield path.replace(os.sep, "/")


def _may_hold_sources(parent: str, name: str) -> bool:
    path = f"{parent}/{name}"
    if name.startswith(".") or name in _CACHES or name.endswith(".egg-info"):
        return False
    if any(os.path.exists(f"{path}/{mark}") for mark in _MARKS):
        return False
    if not os.path.islink(path):
        return True
    # Following a link to a folder that contains the link would never end.
    inside = os.path.realpath(parent) + os.sep
    target = os.path.realpath(path)
    return not os.path.isabs(os.readlink(path)) and not inside.startswith(target + os.sep)


def _in_repository() -> bool:
    folder = os.getcwd()
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above
    return True


def _git(*words: str, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    # In one of git's hooks, these variables name another repository.
    own = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return subprocess.run(["git", *words], input=text, capture_output=True, env=own, check=False)


def _names(output: bytes) -> list[str]:
    return [os.fsdecode(name) for name in output.split(b"\0") if name]


def _tracked() -> tuple[list[str] | None, str]:
    """What git tracks here, or None if it does not track the project; and why, if git fails."""
    listed = _git("ls-files", "-z", "--cached", "--recurse-submodules")
    if listed.returncode != 0:
        said = listed.stderr.decode(errors="replace").strip().splitlines() or ["git fails"]
        return None, f"git cannot list the tracked files: {said[0]}" if _in_repository() else ""
    names = _names(listed.stdout)
    if "backend.toml" not in names:
        return None, ""
    return [name for name in names if os.path.exists(name)], ""


def _ignored(paths: Iterable[str], in_repository: bool) -> set[str]:
    """Those of the paths that git ignores, by the rules of its repository or of this folder."""
    # Git does not follow links, so it is asked about the link.
    asked: dict[str, list[str]] = {}
    for path in paths:
        asked.setdefault(_first_link(path), []).append(path)
    text = b"\0".join(os.fsencode(path) for path in asked)
    words = ["check-ignore", "--no-index", "-z", "--stdin"]
    if in_repository:
        done = _git(*words, text=text)
    else:
        with tempfile.TemporaryDirectory() as folder:
            _git("init", "--quiet", folder)
            where = [f"--git-dir={folder}/.git", f"--work-tree={os.getcwd()}"]
            done = _git(*where, *words, text=text)
    return {path for name in _names(done.stdout) for path in asked.get(name, ())}


def _first_link(path: str) -> str:
    parts = path.split("/")
    for count in range(1, len(parts)):
        above = "/".join(parts[:count])
        if os.path.islink(above):
            return above
    return path


def _elf_head(path: str) -> tuple[int, int]:
    """The type and the machine of an ELF file; zeros for any other."""
    with open(path, "rb") as file:
        head = file.read(_ELF_HEAD.size)
    if len(head) < _ELF_HEAD.size or not head.startswith(b"\x7fELF"):
        return 0, 0
    _, kind, machine = _ELF_HEAD.unpack(head)
    return kind, machine


def _is_compiled(path: str) -> bool:
    """Whether a file is a core dump or compiled for this machine; code for a device is a source."""
    kind, machine = _elf_head(path)
    return kind == _ELF_CORE or (kind != 0 and machine == _elf_head(sys.executable)[1])
