# SPDX-License-Identifier: Apache-2.0
"""The glue of descriptions that name every operator of PyTorch compiles."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Compiler, Operator

PARTS = 4  # each takes about 2 GB


def registered(glue: Path) -> list[str]:
    """The operators with a kernel: one that is named, then those that follow from it."""
    text = "".join(path.read_text() for path in sorted(glue.glob("register_kernels_*.cpp")))
    return re.findall(r'library\.impl\("([^"]+)"', text)


def assert_compiles(glue: Path, compiler: Compiler) -> None:
    files = sorted(path.name for path in glue.glob("register_kernels_*.cpp"))
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


def test_a_kernel_for_every_operator(
    generate: Callable[[dict[str, str]], Path], compiler: Compiler, operators: list[Operator]
) -> None:
    glue = generate({one.name: f"foo::kernel_{i}" for i, one in enumerate(operators)})
    found = set(registered(glue))
    missing = [one.name for one in operators if one.name not in found]
    assert missing == []
    assert_compiles(glue, compiler)


def sources_of_variants(glue: Path, kernels: dict[str, str]) -> dict[str, list[str]]:
    """The operators with a kernel that others follow from, and these."""
    variants: dict[str, list[str]] = {}
    source = ""
    for name in registered(glue):
        if name in kernels:
            source = name
        else:
            variants.setdefault(source, []).append(name)
    return variants


def test_no_operator_gets_two_kernels(
    generate: Callable[[dict[str, str]], Path], operators: list[Operator]
) -> None:
    """PyTorch warns of a second one when the library is loaded."""
    inplace = re.compile(r"\w+_(\.\w+)?|__i\w+")
    named = [one.name for one in operators if not inplace.fullmatch(one.name)]
    glue = generate({name: f"foo::kernel_{i}" for i, name in enumerate(named)})
    names = registered(glue)
    assert len(names) > len(named) + 100
    assert [name for name in set(names) if names.count(name) > 1] == []


# Schemas without an argument that is written to; schemas with such a keyword-only one.
KINDS = {"functional": r"[^!]+", "out": r".*\*, .*Tensor\(\w!\).* -> .*"}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_variant_that_follows(
    kind: str,
    generate: Callable[[dict[str, str]], Path],
    compiler: Compiler,
    operators: list[Operator],
) -> None:
    named = [one.name for one in operators if re.fullmatch(KINDS[kind], one.schema)]
    kernels = {name: f"foo::kernel_{i}" for i, name in enumerate(named)}
    variants = sources_of_variants(generate(kernels), kernels)
    count = sum(map(len, variants.values()))
    print(f"{count} variants follow from {len(variants)} of {len(kernels)} {kind} operators")
    assert count > 400
    assert_compiles(generate({name: kernels[name] for name in variants}), compiler)
