# SPDX-License-Identifier: Apache-2.0
"""The same sources give the same bytes, whoever builds them, where, when and with how many jobs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Environment, for_release, run

# The files belong to whoever runs the tests, who is another user in there.
OTHER_USER = ("unshare", "--user", "--map-user=4321", "--map-group=4321")


def other_user() -> tuple[str, ...]:
    """The words before a command that make another user of it; none where the system forbids it."""
    try:
        done = subprocess.run([*OTHER_USER, "id", "-u"], capture_output=True, check=False)
    except FileNotFoundError:
        return ()
    return OTHER_USER if done.stdout.split() == [b"4321"] else ()


@pytest.fixture(scope="module")
def elsewhere(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project in a folder of another depth, with other dates, in which nothing was built."""
    folder = tmp_path_factory.mktemp("elsewhere") / "a" / "much" / "deeper" / "folder" / "copy"
    shutil.copytree(project, folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1, 1_500_000_000))
    return folder


def differently(*command: str | Path, cwd: Path) -> None:
    """Runs a command as another user, with another umask, time zone, language and home."""
    line = " ".join(shlex.quote(str(word)) for word in command)
    run(
        *(*other_user(), "sh", "-c", f"umask 077 && exec {line}"),
        cwd=cwd,
        TZ="Asia/Tokyo",
        LC_ALL="C",
        HOME=str(cwd),
        CCACHE_DIR=str(cwd / "ccache"),
        PYTHONHASHSEED="7",
        CMAKE_BUILD_PARALLEL_LEVEL="1",
    )


def only(folder: Path, pattern: str) -> bytes:
    (path,) = folder.glob(pattern)
    return path.read_bytes()


def test_a_wheel_a_merged_wheel_and_an_sdist(
    project: Path,
    wheel: Path,
    elsewhere: Path,
    builder: Environment,
    tools: Path,
    minor: str,
    tmp_path: Path,
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    there.mkdir()
    pip = [builder.python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", there]
    differently(*pip, elsewhere, cwd=there)
    assert only(there, "*.whl") == wheel.read_bytes()

    sdist = [builder.python, "-m", "build", "--sdist", "--no-isolation", "-o"]
    run(*sdist, here, project, cwd=tmp_path)
    differently(*sdist, there, elsewhere, cwd=there)
    assert only(there, "*.tar.gz") == only(here, "*.tar.gz")

    major, number = minor.split(".")
    other = for_release(wheel, f"{major}.{int(number) - 1}", tmp_path / "other")
    merge = [tools.parent / "backendgen", "merge", "--python", builder.python, "--out"]
    run(*merge, here, other, wheel, cwd=tmp_path)
    (again,) = there.glob("*.whl")
    differently(*merge, there / "merged", again, other, cwd=there)
    assert only(there / "merged", "*.whl") == only(here, "*.whl")
