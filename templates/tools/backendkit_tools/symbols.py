# SPDX-License-Identifier: Apache-2.0
"""Proves that PyTorch and the other libraries define every symbol that a backend's library needs.

A missing one would show only when a user's machine loads the library, or at the first call.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from backendkit_tools.elf import TORCH as TORCH_PATTERNS
from backendkit_tools.elf import (
    Library,
    libraries_below,
    locate,
    matches,
    read_library,
    tool_output,
)
from backendkit_tools.screen import fail

__all__ = ["check_symbols", "missing_symbols"]

#: Namespaces of PyTorch, whose symbols no other library has.
_OF_TORCH = ("at::", "c10::", "caffe2::", "torch::")


def _defined(path: Path) -> set[str]:
    text = tool_output("nm", "-D", "--defined-only", "--format=just-symbols", path)
    return {name.partition("@")[0] for name in text.split()}


def _undefined(path: Path) -> set[str]:
    """The symbols that must be found, without those that may be missing.

    A symbol with a version names its library, which the linker and repair have judged.
    """
    lines = tool_output("nm", "-D", "--undefined-only", path).splitlines()
    words = [line.split() for line in lines]
    return {name for kind, name in words if kind == "U" and "@" not in name}


def _demangled(names: list[str]) -> list[str]:
    if shutil.which("c++filt") is None:
        return names
    text = "\n".join(names)
    done = subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def missing_symbols(path: Path, roots: Sequence[Path], torch: Path) -> list[str]:
    """The symbols of a library that nothing defines, as C++ writes them.

    Its libraries are looked for in the folder `torch`, below `roots` and on this machine. Where one
    of them is not found, the symbols that may be its own are not judged.
    """
    wanted = _undefined(path)
    inside = {other.name: other for root in roots for other in libraries_below(root)}
    waiting, seen, unknown = list(read_library(path).needed), set(), False
    while waiting and wanted:
        soname = waiting.pop()
        if soname in seen:
            continue
        seen.add(soname)
        own = torch / soname
        found = own if own.is_file() else inside.get(soname) or locate(soname, path)
        if found is None:
            unknown = True
            continue
        wanted -= _defined(found)
        if matches(soname, TORCH_PATTERNS) or found != own:
            library: Library = read_library(found)
            waiting += library.needed
    names = _demangled(sorted(wanted)) if wanted else []
    return [name for name in names if not unknown or _is_of_torch(name)]


def _is_of_torch(name: str) -> bool:
    return any(part.startswith(_OF_TORCH) for part in (name, name.rpartition(" for ")[2]))


def check_symbols(member: str, root: Path, *others: Path) -> None:
    """Fails if the library `member` below `root` needs a symbol that nothing defines.

    What lies below `others` is installed beside it.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        fail("found no PyTorch, which is needed to check the library's symbols")
    missing = missing_symbols(root / member, [root, *others], Path(spec.origin).parent / "lib")
    if missing:
        release = importlib.metadata.version("torch")
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        fail(
            f"{member} needs `{missing[0]}`, which PyTorch {release} does not define{more}",
            f"build it for PyTorch {release}, and link what defines it: LIBRARIES of "
            "add_torch_backend()",
        )
