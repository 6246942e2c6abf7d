# SPDX-License-Identifier: Apache-2.0
"""`tensor.data = other` across devices, as PyTorch has it for its own devices."""

import itertools
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


def parameter(place="cpu"):
    return nn.Parameter(torch.tensor([1.0, 2.0, 3.0], device=place))


PLACES = ["cpu", "device", "other"]


@pytest.mark.parametrize(("start", "end"), list(itertools.permutations(PLACES, 2)))
def test_a_tensor_is_one_of_the_device(request, name, device, start, end):
    places = {
        place: torch.device("cpu") if place == "cpu" else request.getfixturevalue(place)
        for place in (start, end)
    }
    one = parameter(places[start])
    fresh = torch.tensor([4.0, 5.0], device=places[end])
    one.data = fresh
    assert one.device == places[end]
    assert one.is_cpu == (end == "cpu")
    assert getattr(one, f"is_{name}") == (end != "cpu")
    assert one.untyped_storage().device == places[end]
    assert one.data_ptr() == fresh.data_ptr()
    keys = [repr(torch._C._dispatch_keys(tensor)) for tensor in (one, nn.Parameter(fresh))]
    assert keys[0] == keys[1]
    assert one.is_leaf
    assert one.requires_grad
    assert isinstance(one, nn.Parameter)
    (one * one).sum().backward()
    assert one.grad.device == places[end]
    assert one.grad.tolist() == [8.0, 10.0]
    with torch.no_grad():
        one.add_(1)
    assert fresh.tolist() == [5.0, 6.0]


@pytest.mark.parametrize("start", ["cpu", "device"])
def test_all_of_the_tensor_is_taken_over(device, start):
    places = [torch.device("cpu"), device]
    if start == "device":
        places.reverse()
    one = torch.zeros(2, device=places[0])
    fresh = torch.arange(24, device=places[1]).reshape(2, 3, 4).transpose(0, 1)[1:, 1]
    one.data = fresh
    assert (one.shape, one.stride(), one.storage_offset(), one.dtype) == (
        fresh.shape, fresh.stride(), fresh.storage_offset(), fresh.dtype
    )  # fmt: skip
    assert torch.equal(one, fresh)
    fresh.zero_()
    assert int(one.abs().sum()) == 0


@pytest.mark.parametrize("bit", ["conj", "neg"])
def test_bits_are_taken_over(device, bit):
    values = torch.tensor([1 + 2j, 3 - 4j])
    fresh = values.conj() if bit == "conj" else torch._neg_view(values)
    for place, start in (("cpu", device), (device, "cpu")):
        one = torch.zeros(2, dtype=torch.complex64, device=start)
        there = values.to(place)
        one.data = there.conj() if bit == "conj" else torch._neg_view(there)
        assert getattr(one, f"is_{bit}")()
        assert one.cpu().resolve_conj().resolve_neg().tolist() == fresh.tolist()


def test_version_counters_stay(device):
    one = torch.zeros(3)
    one.add_(1)
    version = one._version
    fresh = torch.zeros(3, device=device)
    one.data = fresh
    assert one._version == version
    one.add_(1)
    assert (one._version, fresh._version) == (version + 1, 0)


def test_what_requires_gradients_has_a_dtype_that_can(device):
    one = parameter()
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        one.data = torch.ones(3, dtype=torch.int64, device=device)
    assert one.device.type == "cpu"
    one.data = torch.ones(3, dtype=torch.float16, device=device)
    (one * 2).sum().backward()
    assert one.grad.dtype == torch.float16


def test_modes_of_python_do_not_see_the_question(device):
    """As for PyTorch's own devices, of which it answers by itself."""
    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    for trains in (True, False):
        one = parameter().requires_grad_(trains)
        fresh = one.detach().to(device)
        with Log():
            one.data = fresh
        assert one.device == device
    assert not [name for name in seen if "shallow_copy" in name]


