# SPDX-License-Identifier: Apache-2.0
"""Generators of the device: seeds, states, offsets, and what draws from them."""

import copy
import io
import pickle
import struct
import threading

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def counted(state):
    """Seed and offset of a state."""
    assert state.dtype == torch.uint8
    assert state.device.type == "cpu"
    return struct.unpack("<QQ", bytes(state.tolist()))


def lstm(place):
    torch.manual_seed(0)
    net = nn.LSTM(4, 4, num_layers=2, dropout=0.5).to(place)
    return lambda: net(torch.ones(3, 2, 4, device=place))[0].detach()


def attention(place):
    query = torch.ones(1, 2, 16, 8, device=place)
    return lambda: F.scaled_dot_product_attention(query, query, query, dropout_p=0.5)


# How to draw on a device; those with a net make it before.
DRAWS = {
    "rand_like": lambda place: lambda: torch.rand_like(torch.ones(20, device=place)),
    "randn_like": lambda place: lambda: torch.randn_like(torch.ones(20, device=place)),
    "randint_like": lambda place: lambda: torch.randint_like(torch.ones(20, device=place), 1000),
    "normal": lambda place: lambda: torch.normal(torch.zeros(20, device=place), 1.0),
    "normal_": lambda place: lambda: torch.empty(20, device=place).normal_(),
    "log_normal_": lambda place: lambda: torch.empty(20, device=place).log_normal_(),
    "exponential_": lambda place: lambda: torch.empty(20, device=place).exponential_(),
    "cauchy_": lambda place: lambda: torch.empty(20, device=place).cauchy_(),
    "geometric_": lambda place: lambda: torch.empty(20, device=place).geometric_(0.1),
    "random_": lambda place: lambda: torch.empty(20, device=place).random_(),
    "bernoulli_": lambda place: lambda: torch.empty(64, device=place).bernoulli_(0.5),
    "poisson": lambda place: lambda: torch.poisson(torch.full((20,), 50.0, device=place)),
    "gamma": lambda place: lambda: torch._standard_gamma(torch.ones(20, device=place)),
    "dirichlet": lambda place: lambda: torch._sample_dirichlet(torch.ones(20, device=place)),
    "complex": lambda place: lambda: torch.randn(20, dtype=torch.complex64, device=place),
    "half": lambda place: lambda: torch.rand(40, dtype=torch.float16, device=place),
    "multinomial": lambda place: lambda: torch.multinomial(torch.ones(99, device=place), 20, True),
    "dropout": lambda place: lambda: F.dropout(torch.ones(64, device=place)),
    "dropout2d": lambda place: lambda: F.dropout2d(torch.ones(4, 32, 2, 2, device=place)),
    "alpha_dropout": lambda place: lambda: F.alpha_dropout(torch.ones(64, device=place), 0.5, True),
    "rrelu": lambda place: lambda: F.rrelu(-torch.ones(64, device=place), training=True),
    "gumbel_softmax": lambda place: lambda: F.gumbel_softmax(torch.ones(64, device=place)),
    "xavier": lambda place: lambda: nn.init.xavier_normal_(torch.empty(4, 5, device=place)),
    "kaiming": lambda place: lambda: nn.init.kaiming_uniform_(torch.empty(4, 5, device=place)),
    "trunc_normal": lambda place: lambda: nn.init.trunc_normal_(torch.empty(20, device=place)),
    "orthogonal": lambda place: lambda: nn.init.orthogonal_(torch.empty(4, 5, device=place)),
    "linear": lambda place: lambda: nn.Linear(4, 4, device=place).weight.detach(),
    "distribution": lambda place: (
        lambda: torch.distributions.Normal(torch.zeros(20, device=place), 1.0).sample()
    ),
    "lstm": lstm,
    "attention": attention,
}


@pytest.mark.parametrize("draw", DRAWS)
def test_equal_states_give_equal_numbers(module, device, draw):
    take = DRAWS[draw](device)
    torch.manual_seed(5)
    first = take().cpu()
    state = module.get_rng_state()
    second = take().cpu()
    assert first.shape == second.shape
    assert not torch.equal(first, second)
    module.set_rng_state(state)
    assert torch.equal(take().cpu(), second)
    torch.manual_seed(5)
    assert torch.equal(take().cpu(), first)


def test_a_state_is_a_seed_and_an_offset(module, device):
    torch.manual_seed(1234)
    assert counted(module.get_rng_state()) == (1234, 0)
    torch.rand(3, device=device)
    seed, offset = counted(module.get_rng_state())
    assert seed == 1234
    assert offset > 0
    assert offset % 4 == 0


