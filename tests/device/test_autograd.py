# SPDX-License-Identifier: Apache-2.0
"""Gradients: on streams, in threads, through checkpoints, hooks, torch.func and functions of one's
own; each beside the CPU."""

import copy
import threading
import warnings

import pytest
import torch
from stream_tools import in_threads, on
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 2))


def pair(device):
    """A network on the CPU, the same on the device, and inputs of both."""
    here = network()
    inputs = torch.randn(5, 6)
    return (here, inputs), (copy.deepcopy(here).to(device), inputs.to(device))


def assert_same_gradients(here, there):
    for ours, theirs in zip(there.parameters(), here.parameters()):
        assert ours.grad.device == ours.device
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad)


# Streams.


@pytest.mark.needs("events")
def test_backward_runs_on_the_streams_of_forward(device, work, streams):
    """What a stream has still to do before forward, backward does not overtake either."""
    leaf = torch.zeros(1 << 16, device=device, requires_grad=True)
    ones = torch.ones(1 << 16, device=device)
    factor = torch.zeros(1 << 16, device=device)
    getattr(torch, device.type).synchronize()
    work(streams[0])
    with on(streams[0]):
        factor.copy_(ones)
        loss = (leaf * factor).sum()
    loss.backward()
    getattr(torch, device.type).synchronize()
    assert leaf.grad.sum().item() == 1 << 16


@pytest.mark.needs("events")
def test_the_stream_that_calls_backward_may_use_the_gradients(device, work, streams):
    values = torch.ones(1 << 18, device=device)
    leaf = torch.ones(1 << 18, device=device, requires_grad=True)
    getattr(torch, device.type).synchronize()
    with on(streams[0]):
        work(streams[0])
        loss = (leaf * values).square().sum()
    with on(streams[1]):
        loss.backward()
        total = leaf.grad.sum()
        assert total.item() == 2 * (1 << 18)


@pytest.mark.needs("events")
def test_branches_of_a_graph_on_streams(device, streams):
    for _ in range(5):
        leaf = torch.full((1000,), 2.0, device=device, requires_grad=True)
        getattr(torch, device.type).synchronize()
        with on(streams[0]):
            left = leaf * 3
        with on(streams[1]):
            right = leaf * leaf
        for stream in streams:
            stream.synchronize()
        (left + right).sum().backward()
        getattr(torch, device.type).synchronize()
        assert set(leaf.grad.cpu().tolist()) == {7.0}


@pytest.mark.needs("events")
def test_training_steps_on_streams_in_turns(device, streams):
    (here, inputs), (there, theirs) = pair(device)
    before = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch tells that gradients go between streams
        for number in range(6):
            here(inputs).square().sum().backward()
            stream = streams[number % 2]
            if before is not None:
                stream.wait_stream(before)
            else:
                getattr(torch, device.type).synchronize()
            with on(stream):
                there(theirs).square().sum().backward()
            before = stream
    before.synchronize()
    assert_same_gradients(here, there)


# Threads.


def test_forward_and_backward_in_threads(device):
    (here, inputs), (there, theirs) = pair(device)
    here(inputs).square().sum().backward()

    def work(_):
        mine = copy.deepcopy(there)
        for _ in range(3):
            mine.zero_grad()
            mine(theirs).square().sum().backward()
        assert_same_gradients(here, mine)

    in_threads(work)


def test_threads_that_share_parameters(device):
    """PyTorch adds what they compute; each adds the same."""
    (here, inputs), (there, theirs) = pair(device)
    here(inputs).sum().backward()
    lock = threading.Lock()

    def work(_):
        loss = there(theirs).sum()
        with lock:
            loss.backward()

    in_threads(work, 4)
    for ours, theirs in zip(there.parameters(), here.parameters()):
        torch.testing.assert_close(ours.grad.cpu(), 4 * theirs.grad)


def test_threads_on_two_devices(device, other):
    (here, inputs), _ = pair(device)
    here(inputs).sum().backward()

    def work(number):
        place = device if number % 2 else other
        mine = copy.deepcopy(here).to(place)
        mine.zero_grad()
        mine(inputs.to(place)).sum().backward()
        assert_same_gradients(here, mine)

    in_threads(work)


def test_forward_in_one_thread_and_backward_in_another(device):
    (here, inputs), (there, theirs) = pair(device)
    here(inputs).sum().backward()
    loss = there(theirs).sum()
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()
    getattr(torch, device.type).synchronize()
    assert_same_gradients(here, there)


# Checkpoints.


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint(device, use_reentrant):
    (here, inputs), (there, theirs) = pair(device)
    here(inputs).square().sum().backward()
    theirs.requires_grad_()
    checkpoint(there, theirs, use_reentrant=use_reentrant).square().sum().backward()
    assert_same_gradients(here, there)


