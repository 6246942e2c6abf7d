# SPDX-License-Identifier: Apache-2.0
"""What an sdist holds: every source, wherever the vendor keeps it, and no leftover."""

from __future__ import annotations

import os
import shlex
import shutil
import struct
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from conftest import ROOT, Environment, run

MINIMAL = {
    "CMakeLists.txt",
    "README.md",
    "backend.toml",
    "csrc/kernels.cpp",
    "csrc/runtime.cpp",
    "csrc/runtime.h",
    "pyproject.toml",
    "setup.py",
    "tests/manifest.py",
    "tests/test_foo.py",
    "tests/test_kernels.py",
    "torch_foo/extras.py",
}
#: Sources in places and with names that look like a build's.
UNUSUAL = {
    "build_tools/table.txt",
    "cmake/build/Find.cmake",
    "core/core.cpp",
    "core/core.h",
    "csrc/build/queue.inc",
    "csrc/dist/all reduce.cpp",
    "csrc/dist/größe.h",
    "csrc/no_extension",
    "data/weights.bin",
    "firmware/kernels.elf",
    "out/table.def",
    "vendor/lib.txt",
}
#: What nobody wants in an sdist.
LEFTOVERS = {
    ".DS_Store",
    ".git_backup/x.cpp",
    ".idea/workspace.xml",
    ".mypy_cache/x.json",
    ".venv/lib/x.py",
    ".vscode/settings.json",
    "CMakeUserPresets.json",
    "Thumbs.db",
    "_build/Debug/CMakeCache.txt",
    "_build/Debug/kernels.i",
    "cache/CACHEDIR.TAG",
    "cache/x",
    "cmake-build-debug/CMakeCache.txt",
    "cmake-build-debug/CMakeFiles/x.make",
    "cmake-build-debug/generated.cpp",
    "csrc/#kernels.cpp#",
    "csrc/.kernels.cpp.swp",
    "csrc/__pycache__/x.pyc",
    "csrc/kernels.cpp.orig",
    "csrc/kernels.cpp~",
    "dist/torch_foo-0.0.9.tar.gz",
    "environment/pyvenv.cfg",
    "environment/x.py",
    "out/build/x64/CMakeCache.txt",
    "out/build/x64/x.cpp",
    "torch_foo.egg-info/PKG-INFO",
    "compile_commands.json",
}
#: The same, of which the vendor is told.
DOUBTFUL = {
    "core.1234",
    "csrc/kernels.o",
    "csrc/libfoo.so",
    "csrc/libfoo.so.1.2",
    "csrc/probe",
    "dump",
    "torch_foo-0.0.9.tar.gz",
    "wheelhouse/torch_foo-0.0.9-py3-none-any.whl",
}


def elf(kind: int, machine: int) -> bytes:
    return b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack("<HH", kind, machine) + bytes(44)


def fill(project: Path, names: Iterable[str]) -> None:
    """Writes files; those whose contents tell what they are get such contents."""
    with open(sys.executable, "rb") as file:
        machine = struct.unpack("<H", file.read(20)[18:])[0]
    contents = {
        "csrc/probe": elf(2, machine),
        "dump": elf(4, machine),
        "firmware/kernels.elf": elf(2, 4711),
    }
    for name in names:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents.get(name, f"// {name}\n".encode()))


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=Vendor", "-c", "user.email=vendor@example.com"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def packed(
    project: Path, builder: Environment, out: Path, **environment: str
) -> tuple[set[str], str]:
    """The files of the project's sdist, without what setuptools adds; what the build printed."""
    words = ["-m", "build", "--sdist", "--no-isolation", "-o", out, project]
    said = run(builder.python, *words, cwd=out, **environment).stdout
    (archive,) = out.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        names = {m.name.split("/", 1)[1] for m in sdist.getmembers() if not m.isdir()}
        assert all(member.isfile() or member.isdir() for member in sdist.getmembers())
    archive.rename(out / "sdist")
    return names - {"PKG-INFO", "setup.cfg"}, said


def left_out(said: str) -> set[str]:
    marks = ("note: the sdist leaves out ", ", which looks like the output of a build")
    lines = [line for line in said.splitlines() if line.startswith(marks[0])]
    return {line[len(marks[0]) : -len(marks[1])] for line in lines}


