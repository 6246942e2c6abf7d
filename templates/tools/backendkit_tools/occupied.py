# SPDX-License-Identifier: Apache-2.0
"""Whether a wheel for other releases of PyTorch has the name of the one that is to be written.

The arguments are FOLDER DISTRIBUTION VERSION MINORS, the latter with commas between. A wheel's name
does not say for which PyTorch it is, so the wheels for two releases have one name.
"""

from __future__ import annotations

import platform
import sys
import zipfile
from pathlib import Path

from backendkit_tools.releases import after, listed, order, releases_among
from backendkit_tools.screen import say


def releases_of(path: Path) -> list[str]:
    """The releases that a wheel is for; none where it cannot be read, and is no loss."""
    try:
        with zipfile.ZipFile(path) as archive:
            return releases_among(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return []


def refuse_loss(path: Path, minors: list[str]) -> None:
    """Ends the tool with an error if `path` is a wheel for releases that are not among `minors`."""
    found = releases_of(path)
    if set(found) <= set(minors):
        return
    ends = sorted({*found, *minors}, key=order)
    row = [ends[0]]  # without holes, which would be an error
    while order(row[-1]) < order(ends[-1]):
        row.append(after(row[-1]) if order(row[-1])[0] == order(ends[-1])[0] else ends[-1])
    both = ",".join(row)
    say("error", f"{path} is for PyTorch {listed(found)}, and would be replaced by the wheel for "
        f"PyTorch {listed(minors)}, which has the same name")  # fmt: skip
    say("help", f"build one wheel for all: `backendgen wheel --torch {both}`")
    say(
        "help", f"or join them: write it elsewhere with `--out`, then `backendgen merge {path} ...`"
    )
    say("help", "or add the release to the name: `backendgen wheel --local-version`")
    raise SystemExit(1)


def main() -> None:
    folder, distribution, version, minors = sys.argv[1:]
    pattern = f"{distribution}-{version}-py3-none-*{platform.machine()}.whl"
    for path in sorted(Path(folder).glob(pattern)):
        refuse_loss(path, minors.split(","))


if __name__ == "__main__":
    main()
