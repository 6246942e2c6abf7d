# SPDX-License-Identifier: Apache-2.0
"""`./dev release`: BackendKit's sdist, and from it wheels, Debian packages and archives for x86_64
and aarch64. The same sources give the same bytes, in any folder."""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from check import check, digests
from third_party import gather, zig_folder

ROOT = Path(__file__).resolve().parents[1]
MACHINES = ("x86_64", "aarch64")
# The oldest glibc that zig knows for both; `manylinux_2_17` is its name in a wheel's tag.
GLIBC = "2.17"


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev release", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the results go")
    parser.add_argument("--work", type=Path, required=True, help="where everything is built")
    parser.add_argument("--machine", action="append", choices=MACHINES, help="default: both")
    parser.add_argument(
        "--check",
        action="store_true",
        help="build all of it again, with another folder, umask, time zone and number of jobs, "
        "and compare the bytes; then try everything",
    )
    parser.add_argument(
        "--maintainer",
        metavar="'NAME <ADDRESS>'",
        help="whom the Debian packages name, instead of an address that nobody reads",
    )
    options = parser.parse_args()
    out, work = options.out.absolute(), options.work.absolute()
    machines = options.machine or list(MACHINES)
    packaging = [f"-DBACKENDKIT_MAINTAINER={options.maintainer}"] if options.maintainer else []
    downloads = work / "downloads"
    # zig compiles its C++ library once for each machine, and keeps it.
    os.environ["ZIG_GLOBAL_CACHE_DIR"] = str(work / "zig")
    make(out, work, machines, downloads, packaging)
    if options.check:
        again = make_again(work / "again" / "further-down", machines, downloads, packaging)
        expect_same(digests(out), digests(again))
        check(out, work, machines)


def make_again(work: Path, machines: list[str], downloads: Path, packaging: list[str]) -> Path:
    """Builds everything once more, with all around it different; returns the results' folder."""
    before, umask = os.environ.copy(), os.umask(0o077)
    jobs = int(before.get("CMAKE_BUILD_PARALLEL_LEVEL") or os.cpu_count() or 1) + 1
    os.environ.update(TZ="Asia/Kolkata", LC_ALL="C", CMAKE_BUILD_PARALLEL_LEVEL=str(jobs))
    make(work / "dist", work, machines, downloads, packaging)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(before)
    return work / "dist"


def expect_same(first: dict[str, str], second: dict[str, str]) -> None:
    names = sorted(name for name in first | second if first.get(name) != second.get(name))
    if names:
        raise SystemExit(f"error: built again, these are not the same: {', '.join(names)}")
    print(f"{'Compared':>12} {len(first)} files, built twice: the same bytes", flush=True)


