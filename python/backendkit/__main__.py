# SPDX-License-Identifier: Apache-2.0
"""`python -m backendkit`: says where the parts of BackendKit are, or runs backendgen."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import NoReturn

import backendkit


def main() -> NoReturn:
    """Answers this process's arguments, or runs backendgen with them; does not return."""
    words = sys.argv[1:]
    parser = argparse.ArgumentParser(
        prog="python -m backendkit",
        description="Says where the parts of BackendKit are, for CMake and other build systems.",
        epilog="Any other arguments are backendgen's: `python -m backendkit new foo`.",
        allow_abbrev=False,
    )
    parser.add_argument("--cmake-dir", action="store_true", help="the folder for BackendKit_DIR")
    parser.add_argument("--include-dir", action="store_true", help="the folder of backendkit/*.h")
    parser.add_argument("--version", action="store_true", help="the version of the package")
    if words and words[0] in ("--cmake-dir", "--include-dir", "--version", "-h", "--help"):
        asked = parser.parse_args(words)
        if asked.cmake_dir:
            print(backendkit.cmake_dir())
        if asked.include_dir:
            print(backendkit.include_dir())
        if asked.version:
            print(backendkit.__version__)
        sys.exit(0)
    program = backendkit.executable()
    if sys.platform == "win32":
        sys.exit(subprocess.call([program, *words]))
    os.execv(program, ["backendgen", *words])


if __name__ == "__main__":
    main()