def test_a_graph_of_before(device):
    """Gradients of a graph go where its numbers are, as on any device."""
    one = parameter()
    seen = []
    one.register_hook(lambda grad: seen.append(grad.device.type))
    result = (one * 3).sum()
    one.data = one.data.to(device)
    result.backward()
    assert one.grad.device.type == "cpu"
    assert one.grad.tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(RuntimeError, match="same device"):
        (one * 2).sum().backward()
    one.grad = None
    (one * 2).sum().backward()
    assert one.grad.device == device
    assert seen == ["cpu", device.type, device.type]


def test_a_graph_of_before_that_needs_the_numbers(device):
    one = parameter()
    result = (one * one).sum()
    one.data = one.data.to(device)
    with pytest.raises(RuntimeError, match="same device"):
        result.backward()


def test_a_gradient_of_another_device(device):
    for start, end in (("cpu", device), (device, "cpu")):
        one = parameter(start)
        text = "attempting to assign a gradient with device type"
        with pytest.raises(RuntimeError, match=text):
            one.grad = torch.ones(3, device=end)
        one.data = one.data.to(end)
        one.grad = torch.ones(3, device=end)
        one.grad.data = one.grad.data.to(start)  # PyTorch lets it
        assert one.grad.device == torch.device(start)


def test_gradients_that_stay_behind(device):
    one = parameter()
    (one * 2).sum().backward()
    one.data = one.data.to(device)
    assert one.grad.device.type == "cpu"
    with pytest.raises(RuntimeError, match="same device"):
        (one * 2).sum().backward()
    one.grad.data = one.grad.data.to(device)
    (one * 2).sum().backward()
    assert one.grad.tolist() == [4.0, 4.0, 4.0]


def test_many_moves_with_graphs_in_between(device):
    one = parameter()
    held = []
    for step in range(6):
        place = device if step % 2 else torch.device("cpu")
        one.data = one.data.to(place)
        one.grad = None
        result = (one * (step + 1)).sum()
        held.append(result)
        result.backward(retain_graph=True)
        assert one.grad.device == place
        assert one.grad.tolist() == [step + 1.0] * 3
    one.grad = None
    held[5].backward()
    assert one.grad.device == device


def test_a_view_and_its_base(device):
    base = torch.zeros(2, 3)
    view = base[1]
    view.data = torch.ones(3, device=device)
    assert view.device == device
    assert base.device.type == "cpu"
    assert base.sum() == 0


def test_a_shared_buffer_is_unshared(device):
    """FSDP's way: parameters are views of one flat parameter, which comes and goes."""
    flat = nn.Parameter(torch.zeros(6))
    whole = torch.arange(6.0, device=device)
    shard = flat.data
    flat.data = whole
    parts = [nn.Parameter(part.view(3)) for part in flat.data.split(3)]
    loss = sum((part * part).sum() for part in parts) + (flat * 2).sum()
    loss.backward()
    assert [part.grad.tolist() for part in parts] == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    assert flat.grad.tolist() == [2.0] * 6
    flat.data = shard
    for part in parts:
        part.data = shard.new_empty(0)
        part.grad = None
    assert {one.device.type for one in (flat, *parts)} == {"cpu"}
    flat.data = whole
    for part, values in zip(parts, flat.data.split(3)):
        part.data = values
    with torch.no_grad():
        flat.fill_(5)
    assert parts[1].tolist() == [5.0, 5.0, 5.0]


FULLY_SHARDED = """
    import torch
    import torch.distributed as distributed
    from torch import nn
    from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel
    from torch.testing._internal.distributed.fake_pg import FakeStore

    distributed.init_process_group("cpu:fake,{0}:fake", store=FakeStore(), rank=0, world_size=1)

    def trained(wrap, place):
        torch.manual_seed(0)
        model = wrap(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        inputs = torch.arange(6.0, device=place).view(2, 3)
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(inputs).square().sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, {{one.device.type for one in model.parameters()}}

    device = torch.device("{0}:0")
    expected, _ = trained(lambda model: model, "cpu")
    for original in (False, True):
        for offload in (False, True):
            losses, types = trained(
                lambda model: FullyShardedDataParallel(
                    model,
                    device_id=device,
                    cpu_offload=CPUOffload(offload),
                    use_orig_params=original,
                ),
                device,
            )
            torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-6)
            assert types == {{"cpu" if offload else "{0}"}}, (original, offload, types)
    print("as on the CPU")
"""