def test_checkpoint_sequential(device):
    (here, inputs), (there, theirs) = pair(device)
    here(inputs).square().sum().backward()
    result = checkpoint_sequential(there, 2, theirs.requires_grad_(), use_reentrant=False)
    result.square().sum().backward()
    assert_same_gradients(here, there)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoints_draw_the_same_numbers_again(device, use_reentrant):
    dropout = nn.Dropout(0.5)
    inputs = torch.ones(200, device=device, requires_grad=True)
    result = checkpoint(dropout, inputs, use_reentrant=use_reentrant)
    kept = result.detach().cpu()
    torch.randn(7, device=device)
    result.sum().backward()
    assert torch.equal(inputs.grad.cpu(), kept)
    assert 20 < (kept == 0).sum().item() < 180


@pytest.mark.needs("autocast")
def test_checkpoints_keep_autocast(device, module):
    dtype = module.get_amp_supported_dtype()[0]
    layer, inputs = nn.Linear(4, 4).to(device), torch.randn(3, 4, device=device)
    seen = []

    def run(values):
        result = layer(values)
        seen.append(result.dtype)
        return result.sin()

    with torch.autocast(device.type, dtype=dtype):
        loss = checkpoint(run, inputs.requires_grad_(), use_reentrant=False).sum()
    loss.backward()
    assert seen == [dtype, dtype]


def test_saved_tensors_on_the_cpu(device):
    (here, inputs), (there, theirs) = pair(device)
    here(inputs).square().sum().backward()
    with torch.autograd.graph.save_on_cpu():
        loss = there(theirs).square().sum()
    loss.backward()
    assert_same_gradients(here, there)


# torch.func.


def square_sum(values):
    return (values.sin() * values).sum()


@pytest.mark.parametrize(
    "transform",
    [
        torch.func.grad(square_sum),
        torch.func.hessian(square_sum),
        torch.func.jacrev(torch.sin),
        torch.func.jacfwd(torch.sin),
        torch.func.vmap(lambda row: row.softmax(0)),
        torch.func.vmap(torch.func.grad(lambda row: (row * row).sum())),
        lambda values: torch.func.vjp(torch.sin, values)[1](torch.ones_like(values))[0],
        lambda values: torch.func.jvp(torch.sin, (values,), (torch.ones_like(values),))[1],
        torch.func.functionalize(lambda values: values.clone().mul_(2)),
        lambda values: torch.func.linearize(torch.cos, values)[1](torch.ones_like(values)),
    ],
    ids="grad hessian jacrev jacfwd vmap vmap_grad vjp jvp functionalize linearize".split(),
)
def test_transforms(device, transform):
    values = torch.linspace(-1, 1, 6).reshape(2, 3)
    result = transform(values.to(device))
    assert result.device == device
    torch.testing.assert_close(result.cpu(), transform(values))


def test_gradients_of_each_sample(device):
    (here, inputs), (there, theirs) = pair(device)

    def samples(model, batch):
        parameters = {name: value.detach() for name, value in model.named_parameters()}

        def loss(parameters, sample):
            return torch.func.functional_call(model, parameters, (sample[None],)).square().sum()

        return torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, batch)

    ours, expected = samples(there, theirs), samples(here, inputs)
    for name, value in ours.items():
        torch.testing.assert_close(value.cpu(), expected[name])


