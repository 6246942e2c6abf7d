# SPDX-License-Identifier: Apache-2.0
"""Whether a wheel for other releases of PyTorch has the name of the one that is to be written.

The arguments are FOLDER DISTRIBUTION VERSION MINORS TESTED. The last two are releases of PyTorch
with commas between: those of the wheel, and those that BackendKit is tested with. A wheel's name
does not say for which PyTorch it is, so the wheels for two releases have one name.
"""

from __future__ import annotations

import sys
import sysconfig
import zipfile
from pathlib import Path

from backendkit_tools.releases import listed, releases_among, row
from backendkit_tools.screen import say


def releases_of(path: Path) -> list[str]:
    """The releases that a wheel is for; none where it cannot be read, and is no loss."""
    try:
        with zipfile.ZipFile(path) as archive:
            return releases_among(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return []


def architecture() -> str:
    """That of the wheel to be built, at the end of its platform tag, where setuptools finds it too:
    what Python builds for is another machine than this one if _PYTHON_HOST_PLATFORM says so."""
    return sysconfig.get_platform().rpartition("-")[2]


def refuse_loss(path: Path, minors: list[str], tested: list[str]) -> None:
    """Ends the tool with an error if `path` is a wheel for releases that are not among `minors`."""
    found = releases_of(path)
    if set(found) <= set(minors):
        return
    both = ",".join(row([*found, *minors], tested))  # without holes, which would be an error
    say("error", f"{path} is for PyTorch {listed(found)}, and would be replaced by the wheel for "
        f"PyTorch {listed(minors)}, which has the same name")  # fmt: skip
    say("help", f"build one wheel for all: `backendgen wheel --torch {both}`")
    say(
        "help", f"or join them: write it elsewhere with `--out`, then `backendgen merge {path} ...`"
    )
    say("help", "or add the release to the name: `backendgen wheel --local-version`")
    raise SystemExit(1)


def main() -> None:
    folder, distribution, version, minors, tested = sys.argv[1:]
    pattern = f"{distribution}-{version}-py3-none-*{architecture()}.whl"
    for path in sorted(Path(folder).glob(pattern)):
        refuse_loss(path, minors.split(","), tested.split(","))


if __name__ == "__main__":
    main()
