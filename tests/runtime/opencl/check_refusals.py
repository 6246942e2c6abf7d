# SPDX-License-Identifier: Apache-2.0
"""Kernels take numbers as PyTorch's kernels of the CPU do: dtypes, and what is too large for one.
They take memory as the CPU's kernels do, too: tensors that share it, or have it elsewhere.

For each operator of PyTorch's samples, dtypes that PyTorch does not compute are refused on the
device too. Prints how many calls differ.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterator

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

Call = tuple[str, Callable[[str], object]]
DTYPES = (torch.int64, torch.int32, torch.bool)
#: Of what a program writes as a number; `x`, `i`, `h`, `b` are of float32, int32, float16 and bool,
#: on the device `d`.
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
    torch.full((1,), -1e9, dtype=torch.half, device=d) | x.bfloat16()[:1].fill_(3.4e38)
    h[0].fill_(1e39) | h[0].fill_(2**62) | x[0].fill_(1e39) | i[0].fill_(2**40) | i[:0].fill_(2**40)
    h[:0].fill_(1e9) | torch.where(b, h, -1e9) | h.index_put_((b,), torch.tensor(-1e9).to(h))
    h.index_put_((b,), torch.tensor(-1e9).half()) | torch.where(b, h, torch.tensor(0.1, device=d))
    h.scatter_(0, i.long() % 3, 1e9) | torch.addcmul(torch.tensor(2049.0, device=d), h, h)
    torch.addcdiv(h, torch.tensor(2049.0, device=d), h)
    torch.lerp(h, h + 1, torch.tensor(0.1, device=d))
    b.fill_(torch.tensor(0.5)) | b.fill_(torch.tensor(0.5, dtype=torch.double))
    b.fill_(torch.tensor(0.5, device=d)) | b.fill_(torch.tensor(2**32, device=d))
    b.masked_fill_(~b, torch.tensor(0.5)) | b.masked_fill_(~b, torch.tensor(0.5, device=d))
    b.masked_fill_(~b, torch.tensor(2**32, device=d)) | h.masked_fill_(b, torch.tensor(1e6))
    h.masked_fill_(b, torch.tensor(2049.0)) | h.masked_fill_(b, torch.tensor(2049.0, device=d))
    i.masked_fill_(b, torch.tensor(2**40)) | i.masked_fill_(b, torch.tensor(2.5))
    (x / 9).sum(dtype=torch.bool) | (x[None] / 9).sum(1, dtype=torch.bool)
    torch.tensor([1, -1], device=d).sum(dtype=torch.bool) | x[:0].sum(dtype=torch.bool)
    (x / 9).prod(dtype=torch.bool) | (x.diag() / 9).prod(1, dtype=torch.bool)
    x[:0].prod(dtype=torch.bool) | x[torch.tensor(True, device=d)]
    x.index_put_((torch.tensor(True, device=d),), x[0].clone())
    x.index_put_((torch.tensor(False, device=d),), x[0].clone())
    x.index_put_((torch.tensor(True, device=d),), x[0].clone(), accumulate=True)
    torch.ops.aten.index.Tensor(x, [torch.tensor(True, device=d)])
    torch.ops.aten.index.Tensor(x, [torch.tensor(False, device=d)])
    torch.ops.aten.index.Tensor(x, [torch.tensor(True, device=d), i.long() % 3])
    h**1.7 | 1.7**h | h ** torch.tensor(1.7) | x.bfloat16().abs() ** 1.7 | 2.1 ** x.bfloat16()
"""
#: Results in a tensor of another dtype; `wide` is int64, of numbers that neither int32 nor float32
#: has.
RESULTS = """
    torch.clamp(wide, max=wide * 0 + 7, out=i) | torch.clamp(wide, wide * 0, wide * 0 + 7, out=i)
    torch.clamp(wide, min=wide * 0 + 7, out=i) | torch.clamp(wide, max=7, out=i)
    torch.clamp(wide, 1, 7, out=x) | torch.clamp(wide, 1, 7.5, out=x)
    torch.addcmul(wide, i, i, out=x) | torch.addcmul(h, h, h, out=x) | torch.addcdiv(h, h, h, out=x)
    torch.mul(h, h, out=x) | torch.add(h, 0.1, out=x)
    torch.lerp(h, h + 1, 0.3, out=x) | torch.exp(h, out=x) | torch.sum(x, 0, out=b[0])
"""
#: Tensors that share memory: of these, the CPU refuses some. `s` is a square, `bs` are bools.
OVERLAPS = """
    bs[1:].masked_fill_(bs[:-1], True) | bs[1:].masked_fill_(bs[:-1], torch.tensor(True, device=d))
    bs.masked_fill_(bs, False) | torch.pow(2.0, s[:3], out=s[1:]) | torch.pow(2.0, s.t(), out=s)
    torch.pow(2.0, s, out=one.expand(4, 4)) | torch.pow(2.0, s, out=s)
    torch.max(s, 0, out=(s[0], s.new_empty(4).long()))[0]
    torch.min(s, 0, out=(s[0], s.new_empty(4).long()))[0]
    torch.addmm(s.t(), s.clone(), s.clone(), out=s) | torch.addmm(s[0], s * 1, s * 1, out=s)
    torch.addmm(s, s.clone(), s.clone(), out=s) | torch.addmv(s[0], s * 1, s[1] * 1, out=s[:, 0])
    s[1:3, 1:3].addmm_(s[:2, :2].clone(), s[:2, :2].clone())
    torch.mean(s, 0, out=one.expand(4)) | torch.clamp(s[:3], 0, 5, out=s[1:])
    torch._C._nn.avg_pool2d(s[None], 2, out=one.expand(1, 2, 2))
"""
#: What writes `y`, which shares its memory with `x` until then.
WRITES = """
    y.fill_(3) | y.add_(1) | torch.mm(z, z, out=y) | torch.mv(z, z[0], out=y[0])
    y.index_put_((i,), z) | y.masked_fill_(z > 0, 7) | y.scatter_(0, i[None], z)
    torch.cumsum(z, 0, out=y) | torch.sum(z, 0, out=y[0]) | torch.softmax(z, 0, out=y)
    torch.tril(z, out=y) | torch.max(z, 0, out=(y[0], i))[0] | y.uniform_(2, 3)
    step(y, z) | torch.embedding_renorm_(y, i, 0.5, 2) | torch.bernoulli(z * 0 + 1, out=y)
    torch.batch_norm(z, None, None, y[0], y[1], True, 0.1, 1e-5, False)
    torch._C._nn.avg_pool2d(z.repeat(2, 2)[None], 2, out=y[None])
"""
#: Operators of two tensors that the CPU converts to one dtype.
PAIRS = "add sub mul div eq ne lt ge maximum minimum".split()


