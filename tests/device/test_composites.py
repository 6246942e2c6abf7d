# SPDX-License-Identifier: Apache-2.0
"""Operators that PyTorch makes of others, in another way than its kernel of the CPU.

For these the composite kernel comes before the fallback. Each that a release has is decided here,
and what is decided is as on the CPU in all that a caller can see.
"""

import pytest
import torch
import torch.nn.functional as F
from backend import RELEASE
from likeness import assert_alike

pytestmark = [pytest.mark.needs("fallback"), pytest.mark.filterwarnings("ignore")]

COMPOSITES = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
#: Those that fall back, with the kernels of the device that PyTorch's own needs to do as well.
DECIDED = {
    "aten::_stack": ["cat"],
    "aten::_stack.out": ["cat.out"],
    "aten::addr": [],
    "aten::addr.out": [],
    "aten::all.dims": ["all.dim"],
    "aten::all.dims_out": ["all.dim"],
    "aten::any.dims": ["any.dim"],
    "aten::any.dims_out": ["any.dim"],
    "aten::linalg__powsum": [],
    "aten::mish_backward": ["mul.Tensor", "sigmoid", "softplus", "tanh"],
    "aten::native_channel_shuffle": [],
    "aten::native_group_norm": [],
    "aten::native_layer_norm": [],
    "aten::pixel_shuffle": [],
    "aten::pixel_unshuffle": [],
    "aten::silu_backward": ["mul.Tensor", "sigmoid"],
}
#: Those that look for their devices in a list of PyTorch's, or do more than the CPU's kernel does,
#: and one whose kernel for all devices asks whether `self` and `out` are the same object.
OTHERS = ("aten::index.Tensor", "aten::mode.values", "aten::addr_")


def has(name, key):
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def is_out(schema):
    return any(one.is_out for one in schema.arguments)


def composites():
    """Operators of the CPU that a composite kernel would answer on a device without one.

    Where there is a kernel of the CPU for `out=`, the composite one only makes the result and calls
    that: it is the same.
    """
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    names = [name for name in names if has(name, "CPU")]
    known = set(names)
    found = set()
    for name in names:
        keys = [key for key in COMPOSITES if has(name, key)]
        if not keys:
            continue
        packet = name.split(".")[0]
        into = {
            f"{packet}.{schema.overload_name}"
            for base in (packet, packet.removesuffix("_"))
            for schema in torch._C._jit_get_schemas_for_operator(base)
            if is_out(schema)
        }
        into |= {f"{packet.removesuffix('_')}.{one.partition('.')[2]}" for one in into}
        if keys == [COMPOSITES[2]] and known & into:
            continue
        found.add(name)
    return found


def test_each_composite_of_this_release_is_decided():
    """A new one belongs into composites.h and DECIDED, or has a reason to stay PyTorch's."""
    assert composites() - DECIDED.keys() == set()


def test_what_is_decided_falls_back(module):
    if not hasattr(module, "capabilities"):
        pytest.skip("only a backend made with BackendKit decides")
    present = set(torch._C._dispatch_get_all_op_names())
    with_kernel = {name for name in present if has(name, "PrivateUse1")}

    def overloads_of(piece):
        packet = f"aten::{piece.partition('.')[0]}"
        return {name for name in present if name.partition(".")[0] == packet}

    for name, pieces in {**DECIDED, **dict.fromkeys(OTHERS, [])}.items():
        if name in present:
            own = [overloads_of(piece) & with_kernel for piece in pieces]
            assert name in with_kernel or (own and all(own)), name


def numbers(*size, device, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*size, generator=generator).to(dtype).to(device)


def gradients(output, *inputs):
    return torch.autograd.grad(output.sum(), inputs)


