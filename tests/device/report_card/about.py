# SPDX-License-Identifier: Apache-2.0
"""What was tested and where: the facts that each result file and each card names."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

#: Variables that change what a run does, apart from those of the device; values may be shown.
_VARIABLES = re.compile(
    r"(BACKENDKIT_(?!TEST_|BUILD$|CACHE$)|PYTORCH_|TORCH_)\w+|PYTEST_ADDOPTS|SOURCE_DATE_EPOCH"
)
#: By which device_tests.py says what its user typed.
ARGUMENTS = "BACKENDKIT_DEVICE_TESTS_ARGUMENTS"


def release(version: str) -> str:
    """`2.13.0` of `2.13.0+cpu`."""
    return version.partition("+")[0]


def package_of(device: str) -> tuple[str, str]:
    """The name and version of the package that has the device; empty where nothing tells."""
    module = getattr(torch, device, None)
    inner = getattr(module, "__name__", "")
    build = sys.modules.get(f"{inner.rpartition('.')[0]}._build")
    if build is not None:
        return build.PACKAGE, build.VERSION
    root = inner.partition(".")[0]
    for package in importlib.metadata.packages_distributions().get(root, []):
        return package, importlib.metadata.version(package)
    return root, ""


def backendkit() -> str:
    """The version of BackendKit that is installed here; empty if there is none."""
    try:
        return importlib.metadata.version("backendkit")
    except importlib.metadata.PackageNotFoundError:
        return ""


def about(device: str) -> dict[str, str]:
    """What a result file has to name. Calls no driver."""
    package, version = package_of(device)
    libc = " ".join(platform.libc_ver())
    return {
        "device": device,
        "package": package,
        "version": version,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}" + (f", {libc}" if libc else ""),
        "backendkit": backendkit(),
        "date": date(),
    }


def date() -> str:
    """Now, or the time that SOURCE_DATE_EPOCH names. Raises ValueError if that is no time."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        now = datetime.datetime.now(datetime.timezone.utc)
        time = now if given is None else datetime.datetime.fromtimestamp(int(given), now.tzinfo)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"SOURCE_DATE_EPOCH is not a number of seconds: `{given}`") from None
    return time.strftime("%Y-%m-%d %H:%M UTC")


def command_line(device: str, words: Sequence[str], variables: Mapping[str, str]) -> str:
    """What to type to make the same run, with the variables that steer it.

    Of the device's own variables only those of the simulator are shown with their values: a
    licence key may be among the others.
    """
    own = f"{device.upper()}_"
    shown = []
    for name, value in sorted(variables.items()):
        if name == ARGUMENTS:
            continue
        if _VARIABLES.fullmatch(name) or name.startswith(f"{own}SIMULATOR_"):
            shown.append(f"{name}={shlex.quote(value)}")
        elif name.startswith(own):
            shown.append(f"{name}=...")
    return " ".join([*shown, shlex.join(words)])


def write_whole(path: Path, text: str) -> None:
    """Replaces a file; another process sees the old text or the new one. Raises OSError."""
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def why_not_writable(path: Path) -> str:
    """Why `write_whole` cannot write there; empty if it can. Leaves nothing there."""
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        return str(error.strerror)
    os.close(handle)
    os.unlink(beside)
    return ""


def as_json(document: Any) -> str:
    """The text of a JSON file; the same for equal documents."""
    return json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"
