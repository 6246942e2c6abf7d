# SPDX-License-Identifier: Apache-2.0
"""What ranks run in test_parallel.py: training with copies of a model on every rank.

Each is compared with the training of one model on the CPU, with the batches of all ranks.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ROWS = 4  # of each rank's part of a batch


class Network(nn.Module):
    """Small, with a layer that may stay unused."""

    def __init__(self, width=16, normalize=None):
        super().__init__()
        torch.manual_seed(1)
        # A bias before a normalization has no gradient but rounding, of which Adam makes steps.
        self.first = nn.Linear(8, width, bias=normalize is None)
        self.norm = normalize(width) if normalize else nn.Identity()
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 4)
        self.unused = nn.Linear(2, 2)

    def forward(self, x, unused=False):
        hidden = torch.tanh(self.norm(self.first(x)))
        hidden = torch.tanh(self.second(hidden))
        return self.last(hidden) + (self.unused(x[:, :2]).sum() * 0 if not unused else 0)


def batch(step, size):
    """What all ranks together train with in a step."""
    generator = torch.Generator().manual_seed(step)
    return torch.randn(ROWS * size, 8, generator=generator)


def part(here, step):
    return batch(step, here.size).chunk(here.size)[here.rank].to(here.device)


def loss_of(model, x, **named):
    return (model(x, **named) - x[:, :4]).square().mean()


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=0.01)


def train(here, model, steps=3, optimizer=None, **named):
    optimizer = optimizer or adam(model)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, part(here, step), **named).backward()
        optimizer.step()
    return model


def reference(here, steps=3, make=Network, **named):
    """The same training of one process on the CPU."""
    model = make()
    optimizer = adam(model)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, batch(step, here.size), **named).backward()
        optimizer.step()
    return model


def close(model, expected, **tolerances):
    """Fails unless the parameters and buffers of two models are the same but for rounding."""
    tolerances = tolerances or {"rtol": 1e-4, "atol": 1e-5}
    values = dict(model.state_dict())
    for name, value in expected.state_dict().items():
        got = values[name]
        got = got.full_tensor() if hasattr(got, "full_tensor") else got
        message = f"{name}: {{}}".format
        torch.testing.assert_close(got.cpu(), value, msg=message, **tolerances)


def parallel(here, model=None, **options):
    model = (model or Network()).to(here.device)
    return DistributedDataParallel(model, **options)


# --- DistributedDataParallel ------------------------------------------------------------------


def ddp(here, **options):
    close(train(here, parallel(here, **options)).module, reference(here))


def ddp_of_the_ranks_device(here):
    if here.device.type == "cpu":
        return ddp(here)
    ddp(here, device_ids=[here.device.index], output_device=here.device.index)


def ddp_with_unused_parameters(here):
    model = parallel(here, find_unused_parameters=True)
    close(train(here, model, unused=True).module, reference(here, unused=True))


def ddp_begins_with_the_first_ranks_values(here):
    model = Network()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(here.rank)
    close(parallel(here, model).module, Network())


def ddp_without_sync(here):
    """Gradients of two steps are added up, and sent once."""
    model = parallel(here)
    with model.no_sync():
        loss_of(model, part(here, 0)).backward()
    before = [one.grad.clone() for one in model.parameters() if one.grad is not None]
    assert before
    loss_of(model, part(here, 1)).backward()
    expected = Network()
    for step in range(2):
        loss_of(expected, batch(step, here.size)).backward()
    for (name, one), other in zip(model.module.named_parameters(), expected.parameters()):
        torch.testing.assert_close(one.grad.cpu(), other.grad, msg=f"{name}: {{}}".format)


def ddp_with_uneven_inputs(here):
    """With `join`, ranks that have no batch left take part in the steps of the others.

    A step's gradient is the sum over the ranks that have a batch, divided by the number of all.
    """
    model = parallel(here)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join():
        for step in range(here.rank + 1):
            optimizer.zero_grad()
            loss_of(model, part(here, step)).backward()
            optimizer.step()
    equal_on_all(here, model.module)
    expected = Network()
    optimizer = torch.optim.SGD(expected.parameters(), lr=0.1)
    for step in range(here.size):
        optimizer.zero_grad()
        for x in batch(step, here.size).chunk(here.size)[step:]:
            (loss_of(expected, x) / here.size).backward()
        optimizer.step()
    close(model.module, expected)


def equal_on_all(here, model):
    for name, value in model.state_dict().items():
        every = [torch.empty_like(value) for _ in range(here.size)]
        dist.all_gather(every, value.contiguous())
        for rank, other in enumerate(every):
            assert torch.equal(other.cpu(), value.cpu()), f"{name} differs on rank {rank}"


def ddp_with_a_hook(here, name):
    """Gradients that a hook sends, some of them rounded."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    model = parallel(here, bucket_cap_mb=0.001)
    model.register_comm_hook(None, getattr(default_hooks, name))
    train(here, model)
    exact = name == "allreduce_hook"
    # Adam's step of 0.01 is as long for a gradient that was rounded.
    close(model.module, reference(here), **({} if exact else {"rtol": 0.1, "atol": 0.02}))
    equal_on_all(here, model.module)