def test_numbers_follow_from_seed_and_offset_alone(module, device):
    module.set_rng_state(torch.tensor(list(struct.pack("<QQ", 99, 400)), dtype=torch.uint8))
    first = torch.rand(9, device=device).cpu()
    module.manual_seed(99)
    assert not torch.equal(torch.rand(9, device=device).cpu(), first)
    generator = torch.Generator(device=device)
    generator.set_state(torch.tensor(list(struct.pack("<QQ", 99, 400)), dtype=torch.uint8))
    assert torch.equal(torch.rand(9, generator=generator, device=device).cpu(), first)


@pytest.mark.parametrize(
    "state, error",
    [
        (torch.zeros(16), TypeError),
        (torch.zeros(8, dtype=torch.uint8), RuntimeError),
        (torch.zeros(5000, dtype=torch.uint8), RuntimeError),
        (torch.zeros(32, dtype=torch.uint8)[::2], RuntimeError),
        (torch.tensor([0] * 8 + [3] + [0] * 7, dtype=torch.uint8), RuntimeError),
    ],
    ids=["not bytes", "too short", "too long", "not contiguous", "odd offset"],
)
def test_what_is_no_state_is_refused(module, state, error):
    torch.manual_seed(3)
    with pytest.raises(error, match="RNG state|multiple of 4"):
        module.set_rng_state(state)
    assert module.initial_seed() == 3


def test_a_state_without_memory_is_refused(name):
    """What tracing has in place of tensors."""
    generator = torch.Generator(device=name).manual_seed(3)
    with FakeTensorMode():
        state = torch.empty(16, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="not allocated"):
        generator.set_state(state)
    assert generator.initial_seed() == 3


@pytest.mark.parametrize(
    "seed, stored",
    [(0, 0), (-1, 2**64 - 1), (2**63, 2**63), (2**64 - 1, 2**64 - 1), (-(2**63), 2**63)],
)
def test_seeds_have_64_bits(module, device, seed, stored):
    torch.manual_seed(seed)
    assert module.initial_seed() == stored
    first = torch.rand(5, device=device).cpu()
    assert torch.Generator(device=device).manual_seed(seed).initial_seed() == stored
    module.manual_seed(seed)
    assert torch.equal(torch.rand(5, device=device).cpu(), first)


@pytest.mark.parametrize("bit", [0, 31, 32, 63])
def test_each_bit_of_a_seed_counts(module, device, bit):
    module.manual_seed(7)
    first = torch.rand(5, device=device).cpu()
    module.manual_seed(7 ^ (1 << bit))
    assert not torch.equal(torch.rand(5, device=device).cpu(), first)


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_what_is_no_seed_is_refused(module, seed):
    for function in (module.manual_seed, module.manual_seed_all):
        with pytest.raises(RuntimeError, match="seed"):
            function(seed)


def test_a_random_seed(module, device):
    seeds = {module.seed() for _ in range(4)}
    assert len(seeds) == 4
    last = module.seed()
    assert module.initial_seed() == last
    first = torch.rand(5, device=device).cpu()
    module.manual_seed(last)
    assert torch.equal(torch.rand(5, device=device).cpu(), first)


def test_one_random_seed_for_all(module, device, other):
    seed = module.seed_all()
    for index in (0, 1):
        with module.device(index):
            assert module.initial_seed() == seed
    assert torch.equal(torch.rand(5, device=device).cpu(), torch.rand(5, device=other).cpu())


def test_torch_seed_seeds_the_devices_too(module):
    seed = torch.seed()
    assert module.initial_seed() == seed


def test_manual_seed_is_of_the_current_device(module, other):
    module.manual_seed_all(1)
    with module.device(other):
        module.manual_seed(2)
    assert module.initial_seed() == 1
    with module.device(1):
        assert module.initial_seed() == 2


def test_states_of_all_devices(module, device, other):
    torch.manual_seed(8)
    torch.rand(3, device=other)
    states = module.get_rng_state_all()
    assert [counted(state)[1] > 0 for state in states] == [False, True]
    expected = [torch.rand(4, device=place).cpu() for place in (device, other)]
    module.set_rng_state_all(states)
    for place, values in zip((device, other), expected):
        assert torch.equal(torch.rand(4, device=place).cpu(), values)


@pytest.mark.parametrize("form", [1, "{}:1", torch.device])
def test_a_state_of_a_named_device(module, name, other, form):
    if isinstance(form, str):
        form = form.format(name)
    place = other if form is torch.device else form
    torch.manual_seed(8)
    state = module.get_rng_state(place)
    first = torch.rand(4, device=other).cpu()
    module.set_rng_state(state, place)
    assert torch.equal(torch.rand(4, device=other).cpu(), first)
    assert counted(module.get_rng_state(0)) == (8, 0)


