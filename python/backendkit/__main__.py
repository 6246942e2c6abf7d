# SPDX-License-Identifier: Apache-2.0
"""The command `backendgen` of a pip installation: runs the program."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn

from backendkit import executable


def main() -> NoReturn:
    """Runs backendgen with this process's arguments; does not return."""
    program = executable()
    if sys.platform == "win32":
        sys.exit(subprocess.call([program, *sys.argv[1:]]))
    os.execv(program, ["backendgen", *sys.argv[1:]])


if __name__ == "__main__":
    main()
