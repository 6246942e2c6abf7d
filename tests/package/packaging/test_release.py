# SPDX-License-Identifier: Apache-2.0
"""The scripts of `./dev release`, without its long builds; those are `./dev release --check`."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "release"))
import check
import installs
import release
import third_party


def archive(path: Path, names: list[str], owner: int, date: int) -> bytes:
    """An archive of these files, as cpack makes one, after it was packed again."""
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as packed:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(name), date, 0o755
            member.uid, member.uname = owner, f"user{owner}"
            packed.addfile(member, io.BytesIO(name.encode()))
    release.repack(path)
    return path.read_bytes()


def test_archives_do_not_depend_on_owner_date_and_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", release.epoch())
    first = archive(tmp_path / "a" / "x.tar.gz", ["x/bin", "x/a"], 0, 1_500_000_000)
    assert first == archive(tmp_path / "b" / "x.tar.gz", ["x/a", "x/bin"], 1000, 1_600_000_000)
    with tarfile.open(tmp_path / "a" / "x.tar.gz") as packed:
        assert packed.getnames() == ["x/a", "x/bin"]
        assert {member.mtime for member in packed} == {int(release.epoch())}
        assert {member.mode for member in packed} == {0o755}
        content = packed.extractfile("x/bin")
        assert content and content.read() == b"x/bin"
    assert list((tmp_path / "a").iterdir()) == [tmp_path / "a" / "x.tar.gz"]


def test_what_differs_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same").write_text("same")
        (tmp_path / folder / "other").write_text(folder)
    first, second = check.digests(tmp_path / "first"), check.digests(tmp_path / "second")
    release.expect_same(first, first)
    assert "Compared 2 files" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"not the same: other$"):
        release.expect_same(first, second)
    with pytest.raises(SystemExit, match=r"not the same: more$"):
        release.expect_same(first, {**first, "more": ""})


def test_the_second_build_is_different_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {}

    def make(out: Path, work: Path, *words: object) -> None:
        seen.update(os.environ)
        (tmp_path / "made").touch()
        os.environ["SOURCE_DATE_EPOCH"] = "1"

    monkeypatch.setattr(release, "make", make)
    monkeypatch.setenv("CMAKE_BUILD_PARALLEL_LEVEL", "2")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    release.make_again(tmp_path / "again", ["x86_64"], tmp_path, [])
    assert (seen["CMAKE_BUILD_PARALLEL_LEVEL"], seen["TZ"]) == ("3", "Asia/Kolkata")
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o600
    (tmp_path / "after").touch()
    assert (tmp_path / "after").stat().st_mode & 0o077
    assert (os.environ["TZ"], "SOURCE_DATE_EPOCH" in os.environ) == ("UTC", False)


def test_only_files_of_the_tree_are_staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    (tree / "build").mkdir(parents=True)
    (tree / ".gitignore").write_text("build\n")
    for name, mode in (("dev", 0o700), ("new file", 0o600), ("build/made", 0o644)):
        (tree / name).touch(mode)
    subprocess.run(["git", "init", "--quiet", tree], check=True)
    monkeypatch.setattr(release, "ROOT", tree)
    monkeypatch.setattr(release, "gather", lambda folder, cache: folder.mkdir())
    staged = release.stage(tmp_path / "staged", tmp_path)
    modes = {path.name: path.stat().st_mode & 0o777 for path in staged.rglob("*")}
    assert modes == {".gitignore": 0o644, "dev": 0o755, "new file": 0o644, "third_party": 0o755}


def test_libraries_from_debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(third_party, "libyaml", lambda folder, cache: None)
    third_party.gather(tmp_path / "third_party", tmp_path)
    texts = sorted(path.name for path in (tmp_path / "third_party").glob("*.txt"))
    assert texts == [
        *("cxxopts.txt", "dtl.txt", "fmt.txt", "libc++.txt", "mustache.txt", "toml++.txt"),
        "zig.txt",
    ]
    for name in ("cxxopts.hpp", "fmt/format.h", "kainjow/mustache.hpp", "toml++/toml.h"):
        assert (tmp_path / "third_party" / "include" / name).is_file(), name
    header = (tmp_path / "third_party" / "include" / "dtl" / "Diff.hpp").read_text()
    assert "enableTrivial ()" in header and "enableTrivial () const" not in header


def test_zig_compiles_for_the_oldest_glibc(tmp_path: Path) -> None:
    settings = release.write_toolchain(tmp_path / "zig", "aarch64")
    assert f"-DZIG_FOLDER={tmp_path}/zig" in settings
    (tmp_path / "empty.c").touch()
    command = [tmp_path / "zig" / "zig-cc", "-###", "-c", "empty.c"]
    shown = subprocess.run(
        command, cwd=tmp_path, capture_output=True, check=True, text=True, env={**os.environ}
    ).stderr
    assert "aarch64" in shown and "2.17" in (tmp_path / "zig" / "zig-cc").read_text()


def test_the_packages_get_the_maintainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[object, ...]] = []
    monkeypatch.setattr(release, "run", lambda *words, **rest: given.append(words))
    monkeypatch.setattr(release, "make_again", lambda *words: pytest.fail("not asked for"))
    monkeypatch.setattr(release, "stage", lambda *words: tmp_path)
    monkeypatch.setattr(release, "build_sdist", lambda *words: an_archive(tmp_path))
    monkeypatch.setattr(release, "build_wheel", lambda *words: tmp_path / "out" / "x.tar.gz")
    words = ["--out", tmp_path / "out", "--work", tmp_path / "work", "--machine", "aarch64"]
    monkeypatch.setattr(sys, "argv", ["release.py", *map(str, words)])
    monkeypatch.setattr(os, "environ", os.environ.copy())
    release.main()
    assert not [word for command in given for word in command if "MAINTAINER" in str(word)]
    given.clear()
    sys.argv += ["--maintainer", "Jo <jo@example.com>"]
    release.main()
    assert "-DBACKENDKIT_MAINTAINER=Jo <jo@example.com>" in given[0]
    assert os.environ["ZIG_LOCAL_CACHE_DIR"] == str(tmp_path / "work" / "build-aarch64" / "zig")


def an_archive(folder: Path) -> Path:
    path = folder / "out" / "x.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        packed.addfile(tarfile.TarInfo("x/dev"))
    return path


def test_a_wheel_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "backendkit-0.1.0-py3-none-manylinux_2_17_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("backendkit/__init__.py", "#" * 2000)
    monkeypatch.setattr(check, "LIMIT", 1000)
    with pytest.raises(SystemExit, match="is larger than 3 MB: "):
        check.check_wheel(wheel, "x86_64", tmp_path / "scratch")


def test_a_program_that_fails_is_shown(tmp_path: Path) -> None:
    said = installs.run(sys.executable, "-c", "print(1); exit(3)", cwd=tmp_path, status=3)
    assert said == "1\n"
    with pytest.raises(SystemExit, match=r"(?s)ended with status 3:\n1\n$"):
        installs.run(sys.executable, "-c", "print(1); exit(3)", cwd=tmp_path)
