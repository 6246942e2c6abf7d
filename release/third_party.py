# SPDX-License-Identifier: Apache-2.0
"""Gathers the libraries that backendgen is linked with into a folder, for an sdist that needs no
network: headers and licences from the installed Debian packages, libyaml from Debian's source
package, the licences of zig's C++ library from PyPI's package of zig."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

__all__ = ["gather"]

# Package, its name in NOTICE.txt, and what of it the compiler includes.
HEADERS = (
    ("libcxxopts-dev", "cxxopts", "cxxopts.hpp"),
    ("libdtl-dev", "dtl", "dtl"),
    ("libfmt-dev", "fmt", "fmt"),
    ("libkainjow-mustache-dev", "mustache", "kainjow"),
    ("libtomlplusplus-dev", "toml++", "toml++"),
)
LIBYAML = "0.2.5"


def gather(folder: Path, cache: Path) -> None:
    """Writes the libraries below `folder`; `cache` keeps what was downloaded."""
    include = folder / "include"
    include.mkdir(parents=True, exist_ok=True)
    for package, name, part in HEADERS:
        installed = Path("/usr/include", part)
        if not installed.exists():
            raise SystemExit(f"error: found no {installed}\nhelp: apt-get install {package}")
        if installed.is_dir():
            shutil.copytree(installed, include / part, dirs_exist_ok=True)
        else:
            shutil.copyfile(installed, include / part)
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", folder / f"{name}.txt")
    mend_dtl(include / "dtl" / "Diff.hpp")
    libyaml(folder, cache)
    zig = zig_folder()
    shutil.copyfile(zig / "lib" / "libcxx" / "LICENSE.TXT", folder / "libc++.txt")
    shutil.copyfile(zig / "LICENSE", folder / "zig.txt")


def mend_dtl(header: Path) -> None:
    """Takes away the `const` of a function that assigns to a member, which newer Clangs refuse."""
    text = header.read_text(encoding="utf-8")
    mended = text.replace("enableTrivial () const", "enableTrivial ()")
    header.write_text(mended, encoding="utf-8")


def zig_folder() -> Path:
    """The folder of PyPI's package of zig, with the program and its libraries."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("error: found no zig\nhelp: python -m pip install ziglang")
    return Path(spec.submodule_search_locations[0])


def libyaml(folder: Path, cache: Path) -> None:
    """The C sources of libyaml, whose Debian package has only a compiled library."""
    archive = cache / f"libyaml_{LIBYAML}.orig.tar.gz"
    if not archive.is_file():
        download_source("libyaml", cache)
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            name = member.name.partition("/")[2]
            wanted = name.startswith(("src/", "include/")) and name.endswith((".c", ".h"))
            content = packed.extractfile(member) if wanted or name == "License" else None
            if content is None:
                continue
            place = folder / ("libyaml.txt" if name == "License" else f"libyaml/{name}")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.read())


def download_source(package: str, cache: Path) -> None:
    """Downloads a Debian source package, whose hashes apt checks.

    The machine's lists of sources are read, but neither they nor apt's state are changed.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        sources = Path(scratch, "sources")
        Path(scratch, "lists", "partial").mkdir(parents=True)
        sources.mkdir()
        for path in (Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")):
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            lines = [line for line in text.splitlines() if "debian.org" in text]
            lines = [line.replace("Types: deb", "Types: deb-src") for line in lines]
            lines = ["deb-src " + line[4:] if line.startswith("deb ") else line for line in lines]
            name = path.name if path.parent.name == "sources.list.d" else "main.list"
            if lines:
                (sources / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        configuration = Path(scratch, "apt.conf")
        configuration.write_text(
            f'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "{sources}";\n'
            f'Dir::State::Lists "{scratch}/lists";\nAPT::Sandbox::User "";\n',
            encoding="utf-8",
        )
        environment = {**os.environ, "APT_CONFIG": str(configuration)}
        for command in (["update"], ["source", "--download-only", package]):
            subprocess.run(
                ["apt-get", "-q", *command],
                cwd=cache,
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
            )