def test_an_ensemble(device):
    models = [network().to(device) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    inputs = torch.randn(4, 6, device=device)

    def run(parameters, buffers):
        return torch.func.functional_call(models[0], (parameters, buffers), (inputs,))

    together = torch.func.vmap(run)(parameters, buffers)
    assert together.device == device
    for one, model in zip(together, models):
        torch.testing.assert_close(one.cpu(), model(inputs).cpu())


@pytest.mark.parametrize("randomness", ["different", "same"])
def test_vmap_of_random_numbers(device, randomness):
    def draw(row):
        return torch.rand_like(row)

    rows = torch.func.vmap(draw, randomness=randomness)(torch.ones(2, 50, device=device)).cpu()
    assert torch.equal(rows[0], rows[1]) == (randomness == "same")


# Hooks and functions.


def test_hooks_see_tensors_of_the_device(device):
    (_, _), (there, inputs) = pair(device)
    seen = []
    handles = [
        there[0].register_forward_pre_hook(lambda _, given: seen.append(given[0].device)),
        there[0].register_forward_hook(lambda _, given, result: seen.append(result.device)),
        there[2].register_full_backward_hook(lambda _, into, out: seen.append(out[0].device)),
        there[0].weight.register_hook(lambda gradient: seen.append(gradient.device)),
        there[0].weight.register_post_accumulate_grad_hook(
            lambda tensor: seen.append(tensor.grad.device)
        ),
    ]
    there(inputs).sum().backward()
    assert seen == [device] * 5
    for handle in handles:
        handle.remove()
    there(inputs).sum().backward()
    assert len(seen) == 5


def test_a_hook_changes_a_gradient(device):
    leaf = torch.ones(3, device=device, requires_grad=True)
    leaf.register_hook(lambda gradient: gradient * 10)
    middle = leaf * 2
    middle.retain_grad()
    middle.sum().backward()
    assert leaf.grad.cpu().tolist() == [20.0] * 3
    assert middle.grad.cpu().tolist() == [1.0] * 3


def test_an_optimizer_inside_backward(device):
    (here, inputs), (there, theirs) = pair(device)
    handles = []
    for model, batch in ((here, inputs), (there, theirs)):
        optimizers = {one: torch.optim.SGD([one], lr=0.1) for one in model.parameters()}

        def step(parameter, optimizers=optimizers):
            optimizers[parameter].step()
            parameter.grad = None

        for parameter in model.parameters():
            handles.append(parameter.register_post_accumulate_grad_hook(step))
        for _ in range(3):
            model(batch).square().sum().backward()
    for ours, expected in zip(there.parameters(), here.parameters()):
        assert ours.grad is None
        torch.testing.assert_close(ours.cpu(), expected)
    for handle in handles:  # a hook that holds its own parameter keeps it for ever
        handle.remove()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, factor):
        ctx.save_for_backward(values)
        ctx.factor = factor
        return factor * values**3

    @staticmethod
    def backward(ctx, gradient):
        (values,) = ctx.saved_tensors
        return gradient * ctx.factor * 3 * values**2, None


def test_a_function_of_one_s_own(device):
    values = torch.randn(5, dtype=torch.float64)
    leaf = values.to(device).requires_grad_()
    result = Cube.apply(leaf, 2.0)
    assert result.device == device
    result.sum().backward()
    torch.testing.assert_close(leaf.grad.cpu(), 6 * values**2)
    assert torch.autograd.gradcheck(Cube.apply, (leaf.detach().requires_grad_(), 2.0))


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        ctx.mark_dirty(values)
        return values.mul_(2)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def test_a_function_that_writes_to_its_argument(device):
    leaf = torch.ones(3, device=device, requires_grad=True)
    InPlace.apply(leaf.clone()).sum().backward()
    assert leaf.grad.cpu().tolist() == [2.0] * 3


@pytest.mark.parametrize(
    "operator",
    [torch.mm, torch.mul, torch.atan2, nn.functional.cosine_similarity, torch.linalg.solve],
    ids=["mm", "mul", "atan2", "cosine_similarity", "solve"],
)
def test_gradients_of_second_order(device, operator):
    torch.manual_seed(0)
    inputs = [torch.randn(3, 3, dtype=torch.float64, device=device) for _ in range(2)]
    inputs[0] = inputs[0] + 4 * torch.eye(3, dtype=torch.float64, device=device)
    inputs = [one.requires_grad_() for one in inputs]
    assert torch.autograd.gradcheck(operator, inputs)
    assert torch.autograd.gradgradcheck(operator, inputs)


def test_forward_mode(device):
    values = torch.randn(4)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(values.to(device), torch.ones(4, device=device))
        tangent = torch.autograd.forward_ad.unpack_dual(dual.sin()).tangent
    assert tangent.device == device
    torch.testing.assert_close(tangent.cpu(), values.cos())


def test_anomalies_are_found(device):
    leaf = torch.zeros(1, device=device, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan values"):
            (leaf.sqrt() * 0).backward()


def test_a_view_that_is_written_to(device):
    leaf = torch.ones(4, device=device, requires_grad=True)
    base = leaf * 1
    base[1:3].mul_(5)
    base.sum().backward()
    assert leaf.grad.cpu().tolist() == [1.0, 5.0, 5.0, 1.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.mul_(2)
    saved = torch.ones(3, device=device, requires_grad=True).exp()
    result = saved.exp()
    result.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_gradients_that_nobody_needs(device):
    tensor = torch.ones(2, device=device, requires_grad=True)
    with torch.no_grad():
        assert not (tensor * 2).requires_grad
    with torch.inference_mode():
        made = torch.ones(2, device=device) * 2
    assert made.is_inference() and made.cpu().tolist() == [2.0, 2.0]
    assert not tensor.detach().requires_grad


def test_an_error_in_backward_reaches_the_caller(device):
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values):
            return values.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise KeyError("broken on purpose")

    leaf = torch.ones(2, device=device, requires_grad=True)
    with pytest.raises(KeyError, match="broken on purpose"):
        Broken.apply(leaf).sum().backward()
    (leaf * 2).sum().backward()
    assert leaf.grad.cpu().tolist() == [2.0, 2.0]
