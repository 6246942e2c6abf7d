# SPDX-License-Identifier: Apache-2.0
"""Tests the device in packages that take long to install; `./dev frameworks`.

One release of PyTorch gets environments as in `./dev matrix`, with the requirements.txt beside this
file. torchvision's wheels are built for the PyTorch with CUDA, which that brings (5 to 8 GB).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "matrix"))
from matrix import Failed, Release, build_backendkit  # noqa: E402
from results import Row  # noqa: E402

VERSION = "2.14.1"  # that torchvision's wheel is for


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev frameworks", description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="where environments go")
    parser.add_argument("--with", type=Path, dest="ready", help="a Python that has the release")
    options = parser.parse_args()
    folder = options.folder.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / VERSION).mkdir(parents=True)
    row = Row(version=VERSION, python="", commit="", date="", machine="", compiler="", note="")
    release = Release(row, folder / VERSION)
    try:
        ready = options.ready and options.ready.absolute()
        release.install(Path(sys.executable), build_backendkit(folder / "backendkit"), ready)
        release.start_project()
        release.install_backend(release.build())
        wanted = ["-m", "pip", "install", "--no-deps", "-r", HERE / "requirements.txt"]
        release.need("packages", release.backend, *wanted)
        release.suite("packages", release.backend, HERE / "packages.py")
    except Failed as error:
        sys.exit(f"error: {error}")
    print(release.text("packages"))
    suite = row.suites["packages"]
    if suite.failed or suite.problem or suite.skipped:
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    sys.exit(main())