def test_no_such_device(module):
    with pytest.raises(ValueError, match="9"):
        module.get_rng_state(9)


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: torch.randn(2, generator=g),
        lambda g: torch.randn(2, generator=g, device="cpu"),
        lambda g: torch.ones(2).uniform_(generator=g),
        lambda g: torch.randperm(4, generator=g),
        lambda g: torch.multinomial(torch.ones(3), 2, generator=g),
    ],
)
def test_a_generator_of_the_device_is_not_the_cpu_s(device, name, draw):
    with pytest.raises(RuntimeError, match=f"Expected a 'cpu' device type .* found '{name}'"):
        draw(torch.Generator(device))


def test_default_generators(module, device, other):
    generators = module.default_generators
    assert len(generators) == module.device_count()
    assert [one.device for one in generators] == [device, other]
    assert generators[-1].device == other
    assert [one.device for one in generators[:1]] == [device]
    with pytest.raises(IndexError):
        generators[2]
    assert generators[0] is generators[0]
    generators[1].manual_seed(77)
    with module.device(1):
        assert module.initial_seed() == 77
    torch.manual_seed(6)
    first = torch.rand(4, device=device).cpu()
    generators[0].manual_seed(6)
    assert torch.equal(torch.rand(4, device=device, generator=generators[0]).cpu(), first)


def test_the_module_s_part_for_random_numbers(module):
    for name in torch.cuda.random.__all__:
        assert getattr(module.random, name) is getattr(module, name)


def test_fork_rng_of_all_devices(device, other, name):
    torch.manual_seed(2)
    with torch.random.fork_rng(devices=[0, 1], device_type=name):
        inside = [torch.randn(4, device=place).cpu() for place in (device, other)]
        torch.manual_seed(55)
    outside = [torch.randn(4, device=place).cpu() for place in (device, other)]
    for one, two in zip(inside, outside):
        assert torch.equal(one, two)


def test_fork_rng_leaves_other_devices(device, other, name):
    torch.manual_seed(2)
    with torch.random.fork_rng(devices=[0], device_type=name):
        first = torch.randn(4, device=other).cpu()
    assert not torch.equal(torch.randn(4, device=other).cpu(), first)


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("keep", [True, False])
def test_checkpointing(device, use_reentrant, keep):
    """With the state kept, the second pass has the same dropout as the first."""

    def noisy(x):
        return F.dropout(x, 0.5) * x

    x = torch.ones(400, device=device, requires_grad=True)
    torch.manual_seed(4)
    out = checkpoint(noisy, x, use_reentrant=use_reentrant, preserve_rng_state=keep)
    torch.rand(3, device=device)
    out.sum().backward()
    # d(x * x * mask / keep) = 2 * x * mask / keep, where the mask of the second pass counts
    assert torch.equal(x.grad, 2 * out.detach()) == keep


@pytest.mark.parametrize("probability", [0.0, 0.3, 1.0])
def test_dropout_is_scaled_and_its_gradient_has_its_mask(device, probability):
    x = torch.ones(10_000, device=device, requires_grad=True)
    out = F.dropout(x, probability)
    out.sum().backward()
    assert torch.equal(out.detach(), x.grad)
    share = (out == 0).float().mean().item()
    assert share == pytest.approx(probability, abs=0.03)
    if probability < 1:
        assert out.max().item() == pytest.approx(1 / (1 - probability))


def test_dropout_of_evaluation_draws_nothing(module, device):
    state = module.get_rng_state()
    x = torch.ones(5, device=device)
    assert torch.equal(F.dropout(x, training=False), x)
    assert torch.equal(module.get_rng_state(), state)


def test_numbers_are_those_of_their_distribution(device):
    torch.manual_seed(1)
    uniform = torch.rand(100_000, device=device)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert uniform.mean().item() == pytest.approx(0.5, abs=0.01)
    normal = torch.randn(100_000, device=device)
    assert normal.mean().item() == pytest.approx(0, abs=0.02)
    assert normal.std().item() == pytest.approx(1, abs=0.02)
    together = torch.corrcoef(torch.stack([uniform.cpu(), normal.cpu()]))
    assert abs(together[0, 1]) < 0.02


def test_many_small_draws_are_all_different(device):
    torch.manual_seed(1)
    firsts = torch.cat([torch.rand(2, dtype=torch.float64, device=device) for _ in range(500)])
    assert firsts.cpu().unique().numel() == 1000


def test_randperm_is_a_permutation(device):
    values = torch.randperm(1000, device=device)
    assert torch.equal(values.sort().values.cpu(), torch.arange(1000))


