# SPDX-License-Identifier: Apache-2.0
"""Which library a package opens, and what it says if it can open none."""

from __future__ import annotations

import os
import struct
import sys
import types
from pathlib import Path

import pytest
import torch
from package_without_library import Package

SEVERAL = ["2.1", "2.5", "2.9", "2.10", "2.13"]


def start(package: Package) -> types.ModuleType:
    """The loader; its import finds no library, says so and goes on."""
    os.environ.pop("BACKENDKIT_SKIP_HANDSHAKE", None)
    with pytest.warns(RuntimeWarning, match="torch_foo 0.1.0"):
        return package.loader


def add(package: Package, *releases: str, content: bytes = b"") -> None:
    for release in releases:
        folder = package.folder / "lib" / release
        folder.mkdir(parents=True)
        (folder / "libtorch_foo.so").write_bytes(content)


def failure(loader: types.ModuleType, function: str, *arguments: object) -> str:
    with pytest.raises(loader.BackendError) as caught:
        getattr(loader, function)(*arguments)
    return str(caught.value)


VERSIONS = {
    "2.5.1": "2.5",
    "2.10.0": "2.10",
    "2.13.0+cu130": "2.13",
    "2.13.0a0+git1c2f3d4": "2.13",
    "2.9.0.dev20250801": "2.9",
}


