# SPDX-License-Identifier: Apache-2.0
"""A module that moves is the same module, as on PyTorch's own devices: its parameters stay."""

import copy
import gc
import io
import pickle
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, prune


class Net(nn.Module):
    """A network with a tied weight, buffers, and a parameter that nobody trains."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 8, bias=False)
        self.head.weight = self.embed.weight
        self.scale = nn.Parameter(torch.full((4,), 2.0), requires_grad=False)
        self.register_buffer("mask", torch.ones(4), persistent=False)

    def forward(self, tokens):
        return self.head(self.norm(self.embed(tokens)) * self.scale * self.mask)


def net():
    torch.manual_seed(0)
    return Net()


def loss_of(model, place):
    tokens = torch.arange(8, device=place)
    return F.cross_entropy(model(tokens), tokens.flip(0))


def devices_of(model):
    return {tensor.device for tensor in (*model.parameters(), *model.buffers())}


WAYS = {
    "to": lambda model, place: model.to(place),
    "to_and_dtype": lambda model, place: model.to(place, torch.float64),
    "non_blocking": lambda model, place: model.to(place, non_blocking=True),
    "like_a_tensor": lambda model, place: model.to(torch.empty(0, device=place)),
    "by_name": lambda model, place: getattr(model, place.type)(
        *([place.index] if place.type != "cpu" else [])
    ),
    "to_empty": lambda model, place: model.to_empty(device=place),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("route", ["cpu to device", "device to cpu", "device to other"])
def test_parameters_stay_the_same(request, module, device, way, route):
    there = request.getfixturevalue("other") if route.endswith("other") else device
    start, end = {
        "cpu to device": (torch.device("cpu"), there),
        "device to cpu": (device, torch.device("cpu")),
        "device to other": (device, there),
    }[route]
    with start:
        model = net()
    values = [one.detach().cpu().clone() for one in model.parameters()]
    before = dict(model.named_parameters(remove_duplicate=False))
    assert WAYS[way](model, end) is model
    module.synchronize()
    after = dict(model.named_parameters(remove_duplicate=False))
    assert after.keys() == before.keys()
    for name, one in before.items():
        assert after[name] is one, name
    assert model.head.weight is model.embed.weight
    assert devices_of(model) == {end}
    assert [one.requires_grad for one in model.parameters()] == [False, True, True, True]
    if way != "to_empty":
        dtype = torch.float64 if way == "to_and_dtype" else torch.float32
        for one, value in zip(model.parameters(), values):
            assert torch.equal(one.detach().cpu(), value.to(dtype))


def test_there_and_back(device):
    model = net()
    before = list(model.parameters())
    for place in (device, "cpu") * 3:
        model.to(place)
        loss_of(model, place).backward()
    assert all(one is two for one, two in zip(before, model.parameters()))
    assert devices_of(model) == {torch.device("cpu")}


OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01),
}


def trained(model, optimizer, place, steps=4):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, place)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("made", ["before", "after"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_an_optimizer_trains_what_moves(device, kind, made):
    make = OPTIMIZERS[kind]
    here = net()
    expected = trained(here, make(here.parameters()), "cpu")
    there = net()
    optimizer = make(there.parameters()) if made == "before" else None
    there.to(device)
    optimizer = optimizer or make(there.parameters())
    assert trained(there, optimizer, device) == pytest.approx(expected, rel=1e-4)
    assert expected[-1] < expected[0]
    for one, two in zip(there.parameters(), here.parameters()):
        torch.testing.assert_close(one.detach().cpu(), two.detach())


def test_an_optimizer_s_state_stays_where_it_is(device):
    """As on any device: PyTorch moves it when it loads it."""
    model = net()
    optimizer = OPTIMIZERS["momentum"](model.parameters())
    expected = trained(model, optimizer, "cpu", 6)
    model = net()
    optimizer = OPTIMIZERS["momentum"](model.parameters())
    losses = trained(model, optimizer, "cpu", 3)
    model.to(device)
    assert {one["momentum_buffer"].device.type for one in optimizer.state.values()} == {"cpu"}
    state = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(RuntimeError, match="on the same device"):
        trained(model, optimizer, device, 1)
    optimizer.load_state_dict(state)
    losses += trained(model, optimizer, device, 3)
    assert losses == pytest.approx(expected, rel=1e-4)


def test_a_scheduler_and_clipping_see_the_parameters(device):
    model = net()
    optimizer = OPTIMIZERS["SGD"](model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    average = torch.optim.swa_utils.AveragedModel(model)
    parameters = [one for one in model.parameters() if one.requires_grad]
    model.to(device)
    average.to(device)
    trained(model, optimizer, device, 1)
    scheduler.step()
    average.update_parameters(model)
    loss_of(model, device).backward()
    assert nn.utils.clip_grad_norm_(parameters, 1e-3).device == device
    assert float(nn.utils.parameters_to_vector(one.grad for one in parameters).norm()) < 1.1e-3


def test_gradients_move_and_stay(device):
    model = net()
    loss_of(model, "cpu").backward()
    grads = [one.grad for one in model.parameters()]
    values = [grad.clone() for grad in grads if grad is not None]
    model.to(device)
    assert all(one.grad is grad for one, grad in zip(model.parameters(), grads))
    grads = [grad for grad in grads if grad is not None]
    assert {grad.device for grad in grads} == {device}
    assert all(torch.equal(grad.cpu(), value) for grad, value in zip(grads, values))
    loss_of(model, device).backward()  # is added
    for grad, value in zip(grads, values):
        torch.testing.assert_close(grad.cpu(), value * 2)


def test_sparse_gradients_move(device):
    model = nn.Embedding(6, 2, sparse=True)
    model(torch.tensor([1, 3])).sum().backward()
    weight, value = model.weight, model.weight.grad.to_dense()
    model.to(device)
    assert model.weight is weight
    assert weight.grad.is_sparse
    assert weight.grad.device == device
    assert torch.equal(weight.grad.to_dense().cpu(), value)


def test_hooks_and_attributes_stay(device):
    seen = []
    model = nn.Linear(2, 1)
    weight = model.weight
    weight.label = "mine"
    weight.register_hook(lambda grad: seen.append(("tensor", grad.device)) or grad * 2)
    weight.register_post_accumulate_grad_hook(lambda one: seen.append(("post", one.grad.device)))
    gone = weight.register_hook(lambda grad: seen.append(("gone", grad.device)))
    model.register_forward_pre_hook(lambda *_: seen.append(("pre", None)))
    model.register_forward_hook(lambda *_: seen.append(("forward", None)))
    model.register_full_backward_hook(lambda *_: seen.append(("backward", None)))
    model.to(device)
    gone.remove()
    model(torch.ones(3, 2, device=device)).sum().backward()
    assert seen == [
        ("pre", None), ("forward", None), ("backward", None), ("tensor", device), ("post", device)
    ]  # fmt: skip
    assert weight.grad.tolist() == [[6.0, 6.0]]
    assert model.weight.label == "mine"


def test_an_optimizer_in_backward(device):
    """A hook of a parameter takes the step of its own optimizer."""
    here, there = net(), net()
    hooks = []
    for model in (here, there):
        steps = {one: OPTIMIZERS["SGD"]([one]) for one in model.parameters() if one.requires_grad}
        for one in steps:
            step = one.register_post_accumulate_grad_hook(lambda one, all_=steps: all_[one].step())
            hooks.append(step)
    there.to(device)
    loss_of(here, "cpu").backward()
    loss_of(there, device).backward()
    for one, two in zip(there.parameters(), here.parameters()):
        torch.testing.assert_close(one.detach().cpu(), two.detach())
    for hook in hooks:  # with them, the parameters would stay for ever
        hook.remove()


def test_a_parameter_s_class_stays(device):
    class Special(nn.Parameter):
        pass

    model = nn.Module()
    model.weight = special = Special(torch.ones(2))
    assert model.to(device).weight is special
    assert type(special) is Special
    assert special.device == device


def test_weak_references_stay(device):
    model = net()
    weight = weakref.ref(model.head.weight)
    assert model.to(device).head.weight is weight()
    del model
    gc.collect()
    assert weight() is None


def test_a_state_dict(device):
    """As on any device: its tensors stay, unless it has the parameters themselves."""
    model = net()
    copied, own = model.state_dict(), model.state_dict(keep_vars=True)
    model.to(device)
    assert {one.device.type for one in copied.values()} == {"cpu"}
    assert own["embed.weight"] is model.embed.weight
    there = model.state_dict()
    assert there["embed.weight"].data_ptr() == there["head.weight"].data_ptr()
    assert there["embed.weight"].data_ptr() == model.embed.weight.data_ptr()
    model.load_state_dict(copied)
    assert model.embed.weight is own["embed.weight"]
    assert devices_of(model) == {device}


def test_a_copy_and_a_file_of_what_moved(device):
    moved = net().to(device)
    file = io.BytesIO()
    torch.save(moved, file)
    file.seek(0)
    pickled = pickle.loads(pickle.dumps(moved))
    for one in (copy.deepcopy(moved), torch.load(file, weights_only=False), pickled):
        assert one.head.weight is one.embed.weight
        assert one.head.weight is not moved.head.weight
        assert devices_of(one) == {device}
        assert loss_of(one, device).item() == loss_of(moved, device).item()


def test_shared_memory_is_left_behind(device):
    model = net().share_memory()
    weight = model.head.weight
    values = weight.detach()
    assert model.to(device).head.weight is weight
    assert values.is_shared()
    with torch.no_grad():
        weight.zero_()
    assert values.abs().sum() > 0


def test_the_memory_on_the_device_is_given_back(device, module):
    model = nn.Linear(512, 512)
    model.to(device)
    full = module.memory_allocated()
    model.cpu()
    assert module.memory_allocated() <= full - 512 * 512 * 4


def test_to_empty_from_meta(device):
    """As on any device: what has no memory gets new parameters."""
    kept = []
    for place in ("cpu", device):
        with torch.device("meta"):
            model = net()
        weight = model.head.weight
        model.to_empty(device=place)
        kept.append(model.head.weight is weight)
        assert devices_of(model) == {torch.device(place)}
        with pytest.raises(NotImplementedError, match="meta tensor"):
            nn.Linear(2, 2, device="meta").to(place)
    assert kept[0] == kept[1]


LAZY = {
    "LazyLinear": (lambda: nn.LazyLinear(2), (3, 4)),
    "LazyConv2d": (lambda: nn.LazyConv2d(2, 3), (1, 2, 5, 5)),
    "LazyConvTranspose1d": (lambda: nn.LazyConvTranspose1d(2, 3), (1, 2, 5)),
    "LazyBatchNorm1d": (lambda: nn.LazyBatchNorm1d(), (3, 4)),
}


@pytest.mark.parametrize("way", ["to", "to_and_dtype", "like_a_tensor", "by_name"])
@pytest.mark.parametrize("kind", LAZY)
def test_lazy_modules(device, kind, way):
    make, shape = LAZY[kind]
    model = make()
    weight = model.weight
    WAYS[way](model, device)
    dtype = torch.float64 if way == "to_and_dtype" else torch.float32
    inputs = torch.ones(shape, device=device, dtype=dtype)
    result = model(inputs)
    assert model.weight is weight
    assert not nn.parameter.is_lazy(weight)
    assert devices_of(model) == {device}
    assert weight.dtype == result.dtype == dtype
    result.sum().backward()
    here = copy.deepcopy(model).cpu()
    torch.testing.assert_close(here(inputs.cpu()), model(inputs).cpu())


WRAPPED = {
    "weight_norm": lambda: parametrizations.weight_norm(nn.Linear(4, 3)),
    "spectral_norm": lambda: parametrizations.spectral_norm(nn.Linear(4, 3)),
    "orthogonal": lambda: parametrizations.orthogonal(nn.Linear(4, 4)),
    "hook_weight_norm": lambda: nn.utils.weight_norm(nn.Linear(4, 3)),
    "hook_spectral_norm": lambda: nn.utils.spectral_norm(nn.Linear(4, 3)),
    "pruned": lambda: prune.l1_unstructured(nn.Linear(4, 3), "weight", 5),
}


@pytest.mark.parametrize("kind", WRAPPED)
@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated:FutureWarning")
def test_parametrizations(device, kind):
    torch.manual_seed(0)
    here = WRAPPED[kind]()
    torch.manual_seed(0)
    there = WRAPPED[kind]()
    before = dict(there.named_parameters())
    there.to(device)
    assert all(one is before[name] for name, one in there.named_parameters())
    optimizers = [OPTIMIZERS["SGD"](before.values()), OPTIMIZERS["SGD"](here.parameters())]
    inputs = torch.randn(5, 4)
    for _ in range(2):
        for model, place, optimizer in zip((there, here), (device, "cpu"), optimizers):
            optimizer.zero_grad()
            model(inputs.to(place)).square().sum().backward()
            optimizer.step()
    for one, two in zip(there.parameters(), here.parameters()):
        torch.testing.assert_close(one.detach().cpu(), two.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_networks_keep_their_weights(device, kind):
    torch.manual_seed(0)
    here = kind(3, 4, num_layers=2, batch_first=True)
    there = copy.deepcopy(here)
    before = list(there.parameters())
    there.to(device)
    assert all(one is two for one, two in zip(before, there.parameters()))
    assert all(one is two for one, two in zip(before, there._flat_weights))
    inputs = torch.randn(2, 5, 3)
    torch.testing.assert_close(there(inputs.to(device))[0].cpu(), here(inputs)[0])


def test_memory_formats_move(device):
    model = nn.Conv2d(3, 4, 3)
    weight = model.weight
    model.to(device, memory_format=torch.channels_last)
    assert model.weight is weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert weight.device == device
    model.to(memory_format=torch.contiguous_format).cpu()
    assert model.weight is weight
    assert weight.is_contiguous()


def test_dtypes_change_on_the_device(device):
    model = net().to(device)
    before = list(model.parameters())
    for change, dtype in [("half", torch.float16), ("bfloat16", torch.bfloat16),
                          ("double", torch.float64), ("float", torch.float32)]:  # fmt: skip
        getattr(model, change)()
        assert {one.dtype for one in model.parameters()} == {dtype}
        assert all(one is two for one, two in zip(before, model.parameters()))


def test_views_of_one_memory_come_apart(device):
    """As on any device: each parameter gets memory of its own."""
    whole = torch.arange(6.0)
    model = nn.ParameterList(nn.Parameter(part) for part in whole.view(2, 3))
    parts = list(model)
    model.to(device)
    assert all(one is two for one, two in zip(parts, model))
    with torch.no_grad():
        model[0].fill_(7)
    assert model[1].tolist() == [3.0, 4.0, 5.0]
    assert whole.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_modes_without_gradients(device, mode):
    """A move is as a change of dtype on the CPU, of which PyTorch says the same."""
    answers = []
    for move in (lambda model: model.double(), lambda model: model.to(device)):
        model = net()
        before = list(model.parameters())
        with mode():
            move(model)
        after = list(model.parameters())
        answers.append([
            [(one is two, two.requires_grad, two.is_inference()) for one, two in zip(before, after)]
        ])  # fmt: skip
    assert answers[0] == answers[1]


@pytest.mark.parametrize("setting", ["overwrite", "swap"])
@pytest.mark.parametrize("back", [False, True])
def test_settings_of_conversion(device, setting, back):
    """As on any device: new parameters are put in place, or the tensors swapped."""
    ask = getattr(torch.__future__, f"get_{setting}_module_params_on_conversion")
    change = getattr(torch.__future__, f"set_{setting}_module_params_on_conversion")
    before = ask()
    model = net().to(device if back else "cpu")
    weights = list(model.parameters())
    change(True)
    try:
        model.to("cpu" if back else device)
    finally:
        change(before)
    kept = [one is two for one, two in zip(weights, model.parameters())]
    assert kept == [setting == "swap"] * 4
    assert {one.device for one in model.parameters()} == {torch.device("cpu") if back else device}


def test_a_script_module_moves(device, tmp_path):
    script = torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.Tanh()))
    inputs = torch.randn(4, 3)
    expected = script(inputs)
    script.save(str(tmp_path / "script.pt"))
    optimizer = OPTIMIZERS["SGD"](script.parameters())
    assert {one.device for one in script.to(device).parameters()} == {device}
    torch.testing.assert_close(script(inputs.to(device)).cpu(), expected)
    before = [one.detach().clone() for one in script.parameters()]
    script(inputs.to(device)).sum().backward()
    optimizer.step()
    assert not all(torch.equal(one, two) for one, two in zip(before, script.parameters()))
    loaded = torch.jit.load(str(tmp_path / "script.pt")).to(device)
    torch.testing.assert_close(loaded(inputs.to(device)).cpu(), expected)
    loaded = torch.jit.load(str(tmp_path / "script.pt"), map_location=device)
    torch.testing.assert_close(loaded.cpu()(inputs), expected)


def test_a_module_that_moves_between_two_devices_trains(device, other):
    model = net()
    optimizer = OPTIMIZERS["SGD"](model.parameters())
    here = net()
    expected = trained(here, OPTIMIZERS["SGD"](here.parameters()), "cpu", 6)
    losses = []
    for place in (device, other, device):
        losses += trained(model.to(place), optimizer, place, 2)
    assert losses == pytest.approx(expected, rel=1e-4)


def test_compiled_modules_move(device):
    model = net()
    weight = model.head.weight
    compiled = torch.compile(model, backend="aot_eager")
    expected = loss_of(compiled, "cpu").item()
    compiled.to(device)
    assert model.head.weight is weight
    assert loss_of(compiled, device).item() == pytest.approx(expected, rel=1e-4)
