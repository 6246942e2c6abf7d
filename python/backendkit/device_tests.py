# SPDX-License-Identifier: Apache-2.0
"""Runs BackendKit's tests of a device on the backend that is installed in this Python.

    python -m backendkit.device_tests --device foo
    python -m backendkit.device_tests --device foo --report card.html

Arguments are pytest's; files of the suite are named without their folder, as in
`test_streams.py::test_wait_stream`. Needs pytest and PyTorch in the same Python.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import NoReturn

from backendkit import device_tests_dir

__all__ = ["main"]


def main() -> NoReturn:
    """Runs pytest with this process's arguments; does not return."""
    if importlib.util.find_spec("pytest") is None:
        sys.exit("error: found no pytest\nhelp: pip install pytest")
    folder = device_tests_dir()
    chosen = [_in(folder, argument) for argument in sys.argv[1:]]
    if chosen == sys.argv[1:]:
        chosen.append(folder)
    # The suite's folder may be read-only, so pytest writes no cache there.
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", folder]
    # A report card shows what was typed here, and not the command above.
    told = {**os.environ, "BACKENDKIT_DEVICE_TESTS_ARGUMENTS": json.dumps(sys.argv[1:])}
    sys.exit(subprocess.call([*command, *chosen], env=told))


def _in(folder: str, argument: str) -> str:
    """The path of a file of the suite, if the argument names one; otherwise the argument."""
    path = os.path.join(folder, argument)
    return path if os.path.isfile(path.partition("::")[0]) else argument


if __name__ == "__main__":
    main()