GIVEN = {
    "randn": lambda g, place: torch.randn(9, generator=g, device=place),
    "randint": lambda g, place: torch.randint(99, (9,), generator=g, device=place),
    "randperm": lambda g, place: torch.randperm(9, generator=g, device=place),
    "bernoulli": lambda g, place: torch.bernoulli(
        torch.full((64,), 0.5, device=place), generator=g
    ),
    "multinomial": lambda g, place: torch.multinomial(torch.ones(64, device=place), 9, generator=g),
    "uniform_": lambda g, place: torch.empty(9, device=place).uniform_(generator=g),
    "normal": lambda g, place: torch.normal(0.0, 1.0, (9,), generator=g, device=place),
    "init": lambda g, place: nn.init.normal_(torch.empty(9, device=place), generator=g),
}


@pytest.mark.parametrize("draw", GIVEN)
def test_a_given_generator_is_the_one_drawn_from(module, device, draw):
    generator = torch.Generator(device=device).manual_seed(3)
    before = module.get_rng_state()
    first = GIVEN[draw](generator, device).cpu()
    assert torch.equal(module.get_rng_state(), before)
    assert counted(generator.get_state())[1] > 0
    generator.manual_seed(3)
    assert torch.equal(GIVEN[draw](generator, device).cpu(), first)
    module.manual_seed(3)
    assert torch.equal(GIVEN[draw](None, device).cpu(), first)


def test_a_generator_takes_the_current_device(module, name, other):
    with module.device(1):
        assert torch.Generator(device=name).device == other


def test_a_generator_of_no_device(name):
    with pytest.raises(RuntimeError, match="7"):
        torch.Generator(device=f"{name}:7")


COPIES = {"pickle": lambda one: pickle.loads(pickle.dumps(one)), "deepcopy": copy.deepcopy}
if hasattr(torch.Generator, "clone_state"):  # since PyTorch 2.4
    COPIES["clone_state"] = lambda one: one.clone_state()


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_goes_on_by_itself(other, way):
    generator = torch.Generator(device=other).manual_seed(2**63 + 9)
    torch.rand(4, generator=generator, device=other)
    twin = COPIES[way](generator)
    assert twin.device == other
    assert twin.initial_seed() == 2**63 + 9
    first = torch.rand(4, generator=generator, device=other).cpu()
    assert torch.equal(torch.rand(4, generator=twin, device=other).cpu(), first)
    torch.rand(4, generator=twin, device=other)
    assert not torch.equal(twin.get_state(), generator.get_state())


def test_a_state_is_saved_with_a_training_run(module, device):
    torch.manual_seed(12)
    torch.rand(5, device=device)
    file = io.BytesIO()
    torch.save({"rng": module.get_rng_state_all()}, file)
    expected = torch.rand(5, device=device).cpu()
    file.seek(0)
    module.set_rng_state_all(torch.load(file)["rng"])
    assert torch.equal(torch.rand(5, device=device).cpu(), expected)


def test_threads_share_a_generator_and_lose_nothing(device):
    """Each draw takes its own part: as a set, the numbers are those of one thread."""
    generator = torch.Generator(device=device)

    def draws(count):
        return [torch.rand(3, generator=generator, device=device).cpu() for _ in range(count)]

    generator.manual_seed(5)
    alone = {tuple(one.tolist()) for one in draws(80)}
    assert len(alone) == 80
    last = generator.get_state()
    generator.manual_seed(5)
    together = []
    threads = [threading.Thread(target=lambda: together.extend(draws(20))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {tuple(one.tolist()) for one in together} == alone
    assert torch.equal(generator.get_state(), last)


def test_attention_draws_its_mask_once(device):
    """The gradient is that of the same mask, though the mask is made twice."""
    query = torch.randn(1, 2, 8, 4, device=device, requires_grad=True)
    eye = torch.eye(8, device=device).expand(1, 2, 8, 8).contiguous().requires_grad_()
    torch.manual_seed(3)
    out = F.scaled_dot_product_attention(query, query.detach(), eye, dropout_p=0.5)
    (grad,) = torch.autograd.grad(out.sum(), eye)
    columns = out.detach().sum(-2)  # with values of an identity, the output is the weights
    torch.testing.assert_close(grad.cpu(), columns[..., None].expand_as(eye).cpu())


@pytest.mark.parametrize("view", [lambda t: t, lambda t: t.t(), lambda t: t[::2, ::3]])
def test_numbers_do_not_depend_on_what_was_there(device, view):
    drawn = []
    for before in (0.0, 7.0):
        made = torch.full((8, 12), before, device=device)
        torch.manual_seed(3)
        view(made).uniform_()
        drawn.append(view(made).cpu())
    assert torch.equal(*drawn)
    assert 0 <= drawn[0].min() and drawn[0].max() < 1