@pytest.mark.needs("fallback of native_group_norm")
@pytest.mark.parametrize("weights", [None, torch.float32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "size, memory_format",
    [
        ((2, 4, 6), torch.contiguous_format),
        ((2, 4, 3, 3), torch.contiguous_format),
        ((2, 4, 3, 3), torch.channels_last),
        ((2, 4, 2, 3, 3), torch.channels_last_3d),
    ],
)
def test_group_norm(device, size, memory_format, dtype, weights):
    def compute(where):
        x = numbers(*size, device=where, dtype=dtype).contiguous(memory_format=memory_format)
        x.requires_grad_()
        more = [] if weights is None else [numbers(4, device=where, dtype=weights) for _ in "wb"]
        for one in more:
            one.requires_grad_()
        y = F.group_norm(x, 2, *more)
        # PyTorch makes the gradient contiguous on all devices but the CPU; 2.5 the result as well.
        y = y.contiguous() if RELEASE < (2, 6) else y
        return y, *(one.contiguous() for one in gradients(y, x, *more))

    assert_alike(compute, device)


@pytest.mark.needs("fallback of native_layer_norm")
@pytest.mark.parametrize("weights", [None, torch.float32, torch.float16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [(2, 4), (3, 2, 4), (0, 4)])
def test_layer_norm(device, size, dtype, weights):
    def compute(where):
        x = numbers(*size, device=where, dtype=dtype).requires_grad_()
        more = [] if weights is None else [numbers(4, device=where, dtype=weights) for _ in "wb"]
        for one in more:
            one.requires_grad_()
        y, mean, scale = torch.native_layer_norm(x, (4,), *(more or (None, None)), 1e-5)
        return y, mean, scale, *gradients(y, x, *more)

    assert_alike(compute, device)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: torch.native_channel_shuffle(x, 2),
        lambda x: torch.channel_shuffle(x, 2),
        lambda x: F.pixel_shuffle(x, 2),
        lambda x: F.pixel_unshuffle(x, 2),
        lambda x: torch.stack([x, x]),
        lambda x: torch.stack([x, x], 1),
        lambda x: torch.stack([x, x], out=torch.empty(0, device=x.device)),
        lambda x: torch._stack([x, x], 1),
        lambda x: torch.any(x > 0, (0, 1)),
        lambda x: torch.any(x > 0, (0, 2), keepdim=True),
        lambda x: torch.all(x > 0, (0, 1)),
        lambda x: torch.all(x, (1, 2), out=torch.empty(0, device=x.device, dtype=torch.bool)),
        lambda x: torch.any(x, (1, 1)),
        lambda x: torch.all(x, (0, 9)),
    ],
)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_of_images(device, compute, memory_format):
    def of(where):
        return compute(numbers(2, 4, 4, 4, device=where).contiguous(memory_format=memory_format))

    assert_alike(of, device)


@pytest.mark.parametrize("op", ["silu", "mish"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_gradients_of_activations(device, op, dtype):
    def compute(where):
        x = numbers(3, 4, device=where, dtype=dtype).t().requires_grad_()
        (first,) = torch.autograd.grad(getattr(F, op)(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        return first, second

    assert_alike(compute, device)


@pytest.mark.parametrize("dtypes", ["fff", "iff", "fii", "bbb", "hff", "ccc", "iii"])
def test_addr(device, dtypes):
    kinds = {
        "f": torch.float32,
        "h": torch.float16,
        "i": torch.int32,
        "b": torch.bool,
        "c": torch.complex64,
    }

    def compute(where):
        a, b, c = (kinds[one] for one in dtypes)
        x = numbers(2, 3, device=where).to(a)
        y, z = numbers(2, device=where).to(b), numbers(3, device=where).to(c)
        return torch.addr(x, y, z), torch.addr(x, y, z, out=torch.empty(0, device=where, dtype=a))

    assert_alike(compute, device)


@pytest.mark.parametrize("size", [(2, 3), (3,), ()])
def test_addr_in_place(device, size):
    def compute(where):
        x = numbers(*size, device=where)
        return x.addr_(numbers(2, device=where), numbers(3, device=where))

    assert_alike(compute, device)


def test_addr_into_the_cpu_s_memory_is_an_error(device):
    x = torch.ones(2, device=device)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.addr(torch.ones(2, 2, device=device), x, x, out=torch.empty(2, 2))


def test_sums_of_powers(device):
    if not hasattr(torch.ops.aten, "linalg__powsum"):
        pytest.skip("this release of PyTorch has no linalg__powsum")
    compute = lambda where: torch.ops.aten.linalg__powsum(numbers(3, 4, device=where), 3, [0])  # noqa: E731
    assert_alike(compute, device)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.int32])
def test_index(device, dtype):
    def compute(where):
        x = numbers(3, 3, 4, device=where).transpose(0, 2).requires_grad_()
        mask = torch.tensor([1, 0, 1], device=where).to(dtype)
        y = x[:, mask]
        return y, *gradients(y, x)

    assert_alike(compute, device)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8])
def test_index_put(device, dtype):
    def compute(where):
        x = numbers(3, 4, device=where)
        x[torch.tensor([1, 0, 1], device=where).to(dtype)] = 2
        return x

    assert_alike(compute, device)


def test_mode_into_given_tensors(device):
    def compute(where):
        x = torch.tensor([[2, 1, 2], [3, 3, 1]], device=where)
        out = (torch.empty(0, device=where, dtype=x.dtype), torch.empty(0, device=where).long())
        return list(torch.mode(x, 1, out=out)), list(torch.mode(x, 0, keepdim=True))

    assert_alike(compute, device)
