# SPDX-License-Identifier: Apache-2.0
"""Moves the debug information of a wheel's libraries into an archive beside it.

    debug_symbols WHEEL ARCHIVE FOLDER

rewrites WHEEL with stripped libraries, and writes ARCHIVE, a zip file with
`.build-id/12/3456.debug` for each library of FOLDER in the wheel, as gdb wants it below a
`debug-file-directory`. Each stripped library names the file, so that gdb also finds it beside the
library.
"""

from __future__ import annotations

import io
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from backendkit_tools.elf import tool_output
from backendkit_tools.repair import refresh_sbom
from backendkit_tools.screen import fail, say
from backendkit_tools.wheelfile import (
    EPOCH,
    Member,
    WheelError,
    read_wheel,
    wheel_bytes,
    write_whole,
)

__all__ = ["split"]

_BUILD_ID = re.compile(r"Build ID: ([0-9a-f]{6,})")


def split(data: bytes, name: str) -> tuple[bytes, str, bytes]:
    """A library without its debug information, the file of that below a folder, and what is in it.

    Code and data stay the same bytes at the same addresses.
    """
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "library")
        library.write_bytes(data)
        found = _BUILD_ID.search(tool_output("readelf", "-nW", library))
        if found is None or ".debug_info" not in tool_output("readelf", "-SW", library):
            fail(
                f"{name} was built without debug information or build ID",
                "build it with add_torch_backend(), whose libraries have both with "
                "`-DBACKENDKIT_DEBUG_SYMBOLS=ON`",
            )
        head, rest = found.group(1)[:2], found.group(1)[2:]
        debug = Path(folder, f"{rest}.debug")
        _objcopy("--only-keep-debug", library, debug)
        stripped = Path(folder, "stripped")
        _objcopy("--strip-all", f"--add-gnu-debuglink={debug}", library, stripped)
        return stripped.read_bytes(), f".build-id/{head}/{debug.name}", debug.read_bytes()


def _objcopy(*words: str | Path) -> None:
    command = ["objcopy", *(str(word) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fail(f"`objcopy` failed: {done.stderr.strip()}")


def _zip(files: dict[str, bytes]) -> bytes:
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH)), EPOCH)
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            archive.writestr(info, files[name], compresslevel=9)
    return output.getvalue()


def main() -> None:
    path, archive, folder = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    try:
        wheel = read_wheel(path)
    except WheelError as error:
        fail(str(error))
    files: dict[str, bytes] = {}
    for name, member in sorted(wheel.members.items()):
        if name.startswith(f"{folder}/") and member.data[:4] == b"\x7fELF":
            stripped, place, debug = split(member.data, name)
            wheel.members[name] = Member(stripped, member.mode)
            files[place] = debug
    if not files:
        fail(f"{path.name} has no library in {folder}/")
    refresh_sbom(wheel)
    write_whole(archive, _zip(files))
    write_whole(path, wheel_bytes(wheel))
    size = sum(len(data) for data in files.values()) / 2**20
    say("Split", f"debug symbols, {size:.1f} MiB")


if __name__ == "__main__":
    main()
