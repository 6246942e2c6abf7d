# SPDX-License-Identifier: Apache-2.0
"""What the library registers only when a process is about to have a tensor of the device.

A program for each way in which that is first needed, in a process of its own, which has imported
PyTorch and done no more. Each prints what it prints for the CPU.
"""

import pytest
from fresh_process import Forks

pytestmark = pytest.mark.needs("fallback")

# Sets x, of which the line behind prints the values.
PARTS = "torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.tensor([3.0, 4.0])"
DENSE = "print(x.device.type, x.layout, (x + x).to_dense().cpu().tolist())"
WHOLE = "print(x.device.type, x.dtype, x.dequantize().cpu().tolist(), x.q_scale())"
LISTS = "print(x.device.type, [one.cpu().tolist() for one in (x * 2).unbind()])"
SAVED = "import io; file = io.BytesIO(); torch.save(({0}), file); file.seek(0); "
LOADED = "x = torch.load(file, map_location=place, weights_only=False); "

FIRST = {
    "sparse, of sizes": "x = torch.sparse_coo_tensor(size=(2, 3), device=place); " + DENSE,
    "sparse, of parts": "x = torch.sparse_coo_tensor([[0, 1], [1, 0]], [3.0, 4.0], (2, 2), "
    "device=place); " + DENSE,
    "sparse, empty": "x = torch.empty(2, 3, layout=torch.sparse_coo, device=place); " + DENSE,
    "sparse, of a dense one": "x = torch.eye(2, device=place).to_sparse(); " + DENSE,
    "sparse, moved": "x = torch.eye(2).to_sparse().to(place); " + DENSE,
    "sparse, loaded": SAVED.format("torch.eye(2).to_sparse()") + LOADED + DENSE,
    "sparse, a gradient": "e = torch.nn.Embedding(3, 2, sparse=True).to(place); "
    "e(torch.tensor([1], device=place)).sum().backward(); x = e.weight.grad; " + DENSE,
    "compressed, of parts": f"x = torch.sparse_csr_tensor({PARTS}, device=place); " + DENSE,
    "compressed, empty": "x = torch.empty(2, 3, layout=torch.sparse_csr, device=place); "
    "print(x.device.type, x.layout, x.values().cpu().tolist(), x.to_dense().shape)",
    "compressed, moved": "x = torch.eye(2).to_sparse_csc().to(place); " + DENSE,
    "compressed, unsafe": f"parts = [one.to(place) for one in ({PARTS})]; "
    "x = torch.ops.aten._sparse_compressed_tensor_unsafe(*parts, [2, 2], "
    "layout=torch.sparse_csr, device=torch.device(place)); " + DENSE,
    "quantized, empty": "x = torch._empty_affine_quantized([2], scale=0.5, zero_point=1, "
    "dtype=torch.qint8, device=place).fill_(2.0); " + WHOLE,
    "quantized, of a dense one": "x = torch.ones(2, device=place); "
    "x = torch.quantize_per_tensor(x, 0.5, 1, torch.quint8); " + WHOLE,
    "quantized, moved": "x = torch.quantize_per_tensor(torch.ones(2), 0.5, 1, torch.qint8); "
    "x = x.to(place); " + WHOLE,
    "nested, of a list": "x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], "
    "device=place); " + LISTS,
    "nested, moved": "x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).to(place); "
    + LISTS,
    "nested, of a mask": "x = torch._nested_tensor_from_mask(torch.ones(1, 3, 2, device=place), "
    "torch.tensor([[True, True, False]], device=place)); " + LISTS,
    "nested, a view": "sizes = torch.tensor([[2], [1]]); x = torch._nested_view_from_buffer("
    "torch.ones(3, device=place), sizes, torch.ones_like(sizes), torch.tensor([0, 2])); " + LISTS,
    "another operator": "x = torch.tril_indices(2, 2, device=place); print(x.cpu().tolist())",
    "autocast": "m = torch.nn.Linear(2, 2).to(place)\n"
    "with torch.autocast(place, torch.bfloat16): x = m(torch.ones(1, 2, device=place)) + 1\n"
    "print(x.dtype, x.shape)",
    "autocast, then a tensor": "with torch.autocast(place, torch.bfloat16):\n"
    "  x = torch.ones(2, 2, device=place); x = x @ x; print(x.dtype, (x + 1).cpu().tolist())",
    "autocast of fake tensors": "from torch._subclasses.fake_tensor import FakeTensorMode\n"
    "with FakeTensorMode(), torch.autocast(place, torch.bfloat16):\n"
    "  x = torch.empty(2, 2, device=place); print((x @ x).dtype, (x + 1).device.type)",
    "autocast without its class": "x = torch.ones(2, 2, device=place)\n"
    "torch.set_autocast_enabled(place, True); print((x + 1).cpu().tolist())\n"
    "torch.set_autocast_enabled(place, False)",
    "an operator that knows no gradient": "library = torch.library.Library('other', 'DEF')\n"
    "library.define('twice(Tensor x) -> Tensor')\n"
    "library.impl('twice', lambda x: x * 2, 'CompositeExplicitAutograd')\n"
    "print(torch.ops.other.twice(torch.ones(2, device=place)).cpu().tolist())",
    "a tensor without elements": "x = torch.empty(0, device=place); "
    "x = torch.nested.nested_tensor([x, x]); " + LISTS,
}


