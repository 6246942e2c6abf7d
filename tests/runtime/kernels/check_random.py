# SPDX-License-Identifier: Apache-2.0
"""Kernels of the vendor's own and operators that fall back draw from one generator, in turns."""

import struct

import pytest
import torch
import torch_foo  # noqa: F401


def state_of(generator=None):
    """Seed and offset."""
    bytes_of = generator.get_state() if generator else torch.foo.get_rng_state()
    return struct.unpack("<QQ", bytes(bytes_of.tolist()))


def draws():
    """Kernels, the fallback, and kernels again."""
    yield torch.rand(1000, device="foo")
    yield torch.randint(1 << 30, (1000,), device="foo")
    yield torch.randn(1000, device="foo")
    yield torch.randn(1000, dtype=torch.float64, device="foo")  # a dtype the kernel does not have
    yield torch.randperm(1000, device="foo")
    yield torch.rand(1000, device="foo")


def drawn():
    return [values.cpu() for values in draws()]


def test_it_is_the_kernel_that_draws():
    torch.foo.reset_fallback_report()
    torch.rand(10, device="foo")
    torch.randn(10, device="foo")
    assert "uniform_" not in str(torch.foo.fallback_report())
    assert "normal_" not in str(torch.foo.fallback_report())
    torch.randn(10, dtype=torch.float64, device="foo")
    assert "aten::normal_" in str(torch.foo.fallback_report())


def test_philox():
    """The first numbers of Philox4x32-10 for key 0 and counter 0, as its authors publish them."""
    torch.foo.manual_seed(0)
    first = torch.empty(257, device="foo").uniform_()[::256].cpu()
    words = [0x6627E8D5, 0xE169C58D]
    expected = torch.tensor([(word >> 8) / (1 << 24) for word in words])
    assert torch.equal(first, expected)


def test_numbers_are_those_of_their_distribution():
    torch.manual_seed(1)
    values = torch.empty(200_000, device="foo").uniform_(-1, 3).cpu()
    assert -1 <= values.min() < -0.99
    assert 2.99 < values.max() < 3
    assert abs(values.mean() - 1) < 0.02
    values = torch.empty(200_000, device="foo").normal_(5, 2).cpu()
    assert abs(values.mean() - 5) < 0.03
    assert abs(values.std() - 2) < 0.03


def test_a_seed_gives_the_same_again():
    torch.manual_seed(3)
    first = drawn()
    second = drawn()
    torch.manual_seed(3)
    for again, values, later in zip(drawn(), first, second):
        assert torch.equal(again, values)
        assert not torch.equal(again, later)


@pytest.mark.parametrize("after", range(6))
def test_a_state_taken_between_two_draws_goes_on_from_there(after):
    torch.manual_seed(4)
    whole = drawn()
    torch.manual_seed(4)
    rest = draws()
    for _ in range(after):
        next(rest)
    state = torch.foo.get_rng_state()
    torch.rand(5, device="foo")
    torch.randperm(5, device="foo")
    torch.foo.set_rng_state(state)
    for values, expected in zip(rest, whole[after:]):
        assert torch.equal(values.cpu(), expected)


def test_offsets_are_counted_as_cuda_counts_them():
    torch.foo.manual_seed(7)
    assert state_of() == (7, 0)
    torch.rand(3, device="foo")  # one number a thread, rounded up to four
    assert state_of() == (7, 4)
    torch.rand(256 * 4 + 1, device="foo")  # five a thread
    assert state_of() == (7, 12)
    torch.randperm(9, device="foo")  # by fallback
    assert state_of() == (7, 16)


def test_no_elements_draw_nothing():
    torch.foo.manual_seed(7)
    torch.rand(0, device="foo")
    assert state_of() == (7, 0)


def test_draws_do_not_overlap():
    torch.foo.manual_seed(8)
    several = torch.cat([torch.rand(256, device="foo") for _ in range(4)]).cpu()
    assert several.unique().numel() > 1000


def test_a_generator_of_one_s_own():
    generator = torch.Generator(device="foo").manual_seed(5)
    before = torch.foo.get_rng_state()
    values = torch.empty(300, device="foo").normal_(generator=generator).cpu()
    assert torch.equal(torch.foo.get_rng_state(), before)
    assert state_of(generator) == (5, 4)
    torch.foo.manual_seed(5)
    assert torch.equal(torch.randn(300, device="foo").cpu(), values)


def test_a_generator_of_the_device_is_not_for_the_cpu():
    """PyTorch looks for the kernel by all arguments, so it calls the device's."""
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found"):
        torch.empty(3).normal_(generator=torch.Generator(device="foo"))


def test_a_generator_of_the_cpu_is_refused():
    with pytest.raises(RuntimeError, match="Expected a 'foo' device type for generator"):
        torch.empty(3, device="foo").normal_(generator=torch.Generator())


def test_each_device_has_its_own():
    torch.foo.manual_seed_all(6)
    first = torch.rand(40, device="foo:0").cpu()
    assert torch.equal(torch.rand(40, device="foo:1").cpu(), first)
    torch.rand(40, device="foo:0")
    state = torch.foo.get_rng_state("foo:1")
    torch.rand(40, device="foo:0")
    assert torch.equal(torch.foo.get_rng_state("foo:1"), state)


def test_checkpointing_draws_the_same_again():
    def noisy(x):
        return (x * torch.rand(64, device="foo") * torch.nn.functional.dropout(x)).sum()

    x = torch.randn(64, device="foo", requires_grad=True)
    torch.manual_seed(9)
    (expected,) = torch.autograd.grad(noisy(x), x)
    torch.manual_seed(9)
    result = torch.utils.checkpoint.checkpoint(noisy, x, use_reentrant=False)
    torch.rand(3, device="foo")
    (grad,) = torch.autograd.grad(result, x)
    assert torch.equal(grad.cpu(), expected.cpu())


def test_a_view_leaves_the_rest_alone():
    torch.manual_seed(2)
    values = torch.zeros(4, 6, device="foo")
    values[:, ::2].uniform_(1, 2)
    assert bool((values[:, ::2] >= 1).all())
    assert torch.equal(values[:, 1::2].cpu(), torch.zeros(4, 3))