@pytest.mark.needs("streams", "events")
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has none")
def test_fully_sharded_data_parallel(name):
    """FSDP's first version, which sets the data of a flat parameter, by a simulated group."""
    code = textwrap.dedent(FULLY_SHARDED.format(name))
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("as on the CPU")


LAYOUTS = {
    "strided": lambda place: torch.ones(2, 2, device=place),
    "sparse_coo": lambda place: torch.eye(2, device=place).to_sparse(),
    "sparse_csr": lambda place: torch.eye(2, device=place).to_sparse_csr(),
    "sparse_bsr": lambda place: torch.eye(2, device=place).to_sparse_bsr((1, 1)),
    "nested": lambda place: torch.nested.nested_tensor([torch.ones(2), torch.ones(1)]).to(place),
    "jagged": lambda place: torch.nested.nested_tensor(
        [torch.ones(2), torch.ones(1)], layout=torch.jagged
    ).to(place),
    "quantized": lambda place: torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.qint8).to(
        place
    ),
    "meta": lambda place: torch.ones(2, 2, device="meta"),
}


#: What is not moved so between devices. PyTorch's own do not do it for nested and quantized tensors
#: either, and would leave the numbers of others behind.
OTHER_CLASSES = {"nested", "jagged", "quantized", "sparse_coo", "sparse_csr", "sparse_bsr"}


@pytest.mark.parametrize(("one", "two"), list(itertools.product(LAYOUTS, repeat=2)))
@pytest.mark.filterwarnings("ignore:.*(Sparse|nested tensors|quantize)")
def test_kinds_that_are_compatible(device, one, two):
    """The answer across devices is PyTorch's for two tensors of the CPU."""
    answers = [
        torch._has_compatible_shallow_copy_type(LAYOUTS[one](start), LAYOUTS[two](end))
        for start, end in (("cpu", "cpu"), (device, device), ("cpu", device), (device, "cpu"))
    ]
    across = answers[0] and not OTHER_CLASSES & {one, two}
    # The CPU's strided tensors take over jagged ones, a subclass in Python, as empty shells.
    within = answers[0] and {one, two} != {"strided", "jagged"}
    assert answers == [answers[0], within, across, across]
    if not across:
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            LAYOUTS[one]("cpu").data = LAYOUTS[two](device)


@pytest.mark.parametrize("places", [("cpu", "device"), ("device", "cpu"), ("device", "other")])
@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc"])
def test_compressed_tensors(request, layout, places):
    """They are replaced: PyTorch would leave their numbers where they are."""
    start, end = (
        torch.device("cpu") if one == "cpu" else request.getfixturevalue(one) for one in places
    )
    model = nn.Module()
    made = torch.eye(3).to_sparse(layout=getattr(torch, layout))
    model.weight = nn.Parameter(made.to(start))
    model.to(end)
    assert model.weight.device == model.weight.values().device == end
    assert torch.equal(model.weight.detach().cpu().to_dense(), torch.eye(3))


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("trained", [False, True])
def test_sparse_parameters(device, trained, swap):
    """They are replaced, with their gradients, unless tensors are swapped."""
    model = nn.Module()
    model.weight = weight = nn.Parameter(torch.eye(3).to_sparse())
    if trained:
        torch.sparse.mm(weight, torch.arange(9.0).view(3, 3)).sum().backward()
    expected = weight.grad.to_dense() if trained else None
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(swap)
    try:
        model.to(device)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)
    assert (model.weight is weight) == swap
    assert model.weight.device == device
    assert model.weight.requires_grad
    assert torch.equal(model.weight.detach().cpu().to_dense(), torch.eye(3))
    assert (model.weight.grad is not None) == trained
    if trained:
        assert model.weight.grad.device == device
        assert torch.equal(model.weight.grad.cpu().to_dense(), expected)
