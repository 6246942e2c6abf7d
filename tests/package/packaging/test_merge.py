# SPDX-License-Identifier: Apache-2.0
"""`backendgen merge`, on wheels that are made here."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "generator" / "golden"))
import made_wheels  # noqa: E402

from backendkit_tools.platform_tags import TagsDiffer, strictest  # noqa: E402
from backendkit_tools.wheelfile import read_wheel  # noqa: E402


def make(
    folder: Path, minor: int, version: str = "0.1.0", platform: str = "linux_x86_64", **files: str
) -> Path:
    texts = {name.replace("__", "/").replace("_dot_", "."): text for name, text in files.items()}
    place = folder / f"2.{minor}-{len(list(folder.iterdir()))}"
    return made_wheels.make(place, f"2.{minor}", version=version, platform=platform, files=texts)


def merge(folder: Path, *wheels: Path, out: str = "dist") -> tuple[int, str]:
    command = [os.environ["BACKENDGEN"], "merge", *wheels, "--out", out, "--python", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_every_order_gives_the_same_bytes(tmp_path: Path) -> None:
    wheels = [make(tmp_path, minor) for minor in (11, 9, 10)]
    made = set()
    for number, order in enumerate(itertools.permutations(wheels)):
        status, text = merge(tmp_path, *order, out=f"out{number}")
        assert status == 0, text
        (wheel,) = (tmp_path / f"out{number}").iterdir()
        made.add(wheel.read_bytes())
    assert len(made) == 1
    assert "Merged torch_foo 0.1.0 for PyTorch 2.9 to 2.11" in text
    joined = read_wheel(wheel)
    headers = joined.headers("METADATA")
    assert headers.get_all("Requires-Dist") == ["torch>=2.9,<2.12", "numpy"]
    assert headers["Summary"] == "für Foo"
    assert "\nFrom here on" in joined.text("METADATA")
    for minor in (9, 10, 11):
        name = f"torch_foo/lib/2.{minor}/libtorch_foo.so"
        assert joined.members[name].data == f"library for 2.{minor}".encode()


def test_local_versions_are_dropped(tmp_path: Path) -> None:
    wheels = [make(tmp_path, 9, "0.1.0+torch2.9"), make(tmp_path, 10, "0.1.0+torch2.10")]
    status, text = merge(tmp_path, *wheels)
    assert status == 0, text
    joined = read_wheel(tmp_path / "dist" / "torch_foo-0.1.0-py3-none-linux_x86_64.whl")
    assert joined.headers("METADATA")["Version"] == "0.1.0"


def test_a_merged_wheel_is_merged_again(tmp_path: Path) -> None:
    wheels = [make(tmp_path, 9), make(tmp_path, 10)]
    assert merge(tmp_path, *wheels)[0] == 0
    (joined,) = (tmp_path / "dist").iterdir()
    before = joined.read_bytes()
    assert merge(tmp_path, joined, *wheels) == merge(tmp_path, *wheels)
    assert joined.read_bytes() == before


def test_a_wheel_for_other_releases_is_not_replaced(tmp_path: Path) -> None:
    assert merge(tmp_path, make(tmp_path, 9))[0] == 0
    (there,) = (tmp_path / "dist").iterdir()
    before = there.read_bytes()
    status, text = merge(tmp_path, make(tmp_path, 10))
    assert status == 1
    assert "is for PyTorch 2.9, and would be replaced by the wheel for PyTorch 2.10" in text
    assert "backendgen wheel --torch 2.9,2.10" in text
    assert "--local-version" in text
    assert there.read_bytes() == before


def occupied(folder: Path, machine: str) -> subprocess.CompletedProcess[str]:
    """The tool that `backendgen wheel` asks before it builds 0.1.0 for PyTorch 2.10."""
    code = "from backendkit_tools.occupied import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, folder, "torch_foo", "0.1.0", "2.10", "2.9,2.10"],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "templates" / "tools"),
            "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
        },
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_name_is_taken_on_the_machine_that_the_wheel_is_for(tmp_path: Path, machine: str) -> None:
    """Whatever machine builds it: Python is told the target where it is another one."""
    wheel = make(tmp_path, 9, platform=f"linux_{machine}")
    done = occupied(wheel.parent, machine)
    assert done.returncode == 1
    assert "is for PyTorch 2.9, and would be replaced" in done.stdout
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[machine]
    assert occupied(wheel.parent, other).returncode == 0


def test_the_next_major_release_may_follow_the_newest(tmp_path: Path) -> None:
    newest = made_wheels.make(tmp_path / "2.15", "2.15")
    status, text = merge(tmp_path, newest, made_wheels.make(tmp_path / "3.0", "3.0"))
    assert status == 0, text
    (joined,) = (tmp_path / "dist").iterdir()
    required = read_wheel(joined).headers("METADATA").get_all("Requires-Dist")
    assert required == ["torch>=2.15,<3.1", "numpy"]


WRONG = {
    "hole": ([{"minor": 9}, {"minor": 11}], "the wheels leave out PyTorch 2.10"),
    "file": (
        [{"minor": 9}, {"minor": 10, "torch_foo__extras_dot_py": "X = 1\n"}],
        "torch_foo/extras.py is in ",
    ),
    "version": ([{"minor": 9}, {"minor": 10, "version": "0.2.0"}], "two versions: 0.1.0 and 0.2.0"),
    "machine": (
        [{"minor": 9}, {"minor": 10, "platform": "linux_aarch64"}],
        "merge the wheels of each architecture",
    ),
    "portable": (
        [{"minor": 9}, {"minor": 10, "platform": "manylinux_2_28_x86_64"}],
        "a portable tag",
    ),
    "twice": (
        [{"minor": 9}, {"minor": 9, "torch_foo__lib__2_dot_9__more": "x"}],
        "have two libraries for PyTorch 2.9",
    ),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_wheels_that_do_not_belong_together(tmp_path: Path, name: str) -> None:
    parts, expected = WRONG[name]
    status, text = merge(tmp_path, *(make(tmp_path, **part) for part in parts))
    assert status == 1
    assert expected in text
    assert text.startswith("error: ")
    assert "Traceback" not in text
    assert not (tmp_path / "dist").exists()


def test_a_damaged_wheel(tmp_path: Path) -> None:
    wheel = make(tmp_path, 9)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("torch_foo/surplus.py", "")
    status, text = merge(tmp_path, wheel, make(tmp_path, 10))
    assert status == 1
    assert "has torch_foo/surplus.py, which its RECORD does not list" in text


def test_the_strictest_platform() -> None:
    both = "manylinux2014_x86_64.manylinux_2_17_x86_64"
    assert strictest({"a": both, "b": "manylinux_2_28_x86_64"}) == "manylinux_2_28_x86_64"
    assert strictest({"a": both, "b": "manylinux_2_17_x86_64"}) == both
    assert strictest({"b": "macosx_11_0_arm64", "a": "macosx_10_9_arm64"}) == "macosx_11_0_arm64"
    with pytest.raises(TagsDiffer):
        strictest({"a": "linux_x86_64", "b": both})
