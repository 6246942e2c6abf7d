# SPDX-License-Identifier: Apache-2.0
"""PyTorch: found, whole, and of a release that works."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backendkit_tools.doctor_dists import constants, numbers
from backendkit_tools.doctor_elf import Loaded, damage, list_libraries
from backendkit_tools.doctor_python import Python
from backendkit_tools.doctor_report import Wishes, bad, doubtful, good, shown

__all__ = ["Torch", "judge"]

_LIBRARIES = ("libc10.so", "libtorch_cpu.so", "libtorch.so")


@dataclass(frozen=True)
class Torch:
    folder: Path
    version: str  # "2.13.0+cpu"; "" if it does not say
    loaded: Loaded | None  # what libtorch_cpu needs; None if it is broken
    whole: bool

    @property
    def minor(self) -> str:
        return ".".join(map(str, numbers(self.version)[:2]))

    @property
    def libraries(self) -> str:
        return str(self.folder / "lib")


def _reinstall(python: Python, version: str) -> str:
    release = version.split("+")[0] or "X.Y.Z"
    return f"`{python.executable} -m pip install --force-reinstall --no-deps torch=={release}`"


def judge(python: Python, wishes: Wishes) -> Torch | None:
    places = [Path(path, "torch") for path in python.paths if Path(path, "torch").is_dir()]
    folders = [place for place in places if _is_torch(place)]
    if not folders:
        bad(
            "torch",
            "torch",
            f"found no PyTorch in {shown(python.executable)}",
            f"`{python.executable} -m pip install torch`",
        )
        return None
    folder = folders[0]
    _judge_copies(python, folders)
    _judge_here(folder)
    version, facts = _version(folder, python)
    whole = _judge_release(python, version, wishes) and version != ""
    whole = _judge_metadata(python, folder, version) and whole
    whole = _judge_files(python, folder, version) and whole
    loaded = _judge_libraries(python, folder, version) if whole else None
    if whole and loaded is not None:
        kind = next((f"{name} {facts[name]}" for name in ("cuda", "hip") if facts.get(name)), "CPU")
        abi = _abi(folder)
        good("torch", "torch", f"{version}, {kind}{abi}, {shown(str(folder))}")
    return Torch(folder, version, loaded, whole and loaded is not None)


def _is_torch(folder: Path) -> bool:
    return any(folder.joinpath(part).exists() for part in ("version.py", "lib", "__init__.py"))


def _judge_copies(python: Python, folders: list[Path]) -> None:
    used = folders[0]
    for other in folders[1:]:
        if os.path.realpath(other) == os.path.realpath(used):
            continue
        from_variable = str(used.parent) in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        doubtful(
            "torch.copies",
            "torch",
            f"two are on Python's path: {used} is used, {other} is hidden",
            "`unset PYTHONPATH`" if from_variable else f"`rm -r {used}`, or that of {other.parent}",
            "what was built for the hidden one meets the other",
        )


def _judge_here(used: Path) -> None:
    here = Path.cwd() / "torch"
    shadows = [here.with_suffix(".py"), here / "__init__.py"]
    if os.path.realpath(here) == os.path.realpath(used):
        return
    for shadow in shadows:
        if shadow.is_file():
            doubtful(
                "torch.hidden",
                "torch",
                f"{shadow} hides the installed PyTorch from a Python that starts here",
                "`cd ..`",
            )


def _version(folder: Path, python: Python) -> tuple[str, dict[str, Any]]:
    path = folder / "version.py"
    try:
        facts = constants(path)
    except (OSError, SyntaxError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"{error}"
        dist = python.dist("torch")
        bad(
            "torch.version",
            "torch",
            f"{path} cannot be read: {reason}",
            _reinstall(python, dist.version if dist else ""),
        )
        return "", {}
    version = str(facts.get("__version__", ""))
    if not numbers(version):
        dist = python.dist("torch")
        bad(
            "torch.version",
            "torch",
            f"{path} has no version",
            _reinstall(python, dist.version if dist else ""),
        )
        return "", facts
    return version, facts


def _judge_release(python: Python, version: str, wishes: Wishes) -> bool:
    minor = numbers(version)[:2]
    if version and minor < numbers(wishes.oldest):
        bad(
            "torch.release",
            "torch",
            f"{version} is too old: a backend needs {wishes.oldest} or newer",
            f"`{python.executable} -m pip install --upgrade torch`",
            "older releases load no backend when torch is imported",
        )
        return False
    if version and minor > numbers(wishes.newest):
        doubtful(
            "torch.release",
            "torch",
            f"{version} is newer than {wishes.newest}, the newest release that this BackendKit "
            "was tested with",
            f"`{python.executable} -m pip install --upgrade backendkit`",
        )
    return True


def _judge_metadata(python: Python, folder: Path, version: str) -> bool:
    dist = next(
        (d for d in python.dists if d.name == "torch" and d.folder.parent == folder.parent), None
    )
    if dist is None:
        doubtful(
            "torch.metadata",
            "torch",
            f"{folder} was not installed by pip: nothing beside it says which release it is",
            f"`{python.executable} -m pip install torch=={version.split('+')[0]}`",
            "pip installs another PyTorch with the first package that requires one",
        )
    elif version and dist.version.split("+")[0] != version.split("+")[0]:
        bad(
            "torch.metadata",
            "torch",
            f"pip installed {dist.version}, but the files are of {version}",
            _reinstall(python, dist.version),
            "an installation stopped midway, or one was copied over another",
        )
        return False
    return True


def _judge_files(python: Python, folder: Path, version: str) -> bool:
    help_ = _reinstall(python, version)
    operators = folder.parent / "torchgen/packaged/ATen/native/native_functions.yaml"
    source = folder.parent / "aten/src/ATen/native/native_functions.yaml"
    whole = True
    if not operators.is_file() and not source.is_file():
        bad(
            "torch.torchgen",
            "torch",
            f"the list of its operators is missing: {operators}",
            help_,
            "backendgen reads it to generate a backend",
        )
        whole = False
    tag = f"cpython-{sys.version_info[0]}{sys.version_info[1]}"
    extensions = sorted(path.name for path in folder.glob("_C*.so"))
    if extensions and not any(tag in name or "abi3" in name for name in extensions):
        bad(
            "torch.python",
            "torch",
            f"is for another Python: it has {extensions[0]}, and this is {tag}",
            help_,
        )
        whole = False
    for name in _LIBRARIES:
        path = folder / "lib" / name
        problem = "is missing" if not path.exists() else damage(path)
        if problem:
            bad("torch.library", "torch", f"{path} {problem}", help_)
            whole = False
    dist = python.dist("torch")
    missing = []
    if whole and dist is not None and dist.folder.parent == folder.parent:
        for path, _, size in dist.record():
            if path.suffix == ".pyc":
                continue
            try:
                same = not size or path.stat().st_size == int(size)
            except (OSError, ValueError):
                same = False
            if not same:
                missing.append(path)
    if missing:
        bad(
            "torch.files",
            "torch",
            f"{len(missing)} of its files missing or changed, such as {missing[0]}",
            help_,
        )
        whole = False
    return whole


def _judge_libraries(python: Python, folder: Path, version: str) -> Loaded | None:
    loaded = list_libraries(str(folder / "lib" / "libtorch_cpu.so"), [])
    if loaded.trouble:
        doubtful(
            "torch.loader",
            "torch",
            f"its libraries could not be checked: {loaded.trouble}",
            f'`{python.executable} -c "import torch"` shows whether they load',
        )
        return loaded
    for name, who in loaded.missing.items():
        bad(
            "torch.loader",
            "torch",
            f"{name} is missing",
            _reinstall(python, version),
            f"{who or 'libtorch_cpu.so'} needs it",
        )
    for wanted, library, who in loaded.versions:
        bad(
            "torch.loader",
            "torch",
            f"needs {wanted} of {library}, which is older here",
            "use a newer system, or an older PyTorch",
            f"{who} needs it",
        )
    return None if loaded.missing or loaded.versions else loaded


def _abi(folder: Path) -> str:
    """Which std::string its libraries take; c10::Error(SourceLocation, std::string) shows it."""
    try:
        data = (folder / "lib" / "libc10.so").read_bytes()
    except OSError:
        return ""
    constructor = b"_ZN3c105ErrorC1ENS_14SourceLocationE"
    if constructor + b"NSt7__cxx11" in data:
        return ", C++11 ABI"
    return ", old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0)" if constructor + b"Ss" in data else ""
