# SPDX-License-Identifier: Apache-2.0
"""What `backendgen generate` writes for kernels compiles, links, and is what PyTorch wants."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Compiler, Operator, PyTorch

# Operators that backends begin with, beside those that cover the types.
COMMON = """
add.out sub.out mul.out div.out mm.out bmm.out addmm.out relu gelu.out sum.IntList_out
mean.out cat.out where.self eq.Tensor_out empty.memory_format copy_ fill_.Scalar index.Tensor_out
""".split()

# Opens the library and prints the operators that then have no kernel for the device.
LOAD = """
import sys, torch
torch.ops.load_library(sys.argv[1])
for name in sys.argv[2:]:
    if not torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, "PrivateUse1"):
        print(name)
"""


def split_types(text: str) -> list[str]:
    """The parts of "A a, std::tuple<B, C> b", split at the commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def types_of(operator: Operator) -> set[str]:
    result, _, parameters = operator.numbers.partition(" (")
    types = {parameter.rpartition(" ")[0] for parameter in split_types(parameters[:-1])}
    return types | {f"-> {result}"}


def covering(operators: list[Operator]) -> list[str]:
    """Operators that together have every type of an argument and of a result there is."""
    types = {operator.name: types_of(operator) for operator in operators}
    wanted = set().union(*types.values())
    chosen = []
    while wanted:
        best = max(types, key=lambda name: len(types[name] & wanted))
        chosen.append(best)
        wanted -= types[best]
    return chosen


def define_all(header: Path) -> str:
    """A source file that defines each function that kernels.h declares."""
    text = re.sub(r"^(#.*|//.*)\n", "", header.read_text(), flags=re.MULTILINE)
    return '#include "kernels.h"\n\n#include <stdexcept>\n' + text.replace(
        ");", ') { throw std::runtime_error("not to be called"); }'
    )


def test_kernels_of_every_type_are_registered(
    generate: Callable[[dict[str, str]], Path],
    compiler: Compiler,
    pytorch: PyTorch,
    operators: list[Operator],
) -> None:
    names = list(dict.fromkeys(covering(operators) + COMMON))
    # Some are overloads of one function, which only their parameters tell apart.
    functional = {one.name for one in operators if one.numbers.startswith("at::Tensor (")}
    glue = generate(
        {
            name: "foo::overloaded" if name in functional else f"foo::kernel_{index}"
            for index, name in enumerate(names)
        }
    )
    (glue / "kernels.cpp").write_text(define_all(glue / "kernels.h"))
    (glue / "fall_back.cpp").write_text(FALL_BACK)
    sources = [*sorted(glue.glob("register_kernels_*.cpp")), "kernels.cpp", "fall_back.cpp"]
    assert len(sources) > 3
    for source in sources:
        done = compiler(glue, "-O0", "-c", source)
        assert done.returncode == 0, done.stderr
    objects = [Path(source).with_suffix(".o").name for source in sources]
    done = compiler(
        glue,
        *("-shared", "-Wl,-z,defs", "-o", "libkernels.so", *objects),
        *pytorch.link_flags,
    )
    assert done.returncode == 0, done.stderr
    loaded = pytorch.run("-c", LOAD, glue / "libkernels.so", *names)
    print(f"PyTorch {pytorch.version}: {len(names)} kernels")
    assert (loaded.returncode, loaded.stdout, loaded.stderr) == (0, "", "")


# What other glue of a backend defines: no other backend is there, and nothing falls back here.
FALL_BACK = """
#include <backendkit/call_fallback.h>
#include <backendkit/registration_problem.h>

void backendkit::call_fallback(const c10::OperatorHandle&, torch::jit::Stack*) {}
const char* backendkit::registration_problem() noexcept { return nullptr; }
"""

WRONG = {
    "a parameter, by qualified name": (
        "void foo::mm(const at::Tensor&, double, const at::Tensor&) {}",
        "foo::mm(const at::Tensor&, double, const at::Tensor&)",
    ),
    "a parameter, in the namespace": (
        "namespace foo {\nvoid mm(const at::Tensor&, double, const at::Tensor&) {}\n}",
        "foo::mm(const at::Tensor&, double, const at::Tensor&)",
    ),
    "the result": (
        "int foo::mm(const at::Tensor&, const at::Tensor&, const at::Tensor&) { return 0; }",
        "foo::mm(const at::Tensor&, const at::Tensor&, const at::Tensor&)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_signature_does_not_compile(
    case: str, generate: Callable[[dict[str, str]], Path], compiler: Compiler
) -> None:
    glue = generate({"mm.out": "foo::mm"})
    text, named = WRONG[case]
    (glue / "kernels.cpp").write_text(f'#include "kernels.h"\n\n{text}\n')
    done = compiler(glue, "-fsyntax-only", "kernels.cpp")
    assert done.returncode != 0
    # clang writes `const at::Tensor &`, and leaves the function out of some messages.
    plain = done.stderr.replace(" &", "&")
    assert named in plain or "clang" in plain
    assert re.search(r"^kernels\.cpp:[34]:\d+: error: ", done.stderr, re.MULTILINE)


def test_a_missing_kernel_does_not_link(
    generate: Callable[[dict[str, str]], Path], compiler: Compiler, pytorch: PyTorch
) -> None:
    glue = generate({"mm.out": "foo::mm"})
    done = compiler(
        glue,
        *("-O0", "-shared", "-Wl,-z,defs", "-o", "libkernels.so", "register_kernels_0.cpp"),
        *pytorch.link_flags,
    )
    assert done.returncode != 0
    missing = "foo::mm(at::Tensor const&, at::Tensor const&, at::Tensor const&)"
    assert f"undefined reference to `{missing}'" in done.stderr


def test_without_kernels_nothing_of_pytorch_is_compiled(
    generate: Callable[[dict[str, str]], Path],
) -> None:
    glue = generate({})
    assert list(glue.glob("register_kernels*")) == []
    assert "#include" not in (glue / "kernels.h").read_text()


def test_the_device_of_the_arguments_is_current_in_a_kernel(
    compiler: Compiler, pytorch: PyTorch, tmp_path: Path
) -> None:
    source = Path(__file__).parent / "kernel_guard.cpp"
    done = compiler(tmp_path, "-O0", "-o", "kernel_guard", source, *pytorch.link_flags)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([tmp_path / "kernel_guard"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        "self, then out, then the other: 1",
        "a tensor on the CPU tells nothing: 2",
        "an undefined tensor tells nothing: 3",
        "a list: 1",
        "a list of a structured kernel: 2",
        "a list of optional tensors: 3",
        "the device of a factory: 2",
        "the current device, without an index: 0",
        "nothing of ours: 0",
        "restored: 0",
        "restored after an exception: 0",
    ]
