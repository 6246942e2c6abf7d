# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation as a site: `python site/build.py FOLDER`, or `./dev site`.

A link that leads nowhere, a missing picture or a page without a place in the nav is an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CONFIGURATION = Path(__file__).resolve().with_name("mkdocs.yml")


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: build.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1]).resolve()
    # Not --quiet: MkDocs then drops the warnings before `strict` counts them.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    # mkdocs-material prints an advertisement for its successor otherwise.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [*command, "--config-file", str(CONFIGURATION), "--site-dir", str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    told = [line for line in done.stdout.splitlines() if not line.startswith("INFO")]
    if told:
        print("\n".join(told), file=sys.stderr)
    if done.returncode == 0:
        print(folder / "index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
