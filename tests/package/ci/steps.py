# SPDX-License-Identifier: Apache-2.0
"""Runs the CI files of a new project from checkout to the merged wheel; `./dev ci-steps`.

Takes the folder in which everything is made, and the files to run: wheels, nightly or both.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILES = {"wheels": ["--torch", "2.13.0"], "nightly": ["--nightly"]}


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    wheels, project = folder / "wheels", folder / "foo"
    for made in (wheels, project):
        shutil.rmtree(made, ignore_errors=True)
    python = [sys.executable, "-m"]
    build = [*python, "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", wheels, ROOT], check=True)
    backendgen = [*python, "backendkit"]
    subprocess.run([*backendgen, "new", project], check=True)
    for name in sys.argv[2:] or FILES:
        command = [*backendgen, "-C", project, "ci", "github", *FILES[name]]
        workflow = folder / f"{name}.yml"
        workflow.write_bytes(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        run = [sys.executable, Path(__file__).with_name("run_steps.py"), workflow]
        run += ["--project", project, "--folder", folder, "--wheels", wheels]
        if status := subprocess.run(run).returncode:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
