# SPDX-License-Identifier: Apache-2.0
"""A description with a kernel for every operator of PyTorch generates glue that compiles."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from conftest import Compiler, Operator

PARTS = 4  # each takes about 2 GB


def test_glue_for_every_operator_compiles(
    generate: Callable[[dict[str, str]], Path], compiler: Compiler, operators: list[Operator]
) -> None:
    glue = generate({one.name: f"foo::kernel_{i}" for i, one in enumerate(operators)})
    files = sorted(path.name for path in glue.glob("register_kernels_*.cpp"))
    registered = "".join((glue / name).read_text() for name in files)
    missing = [one.name for one in operators if f'library.impl("{one.name}"' not in registered]
    assert missing == []
    # Together, so that PyTorch's headers are read a few times and not once for each file.
    parts = []
    for part in range(PARTS):
        source = glue / f"part_{part}.cpp"
        source.write_text("".join(f'#include "{name}"\n' for name in files[part::PARTS]))
        parts.append(source.name)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda name: compiler(glue, "-O0", "-fsyntax-only", name), parts))
    for one in done:
        assert one.returncode == 0, one.stderr[-4000:]
    print(f"{len(operators)} operators in {len(files)} files")
