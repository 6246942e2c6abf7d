# SPDX-License-Identifier: Apache-2.0
"""Prints what torchgen says about every operator, in the format of dump_signatures.cpp.

Runs with the Python whose PyTorch is looked at; imports torchgen, not torch.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torchgen
from torchgen.api import dispatcher
from torchgen.api import structured as api
from torchgen.api.types import Binding
from torchgen.context import native_function_manager
from torchgen.gen import get_grouped_native_functions, parse_native_yaml
from torchgen.model import NativeFunction, NativeFunctionsGroup, TensorOptionsArguments


def plain(cpp_type: str) -> str:
    """The same type as backendgen spells it: with other spaces, and without a leading `::`."""
    cpp_type = cpp_type.replace("::std::", "std::").replace(" &", "&")
    return re.sub(r",(?=\S)", ", ", cpp_type)


def signature(function: NativeFunction, *, symint: bool) -> str:
    with native_function_manager(function):
        returns = dispatcher.returns_type(function.func.returns, symint=symint).cpp_type()
        arguments = [
            f"{plain(binding.type)} {binding.name}"
            for binding in dispatcher.arguments(function.func, symint=symint)
        ]
    return f"{plain(returns)} ({', '.join(arguments)})"


def device_order(function: NativeFunction) -> list[int]:
    """The order of torchgen's own device guard, register_dispatch_key.py; it stops at the first."""
    arguments = function.func.arguments
    names = [argument.name for argument in arguments.flat_all]
    order = []
    if any(isinstance(argument, TensorOptionsArguments) for argument in arguments.non_out):
        order.append(names.index("device"))
    own = [arguments.self_arg.argument] if arguments.self_arg else []
    for argument in [*own, *arguments.out, *arguments.flat_positional]:
        if argument.type.is_tensor_like() and names.index(argument.name) not in order:
            order.append(names.index(argument.name))
    return order


def structured(group: NativeFunctionsGroup) -> str:
    """The parameters of a structured kernel, and those of its meta function.

    One difference is backendgen's own: a tensor stays beside what is worked out from it, since a
    kernel outside PyTorch has no iterator that holds it.
    """

    def words(bindings: list[Binding]) -> str:
        text = ", ".join(f"{plain(binding.type)} {binding.name}" for binding in bindings)
        # Two names of one type.
        return text.replace("at::ArrayRef<int64_t>", "at::IntArrayRef")

    with native_function_manager(group):
        kernel = api.impl_arguments(group)
        meta = api.meta_arguments(group)
    precomputed = group.out.precomputed
    for name in precomputed.replace if precomputed else ():
        kept = next(one for one in meta if one.name == name)
        if "Tensor" in kept.type and kept.name not in [one.name for one in kernel]:
            first = precomputed.replace[name][0].name
            kernel.insert([one.name for one in kernel].index(first), kept)
    return f"{words(kernel)} | {words(meta)}"


def main() -> None:
    native = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"
    parsed = parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml"))
    groups = {
        str(group.out.func.name): group
        for group in get_grouped_native_functions(parsed.native_functions)
        if isinstance(group, NativeFunctionsGroup) and group.structured
    }
    for function in parsed.native_functions:
        group = groups.get(str(function.func.name))
        row = (
            str(function.func.name),
            str(function.func),
            signature(function, symint=True),
            signature(function, symint=False),
            " ".join(map(str, device_order(function))),
            structured(group) if group else "",
        )
        sys.stdout.write("\t".join(row) + "\n")


if __name__ == "__main__":
    main()