@pytest.mark.parametrize("kept", ["without git", "in an empty repository", "without the program"])
def test_sources_and_leftovers(copy: Path, builder: Environment, tmp_path: Path, kept: str) -> None:
    fill(copy, UNUSUAL | LEFTOVERS | DOUBTFUL)
    if kept == "in an empty repository":
        git(copy, "init")
    environment = {}
    if kept == "without the program":
        programs = tmp_path / "programs"
        programs.mkdir()
        environment["PATH"] = str(programs)
    names, said = packed(copy, builder, tmp_path, **environment)
    assert names == MINIMAL | UNUSUAL
    assert left_out(said) == DOUBTFUL
    assert said.count("help: if it is a source file, `git add --force` it, or add") == 1


def test_what_git_tracks_is_packed_and_what_it_ignores_is_not(
    copy: Path, builder: Environment, tmp_path: Path
) -> None:
    tracked = {
        ".clang-format",
        ".gitignore",
        "csrc/libfoo.so",
        "csrc/kernels.cpp.orig",
        "dist/notes.txt",
        "ignored/but_tracked.cpp",
    }
    fill(copy, tracked | UNUSUAL)
    (copy / ".gitignore").write_text("ignored/\n*.local\n!keep.local\n")
    git(copy, "init")
    git(copy, "add", "--force", ".")
    git(copy, "commit", "-m", "one")
    fill(copy, LEFTOVERS | DOUBTFUL | {"new.cpp", "ignored/x.cpp", "a.local", "keep.local"})
    (copy / "csrc" / "dist" / "größe.h").unlink()
    names, said = packed(copy, builder, tmp_path)
    assert names == MINIMAL | (UNUSUAL - {"csrc/dist/größe.h"}) | tracked | {
        "new.cpp",
        "keep.local",
    }
    assert left_out(said) == DOUBTFUL - tracked


def test_gitignore_serves_without_a_repository(
    copy: Path, builder: Environment, tmp_path: Path
) -> None:
    fill(copy, {"secrets/key.pem", "csrc/kept.local", "a.local", "csrc/a.local"})
    (copy / ".gitignore").write_text("/secrets/\n*.local\n")
    (copy / "csrc" / ".gitignore").write_text("!kept.local\n")
    names, said = packed(copy, builder, tmp_path)
    assert names == MINIMAL | {"csrc/kept.local"}
    programs = tmp_path / "programs"
    programs.mkdir()
    _, said = packed(copy, builder, tmp_path, PATH=str(programs))
    assert "note: found no git, so .gitignore was not read" in said


def test_a_project_that_another_repository_ignores(
    copy: Path, builder: Environment, tmp_path: Path
) -> None:
    """As one below build/ of a larger project: nothing of it is lost."""
    git(tmp_path, "init")
    (tmp_path / ".gitignore").write_text("*\n")
    fill(copy, UNUSUAL)
    names, _ = packed(copy, builder, tmp_path)
    assert names == MINIMAL | UNUSUAL


def test_a_repository_that_git_refuses(copy: Path, builder: Environment, tmp_path: Path) -> None:
    (copy / ".git").write_text("gitdir: /no/such/folder\n")
    names, said = packed(copy, builder, tmp_path)
    assert names == MINIMAL
    assert "note: git cannot list the tracked files: fatal: not a git repository" in said


@pytest.mark.parametrize("repository", [False, True])
def test_links(copy: Path, builder: Environment, tmp_path: Path, repository: bool) -> None:
    """What relative links lead to is packed, as files; a link without an end ends."""
    common = tmp_path / "common"
    fill(common, {"sub/x.h", "y.h", "__pycache__/z.pyc"})
    (copy / "csrc" / "common").symlink_to("../../common")
    (copy / "csrc" / "y.h").symlink_to("../../common/y.h")
    (copy / "csrc" / "again").symlink_to(".")
    (copy / "csrc" / "nowhere").symlink_to("nothing")
    (copy / "sdk").symlink_to(ROOT / "docs")
    if repository:
        git(copy, "init")
        git(copy, "add", "backend.toml", "csrc/common", "csrc/y.h")
    names, _ = packed(copy, builder, tmp_path)
    assert names == MINIMAL | {"csrc/common/sub/x.h", "csrc/common/y.h", "csrc/y.h"}


