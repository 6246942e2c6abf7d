# SPDX-License-Identifier: Apache-2.0
"""Makes and removes the environment in which `backendgen wheel --with-pip` builds for one PyTorch.

    make FOLDER REQUIREMENT LOG
    remove FOLDER

The environment has a PyTorch of its own, and sees what else this Python has, such as BackendKit
and setuptools.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from backendkit_tools.screen import fail

SHOWN_LINES = 8


def make(folder, requirement, log):
    shutil.rmtree(folder, ignore_errors=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    python = folder / "bin" / "python"
    with open(log, "w", encoding="utf-8") as file:
        for command in (
            [sys.executable, "-m", "venv", folder],
            [python, "-m", "pip", "install", "--disable-pip-version-check", requirement],
        ):
            done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0:
                lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
                tail = [line for line in lines if line.strip()][-SHOWN_LINES:]
                fail(f"pip could not install `{requirement}`", "", f"the log is {log}", *tail)
    # Only now: pip would take packages that it finds there for installed ones.
    inner = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.check_output([python, "-c", inner], text=True).strip()
    seen = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    lines = [f"import site; site.addsitedir({path!r})\n" for path in seen]
    Path(own, "seen.pth").write_text("".join(lines), encoding="utf-8")


def main():
    action, folder, *rest = sys.argv[1:]
    if action == "make":
        requirement, log = rest
        make(Path(folder), requirement, Path(log))
    elif os.path.lexists(folder):
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
