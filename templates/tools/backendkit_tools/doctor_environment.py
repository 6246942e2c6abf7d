# SPDX-License-Identifier: Apache-2.0
"""Variables, conda, and libraries that are there twice."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from backendkit_tools.doctor_backends import Backend
from backendkit_tools.doctor_python import Python
from backendkit_tools.doctor_report import bad, doubtful, good
from backendkit_tools.doctor_torch import Torch

__all__ = ["judge"]

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
#: The variables that a backend reads, with the values that they may have.
_KNOWN = {"BACKENDKIT_FALLBACK": ("warn", "error"), "BACKENDKIT_SKIP_HANDSHAKE": ("0", "1")}
#: What BackendKit's own tests and CMake package use.
_OURS = re.compile(r"BACKENDKIT_(TEST_\w+|CACHE|BUILD)")
_OPENMP = ("libgomp", "libomp", "libiomp5")


def judge(python: Python, torch: Torch | None, backends: list[Backend]) -> None:
    found = [
        _judge_autoload(backends),
        *(_judge_own(name, value) for name, value in sorted(os.environ.items())),
        _judge_preload(),
        _judge_search_path(torch),
        _judge_conda(python),
        _judge_copies(torch, backends),
    ]
    if not any(found):
        good("environment", "environment", "no variable changes how backends load")


def _judge_autoload(backends: list[Backend]) -> bool:
    value = os.environ.get(_AUTOLOAD, "1")
    if value == "1":
        return False
    judge_it = bad if backends else doubtful
    judge_it(
        "environment.autoload",
        "environment",
        f"{_AUTOLOAD}={value} is set",
        f"`unset {_AUTOLOAD}`",
        "`import torch` loads no backend: a program must import its package, as torch_foo",
    )
    return True


def _judge_own(name: str, value: str) -> bool:
    near = difflib.get_close_matches(name, [*_KNOWN, _AUTOLOAD], 1, 0.8)
    if name in _KNOWN:
        if value not in (*_KNOWN[name], ""):
            doubtful(
                "environment.value",
                "environment",
                f"{name} has the unknown value `{value}`, which is ignored",
                f"`unset {name}`, or set it to {' or '.join(_KNOWN[name])}",
            )
            return True
        meaning = {
            ("BACKENDKIT_SKIP_HANDSHAKE", "1"): "a backend loads into a PyTorch that it was not "
            "built for, and may crash",
            ("BACKENDKIT_FALLBACK", "error"): "an operator without a kernel raises an error",
            ("BACKENDKIT_FALLBACK", "warn"): "an operator without a kernel warns",
        }.get((name, value))
        if meaning:
            text = f"{name}={value} is set"
            doubtful("environment.value", "environment", text, f"`unset {name}`", meaning)
        return meaning is not None
    unknown = name.startswith("BACKENDKIT_") and not _OURS.fullmatch(name)
    if not unknown and (not near or name == _AUTOLOAD):
        return False
    doubtful(
        "environment.unknown",
        "environment",
        f"nothing reads {name}",
        f"did you mean {near[0]}? `unset {name}`" if near else f"`unset {name}`",
        f"the variables are {', '.join([*_KNOWN, _AUTOLOAD])}",
    )
    return True


def _judge_preload() -> bool:
    wrong = False
    for entry in re.split(r"[ :]+", os.environ.get("LD_PRELOAD", "")):
        name = os.path.basename(entry)
        if entry and "/" in entry and not os.path.exists(entry):
            text = f"LD_PRELOAD names {entry}, which is not there"
            doubtful("environment.preload", "environment", text, "`unset LD_PRELOAD`")
            wrong = True
        elif re.match(r"lib(torch|c10|stdc\+\+|gomp|omp|iomp5)", name):
            doubtful(
                "environment.preload",
                "environment",
                f"LD_PRELOAD puts {entry} before the one that PyTorch brings or needs",
                "`unset LD_PRELOAD`",
            )
            wrong = True
    return wrong


def _judge_search_path(torch: Torch | None) -> bool:
    wrong = False
    for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        if torch is not None and os.path.realpath(folder) == os.path.realpath(torch.libraries):
            continue
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue  # the loader skips it too
        others = [n for n in names if re.match(r"lib(torch(_cpu|_cuda|_python)?|c10)\.so", n)]
        runtimes = [n for n in names if re.match(r"lib(stdc\+\+|gomp|omp|iomp5)\.so", n)]
        if others:
            bad(
                "environment.search_path",
                "environment",
                f"LD_LIBRARY_PATH brings another PyTorch: {folder}/{others[0]}",
                "`unset LD_LIBRARY_PATH`",
            )
        elif runtimes:
            doubtful(
                "environment.search_path",
                "environment",
                f"LD_LIBRARY_PATH brings another {runtimes[0]}, in {folder}",
                "`unset LD_LIBRARY_PATH`",
            )
        wrong = wrong or bool(others or runtimes)
    return wrong


def _judge_conda(python: Python) -> bool:
    prefix = os.environ.get("CONDA_PREFIX", "")
    if prefix and os.path.realpath(prefix) != os.path.realpath(python.prefix):
        doubtful(
            "environment.conda",
            "environment",
            f"the conda environment {prefix} is active, but this Python is of {python.prefix}",
            "`conda deactivate`, or name the other Python: `--python EXE`",
        )
        return True
    names = [path.name for path in sorted(Path(python.prefix, "conda-meta").glob("*.json"))]
    mixed = [n for n in names if re.match(r"(pytorch|libtorch|llvm-openmp|intel-openmp|mkl)-\d", n)]
    dist = python.dist("torch")
    if mixed and dist is not None and (dist.read("INSTALLER") or "").strip() == "pip":
        doubtful(
            "environment.conda",
            "environment",
            f"pip installed PyTorch next to conda's {mixed[0][: -len('.json')]}",
            f"`conda remove {mixed[0].rpartition('-')[0].rpartition('-')[0]}`",
            "both bring libraries of the same names, and one process gets one of each",
        )
        return True
    return False


def _judge_copies(torch: Torch | None, backends: list[Backend]) -> bool:
    """Libraries that one process would have twice."""
    if torch is None or torch.loaded is None:
        return False
    wrong = False
    for backend in backends:
        for kinds in (_OPENMP, ("libstdc++",)):
            pattern = re.compile(rf"({'|'.join(map(re.escape, kinds))})[.-]")
            both = {**torch.loaded.paths, **backend.paths}
            own = {os.path.realpath(p) for p in torch.loaded.paths.values()}
            found = {os.path.realpath(p) for n, p in both.items() if pattern.match(n)}
            if len(found) > 1 and not found <= own:
                doubtful(
                    "environment.copies",
                    backend.dist.name,
                    f"would load a second {kinds[0]}: {' and '.join(sorted(found))}",
                    "build the wheel without it: exclude it from what the repair bundles",
                    "two OpenMP or C++ libraries in a process may hang or crash it",
                )
                wrong = True
    return wrong