def test_a_submodule(copy: Path, builder: Environment, tmp_path: Path) -> None:
    other = tmp_path / "other"
    fill(other, {"x.cpp", "y.a"})
    for folder in (other, copy):
        git(folder, "init")
        git(folder, "add", ".")
        git(folder, "commit", "-m", "one")
    allow = ("-c", "protocol.file.allow=always")
    git(copy, *allow, "submodule", "add", str(other), "third_party/other")
    names, _ = packed(copy, builder, tmp_path)
    own = {".gitignore", ".gitmodules", "third_party/other/x.cpp", "third_party/other/y.a"}
    assert names == MINIMAL | own


def test_manifest_in_has_the_last_word(copy: Path, builder: Environment, tmp_path: Path) -> None:
    fill(copy, {"csrc/libfoo.so", "notes.txt", ".config"})
    (copy / "MANIFEST.in").write_text("include csrc/libfoo.so .config\nexclude notes.txt\n")
    names, said = packed(copy, builder, tmp_path)
    assert names == MINIMAL | {"MANIFEST.in", "csrc/libfoo.so", ".config"}
    assert left_out(said) == set()


def test_a_wheel_is_built_from_it(copy: Path, builder: Environment, tmp_path: Path) -> None:
    """The project wants each of its unusual sources; nothing is compiled."""
    fill(copy, UNUSUAL | LEFTOVERS)
    wanted = " ".join(f'"{name}"' for name in sorted(UNUSUAL))
    text = (copy / "CMakeLists.txt").read_text()
    assert "add_torch_backend(foo SOURCES" in text
    sources = 'core/core.cpp "csrc/dist/all reduce.cpp"'
    text = text.replace("add_torch_backend(foo SOURCES", f"add_torch_backend(foo SOURCES {sources}")
    (copy / "CMakeLists.txt").write_text(
        text.replace("find_package(", f"foreach(name {wanted})\n  file(SIZE ${{name}} size)\n"
                     "endforeach()\nfind_package(", 1)
    )  # fmt: skip
    touch = tmp_path / "touch.cmake"
    touch.write_text(
        'set(CMAKE_CXX_COMPILE_OBJECT "\\"${CMAKE_COMMAND}\\" -E touch <OBJECT>")\n'
        'set(CMAKE_CXX_CREATE_SHARED_LIBRARY "\\"${CMAKE_COMMAND}\\" -E touch <TARGET>")\n'
    )
    words = ["-m", "build", "--no-isolation", "-o", tmp_path / "out", copy]
    arguments = f"-DCMAKE_PROJECT_INCLUDE={touch}"
    run(builder.python, *words, cwd=tmp_path, CMAKE_ARGS=arguments)
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".gz", ".whl"]
    assert not os.path.exists(copy / "build" / "stage")


def test_the_same_sources_give_the_same_bytes(
    copy: Path, builder: Environment, tmp_path: Path
) -> None:
    """In another folder, time zone and umask, with other dates and modes of files."""
    other = tmp_path / "elsewhere" / "project"
    shutil.copytree(copy, other, copy_function=shutil.copyfile)
    for path in other.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1, 1_500_000_000))
    results = []
    for project, umask, zone in ((copy, "022", "UTC"), (other, "077", "Asia/Tokyo")):
        out = project.parent / "out"
        out.mkdir()
        words = [builder.python, "-m", "build", "--sdist", "--no-isolation", "-o", out, project]
        line = " ".join(shlex.quote(str(word)) for word in words)
        run("sh", "-c", f"umask {umask} && {line}", cwd=out, TZ=zone)
        (archive,) = out.glob("*.tar.gz")
        results.append(archive.read_bytes())
        with tarfile.open(archive) as sdist:
            who = {(m.uid, m.gid, m.uname, m.gname, m.mode, m.mtime) for m in sdist}
        assert who == {(0, 0, "", "", 0o644, 315532800)}
    assert results[0] == results[1]