def make(out: Path, work: Path, machines: list[str], downloads: Path, packaging: list[str]) -> None:
    """Builds everything below `work`, and puts the results into `out`."""
    for folder in (out, work / "source", work / "unpacked"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    os.environ["SOURCE_DATE_EPOCH"] = epoch()
    # What the build of wheels would take from the environment, in which it is to be the same.
    for name in ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER", "CFLAGS", "CXXFLAGS"):
        os.environ.pop(name, None)
    source = stage(work / "source", downloads)
    sdist = build_sdist(source, out)
    say("Finished", sdist)
    with tarfile.open(sdist) as packed:
        packed.extractall(work / "unpacked", filter="data")
    (unpacked,) = (work / "unpacked").iterdir()
    for machine in machines:
        toolchain = write_toolchain(work / f"zig-{machine}", machine)
        tree = work / f"build-{machine}"
        shutil.rmtree(tree, ignore_errors=True)
        # Beside what is built, so that nothing of an earlier release is taken.
        os.environ["ZIG_LOCAL_CACHE_DIR"] = str(tree / "zig")
        say("Finished", build_wheel(unpacked, tree, machine, toolchain, out))
        for path in build_packages(unpacked, tree, out, packaging):
            say("Finished", path)


def say(verb: str, path: Path) -> None:
    print(f"{verb:>12} {path} ({path.stat().st_size / 1024:.0f} KiB)", flush=True)


def run(*command: str | Path, cwd: Path, umask: int = -1, **environment: str) -> None:
    """Runs a program; shows its output if it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        umask=umask,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.stderr.write("".join(done.stdout.splitlines(keepends=True)[-60:]))
        shown = " ".join(str(word) for word in command)
        raise SystemExit(f"error: `{shown}` failed with status {done.returncode}")


def epoch() -> str:
    """The day of the release, which CMakeLists.txt has."""
    found = re.search(r"BACKENDKIT_EPOCH (\d+)", (ROOT / "CMakeLists.txt").read_text("utf-8"))
    assert found
    return found[1]


def stage(folder: Path, downloads: Path) -> Path:
    """This tree's own files, and the libraries, in a folder."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    gather(folder / "third_party", downloads)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.name == "dev" else 0o644)
    return folder


def build_sdist(source: Path, out: Path) -> Path:
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", out, source, cwd=out)
    (path,) = out.glob("*.tar.gz")
    return path


def write_toolchain(folder: Path, machine: str) -> list[str]:
    """CMake's arguments for zig as the compiler for that machine."""
    folder.mkdir(parents=True, exist_ok=True)
    target = f"-target {machine}-linux-gnu.{GLIBC}"
    for name, words in (
        ("cc", f"cc {target}"),
        ("c++", f"c++ {target}"),
        ("ar", "ar"),
        ("ranlib", "ranlib"),
    ):
        path = folder / f"zig-{name}"
        path.write_text(f'#!/bin/sh\nexec "{zig_folder()}/zig" {words} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
    return [
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/release/zig.cmake",
        f"-DZIG_FOLDER={folder}",
        f"-DBACKENDKIT_MACHINE={machine}",
        "-DBACKENDKIT_BUNDLED=ON",
    ]


def build_wheel(source: Path, tree: Path, machine: str, toolchain: list[str], out: Path) -> Path:
    # No path of this machine in what is compiled, and no symbols, which zig adds. It compiles its
    # C++ library for each kind of -O, so CMake's trial programs get that of the rest. Debian wants
    # position-independent programs.
    flags = f"-O3 -s -fPIE -pie -ffile-prefix-map={source}=. -ffile-prefix-map={tree}=."
    arguments = [*toolchain, f"-DCMAKE_C_FLAGS='{flags}'", f"-DCMAKE_CXX_FLAGS='{flags}'"]
    built = tree / "wheel"
    built.mkdir(parents=True)
    command = ["-m", "build", "--wheel", "--no-isolation", "-o", built, source]
    arguments_text = " ".join(arguments)
    run(
        sys.executable,
        *command,
        cwd=tree,
        CMAKE_ARGS=arguments_text,
        SKBUILD_BUILD_DIR=str(tree / "cmake"),
    )
    (plain,) = built.glob("*.whl")
    tag = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
    run(sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", tag, plain, cwd=tree)
    (wheel,) = built.glob("*.whl")
    return Path(shutil.move(wheel, out / wheel.name))


def build_packages(source: Path, tree: Path, out: Path, packaging: list[str]) -> list[Path]:
    """The Debian package and the archive, of the program that the wheel has."""
    place = tree / "cmake"
    depends = f"libc6 (>= {GLIBC})"
    settings = ["-USKBUILD", "-DSKBUILD=", f"-DCPACK_DEBIAN_PACKAGE_DEPENDS={depends}"]
    run("cmake", *settings, *packaging, "-S", source, "-B", place, cwd=tree)
    run("cmake", "--build", place, "--target", "backendgen", cwd=tree)
    packages = tree / "packages"
    # The parts of a Debian package have the modes of the files that cpack made of them.
    command = ["cpack", "-B", packages, "-G", "DEB;TGZ", "--config", place / "CPackConfig.cmake"]
    run(*command, cwd=tree, umask=0o022)
    found = [*packages.glob("*.deb"), *packages.glob("*.tar.gz")]
    for path in found:
        if path.name.endswith(".tar.gz"):
            repack(path)
    return [Path(shutil.move(path, out / path.name)) for path in found]


def repack(path: Path) -> None:
    """The archive again, without times and owners."""
    plain = path.with_suffix("")
    date = int(os.environ["SOURCE_DATE_EPOCH"])
    with tarfile.open(path) as packed, tarfile.open(plain, "w") as sorted_archive:
        for member in sorted(packed.getmembers(), key=lambda member: member.name):
            member.mtime = date
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            content = packed.extractfile(member) if member.isfile() else None
            sorted_archive.addfile(member, content)
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=date) as compressed:
        compressed.write(plain.read_bytes())
    plain.unlink()


if __name__ == "__main__":
    main()