def test_the_folder_of_the_release(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = start(package)
    add(package, *SEVERAL)
    chosen = {}
    for version in VERSIONS:
        monkeypatch.setattr(torch, "__version__", version)
        chosen[version] = loader._choose_library()
    lib, name = package.folder / "lib", loader._library_name()
    assert chosen == {one: str(lib / release / name) for one, release in VERSIONS.items()}


def test_no_folder_of_the_release(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = start(package)
    add(package, "2.10", "2.9")
    monkeypatch.setattr(torch, "__version__", "2.14.0+cpu")
    first, help_ = failure(loader, "_choose_library").splitlines()
    assert first.endswith("2.9 and 2.10, but this is PyTorch 2.14.0")
    assert '"torch==2.10.*"' in help_
    assert "--upgrade torch_foo" in help_
    assert "2.14" in help_


@pytest.mark.parametrize(
    ("releases", "text"),
    [
        (["2.5", "2.6", "2.7", "2.8", "2.9", "2.10"], "PyTorch 2.5 to 2.10, but"),
        (["2.5", "2.7", "2.8"], "PyTorch 2.5, 2.7 and 2.8, but"),
        (["2.7"], "PyTorch 2.7, but"),
    ],
)
def test_names_of_the_releases(
    package: Package, monkeypatch: pytest.MonkeyPatch, releases: list[str], text: str
) -> None:
    loader = start(package)
    add(package, *releases)
    monkeypatch.setattr(torch, "__version__", "2.14.0")
    assert text in failure(loader, "_choose_library")


def test_no_folder_at_all(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = start(package)
    monkeypatch.setattr(torch, "__version__", "2.6.0")
    text = failure(loader, "_choose_library")
    assert f"has no library in {package.folder / 'lib'}" in text
    assert "--force-reinstall" in text


def test_other_things_beside_the_folders(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = start(package)
    add(package, "2.9", "2.14.old", "old", "2", "2.14-cuda")
    monkeypatch.setattr(torch, "__version__", "2.14.0")
    assert "2.9, but this is PyTorch 2.14.0" in failure(loader, "_choose_library").splitlines()[0]


def test_a_folder_without_its_library(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = start(package)
    (package.folder / "lib" / "2.13").mkdir(parents=True)
    monkeypatch.setattr(torch, "__version__", "2.13.0")
    first, help_ = failure(loader, "_choose_library").splitlines()
    assert first.endswith(str(package.folder / "lib" / "2.13" / loader._library_name()))
    assert "--force-reinstall" in help_
    assert "torch_foo==0.1.0" in help_


def test_handshake_off(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest library is opened: 2.10 is newer than 2.9."""
    loader = start(package)
    add(package, "2.9", "2.10")
    monkeypatch.setattr(torch, "__version__", "2.14.0")
    for on in ("0", ""):
        monkeypatch.setenv("BACKENDKIT_SKIP_HANDSHAKE", on)
        assert "this is PyTorch 2.14.0" in failure(loader, "_choose_library")
    monkeypatch.setenv("BACKENDKIT_SKIP_HANDSHAKE", "1")
    assert Path(loader._choose_library()).parent.name == "2.10"


def test_handshake_off_does_not_replace_the_right_library(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = start(package)
    add(package, "2.9", "2.10")
    monkeypatch.setattr(torch, "__version__", "2.9.1")
    monkeypatch.setenv("BACKENDKIT_SKIP_HANDSHAKE", "1")
    assert Path(loader._choose_library()).parent.name == "2.9"


def test_name_of_the_library(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    loader, names = start(package), []
    for platform in ("linux", "darwin", "win32"):
        monkeypatch.setattr(sys, "platform", platform)
        names.append(loader._library_name())
    assert names == ["libtorch_foo.so", "libtorch_foo.dylib", "libtorch_foo.dll"]


def elf(size: int, order: str = "<", bits: int = 2, sections: int = 100, count: int = 3) -> bytes:
    """The first `size` bytes of a library whose table of sections follows after 100 bytes."""
    head = b"\x7fELF" + bytes([bits, 1 if order == "<" else 2]) + bytes(34)
    head += struct.pack(order + "Q", sections) + bytes(10) + struct.pack(order + "HH", 64, count)
    return head.ljust(300, b"\0")[:size]


WHOLE = 100 + 3 * 64
FILES = {
    "whole": (elf(WHOLE), "linux", True),
    "longer than it must be": (elf(WHOLE + 1), "linux", True),
    "cut by a byte": (elf(WHOLE - 1), "linux", False),
    "cut in its head": (elf(63), "linux", False),
    "empty": (b"", "linux", False),
    "whole, of a machine with the other byte order": (elf(WHOLE, ">"), "linux", True),
    "cut, of a machine with the other byte order": (elf(WHOLE - 1, ">"), "linux", False),
    "of 32 bits": (elf(64, bits=1), "linux", True),
    "a text": (b"not a library" * 100, "linux", False),
    "of another system": (b"\xcf\xfa\xed\xfe" + bytes(100), "darwin", True),
    "cut, on another system": (elf(WHOLE - 1), "darwin", False),
}


def test_whole_or_damaged(
    package: Package, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loader, path, found = start(package), tmp_path / "library", {}
    for name, (content, platform, _) in FILES.items():
        path.write_bytes(content)
        monkeypatch.setattr(sys, "platform", platform)
        found[name] = not loader._is_truncated(str(path))
        if found[name]:
            continue
        monkeypatch.setattr(loader, "_choose_library", lambda: str(path))
        with pytest.raises(loader.BackendError) as refused:
            loader._open_library()
        said, help_ = str(refused.value).splitlines()
        assert str(path) in said
        assert "--force-reinstall" in help_
    assert found == {name: is_whole for name, (_, _, is_whole) in FILES.items()}


@pytest.mark.parametrize("off", ["0", "1"])
def test_the_words_of_the_systems_loader(
    package: Package, monkeypatch: pytest.MonkeyPatch, off: str
) -> None:
    """A file that is whole, as far as its head says, but not a library."""
    loader = start(package)
    add(package, "2.13", content=elf(WHOLE))
    monkeypatch.setattr(torch, "__version__", "2.13.0")
    monkeypatch.setenv("BACKENDKIT_SKIP_HANDSHAKE", off)
    text = failure(loader, "_open_library")
    assert str(package.folder / "lib" / "2.13" / "libtorch_foo.so") in text
    assert ("BACKENDKIT_SKIP_HANDSHAKE=1" in text) == (off == "1")


TAKEN = {
    "a free place": ("privateuseone", None, None),
    "its own name, before its module is there": ("foo", None, None),
    "its own name": ("foo", "torch_foo._device", None),
    "another name": ("zoo", "torch_zoo", "`zoo` (torch_zoo)"),
    "another name without a module": ("zoo", None, "device `zoo` is"),
    "its own name, of another package": ("foo", "torch_other", "`foo` (torch_other)"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_place_taken(package: Package, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    device, owner, said = TAKEN[name]
    loader = start(package)
    monkeypatch.delattr(torch, "foo")
    if owner is not None:
        monkeypatch.setattr(torch, device, types.ModuleType(owner), raising=False)
    monkeypatch.setattr(torch._C, "_get_privateuse1_backend_name", lambda: device)
    if said is None:
        loader._check_name_is_free()
    else:
        text = failure(loader, "_check_name_is_free")
        assert said in text
        assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in text
