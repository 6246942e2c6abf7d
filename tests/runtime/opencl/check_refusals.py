# SPDX-License-Identifier: Apache-2.0
"""Kernels take numbers as PyTorch's kernels of the CPU do: dtypes, and what is too large for one.

For each operator of PyTorch's samples, dtypes that PyTorch does not compute are refused on the
device too. Prints how many calls differ.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

Call = tuple[str, Callable[[str], object]]
DTYPES = (torch.int64, torch.int32, torch.bool)
#: Of what a program writes as a number; `x` and `i` are tensors of float32 and int32.
NUMBERS = """
    x + 1e300 | x - 1e300 | x * 1e300 | x / 1e300 | x < 1e300 | x == 1e39 | x.abs() ** 1e300
    1e300 ** x.abs() | x.half() + 1e300 | x.half() * 70000.0 | x.half() < 70000.0
    x.bfloat16() - 1e300 | i + 2**40 | i * 2**31 | i - 2**63 | i == 2**40 | i < 2**40
    torch.maximum(x, torch.tensor(1e300, dtype=torch.float64)) | i ** 2**40
    x.add(x, alpha=1e300) | i.add(i, alpha=2**40) | x.addcmul(x, x, value=1e300)
    x.masked_fill(x > 0, 1e39) | x.half().masked_fill(x > 0, 70000.0) | x.fill_(1e39)
    x.half().fill_(70000.0) | x.half().fill_(torch.tensor(70000.0)) | i.fill_(2**40)
    x.bfloat16().fill_(1e300) | x.clamp(max=1e300) | i.clamp(max=2**40) | x.lerp(x, 1e300)
    torch.nn.functional.leaky_relu(x, 1e300) | torch.nn.functional.elu(x, 1e300)
    torch.nn.functional.hardtanh(x, -1e300, 1e300) | x.fill_(x[1]) | x.fill_(x[:1])
    x.fill_(torch.tensor(2.5)) | i.fill_(torch.tensor(2.5)) | i.long() - 2**63
    x[None].addmm(x[None], x.diag(), beta=1e300)
    x.new_zeros(0, 3).index_select(0, i.new_zeros(1)) | x.new_zeros(0, 0).index_select(1, i)
    torch.nn.functional.embedding(i.new_zeros(1), x.new_zeros(0, 3))
"""


def outcome(call: Callable[[str], object], device: str) -> object:
    """The values, or the kind and the text of an error."""
    torch.manual_seed(0)
    try:
        result = call(device)
        return result.cpu().tolist() if isinstance(result, torch.Tensor) else "values"
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        return type(error).__name__, str(error)


def of_numbers() -> Iterator[Call]:
    for text in (one.strip() for line in NUMBERS.splitlines() for one in line.split(" | ")):
        if not text:
            continue

        def call(device: str, text: str = text) -> object:
            x = torch.tensor([1.0, -2.0, 3.0], device=device)
            return eval(text, {"torch": torch, "x": x, "i": x.int()})

        yield text, call


def of_dtypes() -> Iterator[Call]:
    for op in op_db:
        known = op.supported_dtypes("cpu")
        if torch.float32 not in known:
            continue
        sample = next(iter(op.sample_inputs("cpu", torch.float32)))
        for dtype in DTYPES:
            if dtype in known:
                continue

            def call(device: str, op=op, sample=sample, dtype=dtype) -> object:
                def moved(one: object) -> object:
                    if not isinstance(one, torch.Tensor):
                        return one
                    return (one.to(dtype) if one.is_floating_point() else one).to(device)

                op(
                    moved(sample.input),
                    *tree_map(moved, sample.args),
                    **tree_map(moved, sample.kwargs),
                )
                return None

            yield f"{op.full_name} {dtype}", call


def main() -> int:
    warnings.simplefilter("ignore")
    count, different = 0, []
    for what, call in of_numbers():
        count += 1
        expected, found = outcome(call, "cpu"), outcome(call, "ocl")
        if expected != found:
            different.append(f"{what}: {found}, expected {expected}")
    for what, call in of_dtypes():
        expected = outcome(call, "cpu")
        if expected == "values" or expected[0] != "NotImplementedError":
            continue
        count += 1
        found = outcome(call, "ocl")
        if found == "values" or found[0] != "NotImplementedError":
            different.append(f"{what}: {found}, expected {expected}")
    print("\n".join(different), end="\n" * bool(different))
    print(f"{count} calls, {len(different)} differ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