@pytest.fixture(scope="module")
def printed():
    """Runs a program, for which `torch` and `place` are there; what it prints, line by line."""
    forks = Forks("import sys, torch")
    yield lambda program, place: forks.printed(f"place = sys.argv[1]\n{program}", place)
    forks.close()


def ways():
    """The names of these programs, each with what it needs."""
    for name, program in FIRST.items():
        needs = "autocast of bfloat16" if "torch.bfloat16" in program else "autocast"
        marks = [pytest.mark.needs(needs)] if "autocast" in program else []
        yield pytest.param(name, marks=marks)


@pytest.mark.parametrize("first", list(ways()))
def test_as_the_first_use(device, printed, first):
    ours = "\n".join(printed(FIRST[first], device.type))
    assert ours.replace(device.type, "cpu").splitlines() == printed(FIRST[first], "cpu")


THREADS = """
import threading
ways = [
    lambda: torch.sparse_coo_tensor(size=(2, 3), device=place).to_dense(),
    lambda: torch.eye(2).to_sparse_csr().to(place).to_dense(),
    lambda: torch.quantize_per_tensor(torch.ones(2).to(place), 0.5, 1, torch.qint8).dequantize(),
    lambda: torch.nested.nested_tensor([torch.ones(2)], device=place).unbind()[0],
    lambda: torch.ones(2, device=place) + 1,
]
ready = threading.Barrier(2 * len(ways) + 2)
results = []

def work(way):
    ready.wait()
    results.append(way().cpu().sum().item())

def cast():
    ready.wait()
    with torch.autocast(place, torch.bfloat16):
        x = torch.ones(2, 2, device=place)
        results.append((x @ x + 1).cpu().sum().item())

def on_the_cpu():
    x = torch.ones(4, 4, requires_grad=True)
    ready.wait()
    for _ in range(200):
        (gradient,) = torch.autograd.grad((x * x).sum(), x)
        assert gradient.sum().item() == 32, gradient

threads = [threading.Thread(target=work, args=[way]) for way in ways + ways]
threads += [threading.Thread(target=one) for one in (cast, on_the_cpu)]
for one in threads: one.start()
for one in threads: one.join()
print(sorted(results))
"""


@pytest.mark.needs("autocast of bfloat16")
@pytest.mark.parametrize("turn", range(3))
def test_as_the_first_use_in_several_threads(device, printed, turn):
    assert printed(THREADS, device.type) == printed(THREADS, "cpu")


TABLES = """
has = torch._C._dispatch_has_kernel_for_dispatch_key
layouts = ("Sparse", "SparseCsr", "Quantized", "NestedTensor")
# Operators that are told a device and a layout.
told = [name for name in torch._C._dispatch_get_all_op_names() if has(name, "BackendSelect")]

def answers():
    found = {}
    for name in told:
        if not name.startswith("aten::"): continue
        for line in torch._C._dispatch_dump_table(name).splitlines():
            key, _, answer = line.partition(": ")
            # Only what takes a nested tensor can get to its key, and only the CPU's is one then.
            if key == "NestedTensorPrivateUse1" and not has(name, "NestedTensorCPU"): continue
            if key in [one + "PrivateUse1" for one in layouts]: found[name, key] = answer
    return found

def is_registered():
    computed = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    keys = [one + "PrivateUse1" for one in (*layouts, "Autocast")]
    return [computed("aten::ceil.out", key) for key in keys]

torch.nn.Linear(2, 2)(torch.ones(2)).sum().backward()
torch.eye(2).to_sparse() @ torch.ones(2, 2)
before, late = answers(), is_registered()
torch.empty(0, device=place)
after = answers()
print(len(before) > 100, late, is_registered())
print([key for key in sorted(after) if before.get(key) != after[key]])
"""


@pytest.mark.needs("autocast")
def test_what_is_registered_when(device, printed):
    """A program on the CPU has PyTorch visit no operator; one that begins with an operator that is
    told a layout gets the answer which it would get later."""
    assert printed(TABLES, device.type) == [f"True {[False] * 5} {[True] * 5}", "[]"]