def outcome(call: Callable[[str], object], device: str) -> object:
    """The values, or the kind and the text of an error."""
    torch.manual_seed(0)
    try:
        result = call(device)
        return result.cpu().tolist() if isinstance(result, torch.Tensor) else "values"
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        return type(error).__name__, str(error)


def step(parameter: torch.Tensor, gradient: torch.Tensor) -> None:
    parameter.grad = gradient
    torch.optim.SGD([parameter], 0.5, fused=True).step()


def names_on(device: str) -> dict[str, object]:
    x = torch.tensor([1.0, -2.0, 3.0], device=device)
    square = torch.arange(16.0, device=device).view(4, 4)
    return {
        "torch": torch,
        "step": step,
        "d": device,
        "x": x,
        "i": x.int(),
        "h": torch.tensor([0.1, 1.0, 2048.0], dtype=torch.half, device=device),
        "b": x > 0,
        "wide": torch.tensor([2**32 + 5, 3, 2**24 + 1], device=device),
        "s": square,
        "bs": square.flatten() % 4 == 0,
        "one": torch.empty(1, device=device),
    }


def of_texts() -> Iterator[Call]:
    for text in parts_of(NUMBERS + RESULTS + OVERLAPS):
        yield text, lambda device, text=text: eval(text, names_on(device))


def parts_of(texts: str) -> list[str]:
    return [one.strip() for line in texts.splitlines() if line for one in line.split(" | ")]


def of_writes() -> Iterator[Call]:
    for text in parts_of(WRITES):

        def call(device: str, text: str = text) -> object:
            x = torch.ones(3, 3, device=device)
            y = torch._lazy_clone(x)
            z = torch.arange(9.0, device=device).view(3, 3)
            i = torch.tensor([2, 0, 1], device=device)
            eval(text, {"torch": torch, "step": step, "x": x, "y": y, "z": z, "i": i})
            # Random numbers are those of the device.
            return torch.stack([x, y > 1.5 if "uniform" in text else y])

        yield text, call


def of_pairs() -> Iterator[Call]:
    others = (torch.tensor(0.1), torch.tensor([2049]), torch.tensor([2049] * 4))
    for dtype, name, other in itertools.product((torch.half, torch.bfloat16), PAIRS, others):
        for turned, near in itertools.product((False, True), (False, True)):
            if near and other.dim() > 0:
                continue

            def call(device: str, dtype=dtype, name=name, turned=turned, other=other, near=near):
                left = torch.tensor([0.1, 1.0, 3.0, 2048.0], dtype=dtype, device=device)
                right = other if near else other.to(device)
                return getattr(torch, name)(*((right, left) if turned else (left, right)))

            yield f"{name} of {dtype} and {other}", call


def of_devices() -> Iterator[Call]:
    """Numbers that another device is still computing."""
    for factor, text in ((1, "x.fill_(far)"), (4, "x.masked_fill_(x > 0, far)")):

        def call(device: str, factor: int = factor, text: str = text) -> object:
            names = names_on(device)
            row = torch.ones(1 << 24, device="ocl:1" if device == "ocl" else device)
            for times in (1, 2):  # the first kernel is compiled meanwhile, and so comes too late
                names["far"] = torch.mv(row[None], row * factor * times)[0]
                result = eval(text, names).cpu()
            return result

        yield f"{text} from another device", call


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
    for what, call in itertools.chain(of_texts(), of_writes(), of_pairs(), of_devices()):
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