def ddp_with_a_wrapped_hook(here):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    model = parallel(here)
    hook = default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    model.register_comm_hook(None, hook)
    close(train(here, model).module, reference(here), rtol=0.1, atol=0.02)


def ddp_with_a_hook_of_ones_own(here):
    """What `then` of a future gives is the gradient."""

    def hook(state, bucket):
        state.append(bucket.index())
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0] / here.size)

    seen = []
    model = parallel(here, bucket_cap_mb=0.001)
    model.register_comm_hook(seen, hook)
    close(train(here, model).module, reference(here))
    assert len(set(seen)) > 1, f"one bucket only: {seen}"


def ddp_with_power_sgd(here):
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    model = parallel(here)
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    before = loss_of(model, part(here, 0)).item()
    train(here, model, steps=6)
    assert loss_of(model, part(here, 0)).item() < before
    equal_on_all(here, model.module)


def ddp_logging_data(here):
    """The logged times come from the device's timer."""
    model = parallel(here)
    model._set_ddp_runtime_logging_sample_rate(1)
    train(here, model, steps=3)
    data = model._get_ddp_logging_data()
    times = {name: value for name, value in data.items() if name.endswith("_time")}
    assert data["world_size"] == here.size
    for name in ("forward_compute_time", "backward_compute_time", "backward_comm_time"):
        assert int(times[f"avg_{name}"]) > 0, times


def ddp_with_buffers(here):
    """Buffers are the first rank's."""
    model = parallel(here, Network(normalize=nn.BatchNorm1d), broadcast_buffers=True)
    train(here, model)
    model(part(here, 5))
    equal = [torch.empty_like(model.module.norm.running_mean) for _ in range(here.size)]
    model.eval()
    dist.all_gather(equal, model.module.norm.running_mean)
    assert torch.isfinite(equal[0]).all()


def ddp_with_autocast(here):
    model = parallel(here)
    with torch.autocast(here.device.type):
        loss = loss_of(model, part(here, 0))
    loss.backward()
    expected = Network()
    loss_of(expected, batch(0, here.size)).backward()
    grads = zip(model.parameters(), expected.parameters())
    for one, other in grads:
        if other.grad is not None:
            torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=0.1, atol=0.05)


def ddp_compiled(here):
    model = torch.compile(parallel(here), backend="aot_eager")
    close(train(here, model).module, reference(here))


def ddp_of_two_models(here):
    """Two models, whose buckets are in flight at once."""
    models = [parallel(here, bucket_cap_mb=0.001) for _ in range(2)]
    x = part(here, 0)
    sum(loss_of(model, x) for model in models).backward()
    expected = Network()
    loss_of(expected, batch(0, here.size)).backward()
    for model in models:
        for one, other in zip(model.parameters(), expected.parameters()):
            torch.testing.assert_close(one.grad.cpu(), other.grad)


