# SPDX-License-Identifier: Apache-2.0
"""Names that C++ cannot have beside the headers of C, POSIX and PyTorch are refused by `check`.

A compiler finds them: it is given a namespace, or a function in a namespace, of each name that the
headers hold.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[3]
FAKE = ROOT / "tests" / "generator" / "golden" / "fake_torch" / "torch"
INCLUDES = [Path(torch.__file__).parent / "include", ROOT / "include"]
FLAGS = ["-std=c++20", "-D_GNU_SOURCE", "-w", *(f"-isystem{folder}" for folder in INCLUDES)]

FIRST = 5  # the line of the first kernel in a description

C = """assert complex ctype errno fenv float inttypes limits locale math setjmp signal stdarg stddef
stdint stdio stdlib string time uchar wchar wctype"""
POSIX = """aio arpa/inet dirent dlfcn fcntl fnmatch ftw glob grp iconv langinfo libgen mqueue net/if
netdb netinet/in netinet/tcp poll pthread pwd regex sched search semaphore spawn strings sys/ipc
sys/mman sys/msg sys/resource sys/select sys/sem sys/shm sys/socket sys/stat sys/statvfs sys/time
sys/times sys/types sys/uio sys/un sys/utsname sys/wait syslog termios unistd utime wordexp"""
LINUX = "sys/ioctl sys/epoll sys/eventfd sys/sysmacros"

# What the glue includes, besides standard headers.
GLUE = """ATen/core/dispatch/Dispatcher.h ATen/ops/empty.h c10/core/DeviceGuard.h torch/library.h
backendkit/runtime.h"""


def headers(*lists: str, end: str = ".h") -> str:
    names = [name for one in lists for name in one.split()]
    return "".join(f"#include <{name}{end}>\n" for name in names)


def compile_errors(source: str, folder: Path) -> set[int]:
    """The lines after the marker `# 1 "names"` of a source that the compiler complains about."""
    path = folder / "names.cpp"
    path.write_text(source, encoding="utf-8")
    command = ["g++", *FLAGS, "-fsyntax-only", "-fmax-errors=0", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {int(line) for line in re.findall(r"^names:(\d+):", done.stderr, re.MULTILINE)}


def preprocess(source: str, flag: str, folder: Path) -> str:
    path = folder / "headers.cpp"
    path.write_text(source, encoding="utf-8")
    done = subprocess.run(
        ["g++", *FLAGS, "-E", flag, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def macros(source: str, folder: Path) -> dict[str, bool]:
    """The names of all macros, and whether each takes arguments."""
    lines = preprocess(source, "-dM", folder)
    found = re.findall(r"^#define (\w+)(\(?)", lines, re.MULTILINE)
    return {name: bool(call) for name, call in found if not reserved(name)}


def reserved(name: str) -> bool:
    """C++ keeps such names for itself; others that start with `_` are a compiler's intrinsics."""
    return "__" in name or name.startswith("_")


def accepted(functions: list[str], folder: Path) -> list[str]:
    """Those that `check` has nothing against as the function of a kernel."""
    left = []
    for start in range(0, len(functions), 50):
        some = functions[start : start + 50]
        lines = ['[backend]\nname = "kite"\nversion = "0.1.0"\n[operators.kernels]']
        lines += [f'"x{number}" = "{name}"' for number, name in enumerate(some)]
        (folder / "backend.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [os.environ["BACKENDGEN"], "check", "--torch", str(FAKE)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        # Where the function stands, which is after the operator: that is unknown, too.
        places = re.findall(r"--> backend.toml:(\d+):(\d+)", done.stderr)
        refused = {int(line) - FIRST for line, column in places if column != "1"}
        left += [name for number, name in enumerate(some) if number not in refused]
    return left


def test_the_probe_sees_what_it_should(tmp_path: Path) -> None:
    source = headers(C) + '# 1 "names"\nnamespace kite {}\nnamespace errno {}\nnamespace time {}\n'
    assert compile_errors(source, tmp_path) == {2, 3}
    assert accepted(["kite::add", "kite::relu"], tmp_path) == ["kite::add", "kite::relu"]


def test_namespaces(tmp_path: Path) -> None:
    """A device's name is one, by default."""
    source = headers(C, POSIX, LINUX)
    known = macros(source, tmp_path)
    words = set(re.findall(r"\b[a-z]+(?:_[a-z]+)*\b", preprocess(source, "-P", tmp_path)))
    words = {word for word in words if known.get(word, True)}
    keywords = accepted([f"kite::{word}" for word in sorted(words)], tmp_path)
    names = [name.removeprefix("kite::") for name in keywords]
    lines = "".join(f"namespace {name} {{}}\n" for name in names)
    broken = compile_errors(f'{source}# 1 "names"\n{lines}', tmp_path)
    wrong = [f"{names[line - 1]}::add" for line in sorted(broken)]
    wrong += [f"{name}::add" for name, call in known.items() if not call and name.islower()]
    assert len(wrong) > 1000
    assert accepted(wrong, tmp_path) == []


@pytest.mark.parametrize("included", ["C", "POSIX", "glue"])
def test_functions(included: str, tmp_path: Path) -> None:
    """Of macros that POSIX adds, those in capitals are left to the compiler: there are 5,000."""
    source = {"C": headers(C), "POSIX": headers(C, POSIX, LINUX), "glue": headers(GLUE, end="")}[
        included
    ]
    names = sorted(macros(source, tmp_path))
    if included == "POSIX":
        names = [name for name in names if not name.isupper()]
    lines = "".join(
        f"namespace kite {{ T& {name}(const T&, T&); inline auto* p{number} = &kite::{name}; }}\n"
        for number, name in enumerate(names)
    )
    broken = compile_errors(f'{source}struct T {{}};\n# 1 "names"\n{lines}', tmp_path)
    wrong = [f"kite::{names[line - 1]}" for line in sorted(broken)]
    assert len(wrong) > 50
    assert accepted(wrong, tmp_path) == []