def ddp_then_a_checkpoint(here, folder):
    """One rank saves, all load, and train on as if nothing had been."""
    model = parallel(here)
    optimizer = adam(model)
    train(here, model, 2, optimizer)
    if here.rank == 0:
        torch.save([model.state_dict(), optimizer.state_dict()], f"{folder}/state.pt")
    dist.barrier()
    saved = torch.load(f"{folder}/state.pt", map_location=here.device, weights_only=True)
    again = parallel(here)
    other = adam(again)
    for one, state in zip((again, other), saved):
        one.load_state_dict(state)
    for name, value in train(here, again, 2, other).state_dict().items():
        assert torch.isfinite(value).all(), name
    close(again.module, train(here, model, 2, optimizer).module.cpu())


# --- beside it --------------------------------------------------------------------------------


def zero_optimizer(here, bucket_view=False):
    """Each rank has the optimizer's state of some parameters."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = parallel(here)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), torch.optim.Adam, lr=0.01, parameters_as_bucket_view=bucket_view
    )
    close(train(here, model, optimizer=optimizer).module, reference(here))
    optimizer.consolidate_state_dict(0)
    if here.rank == 0:
        assert len(optimizer.state_dict()["state"]) > 0


def model_averaging(here):
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

    model = Network().to(here.device)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float(here.rank))
            parameter.grad = torch.zeros_like(parameter)  # those without one are left out
    PeriodicModelAverager(period=1).average_parameters(model.parameters())
    mean = (here.size - 1) / 2
    for parameter in model.parameters():
        torch.testing.assert_close(parameter.cpu(), torch.full_like(parameter.cpu(), mean))


def sync_batch_norm(here, dims=1):
    """Statistics, results and gradients are those of the batches of all ranks together."""
    shape = (ROWS * here.size, 3, *([5] * (dims - 1)))
    whole = torch.randn(shape, generator=torch.Generator().manual_seed(3)) * 3 + 1
    kind = (nn.BatchNorm1d, nn.BatchNorm2d)[dims > 2]
    expected = kind(3)
    given = whole.clone().requires_grad_()
    result = expected(given)
    result.square().sum().backward()

    model = nn.SyncBatchNorm.convert_sync_batchnorm(kind(3)).to(here.device)
    mine = whole.chunk(here.size)[here.rank].to(here.device).requires_grad_()
    got = model(mine)
    got.square().sum().backward()
    torch.testing.assert_close(got.cpu(), result.chunk(here.size)[here.rank])
    torch.testing.assert_close(model.running_mean.cpu(), expected.running_mean)
    torch.testing.assert_close(model.running_var.cpu(), expected.running_var)
    grad = given.grad.chunk(here.size)[here.rank]
    torch.testing.assert_close(mine.grad.cpu(), grad, rtol=1e-3, atol=1e-4)
    dist.all_reduce(model.weight.grad)
    torch.testing.assert_close(model.weight.grad.cpu(), expected.weight.grad, rtol=1e-3, atol=1e-3)


def sync_batch_norm_in_ddp(here):
    def make():
        return Network(normalize=nn.BatchNorm1d)

    model = nn.SyncBatchNorm.convert_sync_batchnorm(make())
    model = train(here, parallel(here, model)).module
    close(model, reference(here, make=make), rtol=1e-3, atol=1e-3)


def autograd_of_collectives(here, name):
    """Collectives that gradients pass."""
    from torch.distributed.nn import functional

    given = torch.full((here.size, 3), here.rank + 1.0, device=here.device, requires_grad=True)
    if name == "all_reduce":
        result = functional.all_reduce(given)
        expected, grad = sum(range(1, here.size + 1)), here.size
    elif name == "all_gather":
        result = functional.all_gather(given)[1]
        expected, grad = 2.0, None
    elif name == "broadcast":
        result = functional.broadcast(given, 0)
        expected, grad = 1.0, None
    else:
        result = functional.all_to_all_single(torch.zeros_like(given), given)
        expected, grad = None, 1.0
    result.sum().backward()
    for got, number in ((result, expected), (given.grad, grad)):
        if number is not None:
            assert got.detach().cpu().eq(number).all(), got
