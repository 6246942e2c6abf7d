# SPDX-License-Identifier: Apache-2.0
"""What ranks run in test_parallel.py: models, tensors and checkpoints in parts on several ranks."""

from __future__ import annotations

import functools
import inspect

import torch
import torch.distributed as dist
from parallel_programs import Network, adam, batch, close, loss_of, part, reference, train
from torch import nn

try:
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
except ImportError:  # up to 2.4
    DTensor = None


@functools.cache
def mesh_of(kind, shape, names=None):
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(kind, shape, mesh_dim_names=names)


def mesh(here):
    return mesh_of(here.device.type, (here.size,))


# --- FSDP -------------------------------------------------------------------------------------


def fsdp1(here, strategy="FULL_SHARD", **options):
    from torch.distributed import fsdp

    strategy = getattr(fsdp.ShardingStrategy, strategy)
    wrap = functools.partial(fsdp.wrap.size_based_auto_wrap_policy, min_num_params=100)
    model = fsdp.FullyShardedDataParallel(
        Network().to(here.device),
        device_id=here.device,
        sharding_strategy=strategy,
        auto_wrap_policy=wrap,
        use_orig_params=True,
        **options,
    )
    train(here, model)
    with fsdp.FullyShardedDataParallel.summon_full_params(model):
        close(model.module, reference(here))


def fsdp1_in_mixed_precision(here):
    from torch.distributed import fsdp

    precision = fsdp.MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = fsdp.FullyShardedDataParallel(
        Network().to(here.device),
        device_id=here.device,
        mixed_precision=precision,
        use_orig_params=True,
    )
    train(here, model)
    with fsdp.FullyShardedDataParallel.summon_full_params(model):
        close(model.module, reference(here), rtol=0.1, atol=0.03)


def fsdp1_on_the_cpu_meanwhile(here):
    from torch.distributed import fsdp

    model = fsdp.FullyShardedDataParallel(
        Network(), device_id=here.device, cpu_offload=fsdp.CPUOffload(offload_params=True)
    )
    train(here, model)
    with fsdp.FullyShardedDataParallel.summon_full_params(model):
        close(model.module, reference(here))


def fsdp1_clips_gradients(here):
    from torch.distributed import fsdp

    model = fsdp.FullyShardedDataParallel(Network().to(here.device), device_id=here.device)
    loss_of(model, part(here, 0)).backward()
    expected = Network()
    loss_of(expected, batch(0, here.size)).backward()
    norm = nn.utils.clip_grad_norm_(expected.parameters(), 0.01)
    torch.testing.assert_close(model.clip_grad_norm_(0.01).cpu(), norm)


def fsdp1_accumulates_gradients(here, **options):
    """Gradients of two steps stay whole on each rank, and are sent once, with those of a third."""
    from torch.distributed import fsdp

    wrap = functools.partial(fsdp.wrap.size_based_auto_wrap_policy, min_num_params=100)
    model = fsdp.FullyShardedDataParallel(
        Network().to(here.device), device_id=here.device, auto_wrap_policy=wrap, **options
    )
    optimizer = adam(model)
    with model.no_sync():
        for step in range(2):
            loss_of(model, part(here, step)).backward()
    loss_of(model, part(here, 2)).backward()
    optimizer.step()
    expected = Network()
    other = adam(expected)
    for step in range(3):
        loss_of(expected, batch(step, here.size)).backward()
    other.step()
    with fsdp.FullyShardedDataParallel.summon_full_params(model):
        close(model.module, expected)


def _fully_shard():
    try:
        from torch.distributed import fsdp

        return fsdp, fsdp.fully_shard
    except AttributeError:  # 2.5
        from torch.distributed._composable import fsdp

        return fsdp, fsdp.fully_shard


def sharded(here, over=None, **options):
    fsdp, fully_shard = _fully_shard()
    if "precision" in options:
        dtype = getattr(torch, options.pop("precision"))
        options["mp_policy"] = fsdp.MixedPrecisionPolicy(
            param_dtype=dtype, reduce_dtype=torch.float32
        )
    if "pinned" in options:
        options["offload_policy"] = fsdp.CPUOffloadPolicy(pin_memory=options.pop("pinned"))
    model = Network()
    model = model if "offload_policy" in options else model.to(here.device)
    over = over or mesh(here)
    for layer in (model.first, model.second):
        fully_shard(layer, mesh=over, **options)
    return fully_shard(model, mesh=over, **options)


def fsdp2(here, **options):
    model = train(here, sharded(here, **options))
    rounded = {"rtol": 0.1, "atol": 0.03} if "precision" in options else {}
    close(model, reference(here), **rounded)
    local = sum(one.to_local().numel() for one in model.parameters())
    assert local < sum(one.numel() for one in model.parameters()), "nothing is sharded"


def fsdp2_accumulates_gradients(here):
    model = sharded(here)
    optimizer = adam(model)
    for step in range(2):
        model.set_requires_gradient_sync(step == 1)
        loss_of(model, part(here, step)).backward()
    optimizer.step()
    expected = Network()
    other = adam(expected)
    for step in range(2):
        loss_of(expected, batch(step, here.size)).backward()
    other.step()
    close(model, expected)


def fsdp2_clips_gradients(here):
    model = sharded(here)
    loss_of(model, part(here, 0)).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    expected = Network()
    loss_of(expected, batch(0, here.size)).backward()
    wanted = nn.utils.clip_grad_norm_(expected.parameters(), 0.01)
    torch.testing.assert_close(norm.cpu(), wanted)


def fsdp2_in_two_dimensions(here):
    """Copies along one dimension of the mesh, parts along the other."""
    both = mesh_of(here.device.type, (1, here.size), ("copies", "parts"))
    close(train(here, sharded(here, over=both)), reference(here))


def fsdp2_keeps_copies(here):
    both = mesh_of(here.device.type, (here.size, 1), ("copies", "parts"))
    close(train(here, sharded(here, over=both)), reference(here))


# --- DTensor and meshes -----------------------------------------------------------------------


def meshes(here):
    """A mesh of two dimensions, its parts and their groups."""
    both = mesh_of(here.device.type, (1, here.size), ("one", "all"))
    assert both["all"].size() == here.size and both["one"].size() == 1
    assert both.get_local_rank("all") == here.rank
    tensor = torch.full((2,), float(here.rank), device=here.device)
    dist.all_reduce(tensor, group=both.get_group("all"))
    assert tensor.tolist() == [sum(range(here.size))] * 2
    assert mesh(here).get_rank() == here.rank


def a_mesh_of_a_group(here):
    from torch.distributed.device_mesh import DeviceMesh

    made = DeviceMesh.from_group(dist.group.WORLD, here.device.type)
    tensor = distribute_tensor(torch.arange(8.0, device=here.device), made, [Shard(0)])
    assert tensor.full_tensor().tolist() == list(range(8))


def placed(here, rows, first, second):
    """A tensor is the same in any placement, and on the way from one to another."""
    kinds = {"rows": Shard(0), "columns": Shard(1), "copies": Replicate()}
    whole = torch.randn(rows, 6, generator=torch.Generator().manual_seed(1))
    tensor = distribute_tensor(whole.to(here.device), mesh(here), [kinds[first]])
    moved = tensor.redistribute(mesh(here), [kinds[second]])
    assert moved.placements == (kinds[second],)
    assert torch.equal(moved.full_tensor().cpu(), whole)
    assert torch.equal(tensor.full_tensor().cpu(), whole)


def sum_of_parts(here):
    local = torch.full((4, 2), here.rank + 1.0, device=here.device)
    total = torch.full((4, 2), sum(range(1, here.size + 1)) * 1.0)
    made = DTensor.from_local(local, mesh(here), [Partial()])
    assert torch.equal(made.full_tensor().cpu(), total)
    assert torch.equal(made.redistribute(mesh(here), [Shard(0)]).full_tensor().cpu(), total)


def operations(here):
    """Operators on tensors in parts give what they give on whole ones; so do gradients."""
    generator = torch.Generator().manual_seed(2)
    a, b = (torch.randn(8, 8, generator=generator) for _ in range(2))
    one = distribute_tensor(a.to(here.device), mesh(here), [Shard(0)]).requires_grad_()
    other = distribute_tensor(b.to(here.device), mesh(here), [Shard(1)])
    # PyTorch 2.5 adds a sum of parts to a mean of parts as if it were a sum, too.
    mean = one.mean().full_tensor()
    result = torch.softmax(one @ other, dim=1).square().sum().full_tensor() + mean
    result.backward()
    a.requires_grad_()
    expected = torch.softmax(a @ b, dim=1).square().sum() + a.mean()
    expected.backward()
    torch.testing.assert_close(result.cpu(), expected)
    torch.testing.assert_close(one.grad.full_tensor().cpu(), a.grad)


def random_tensors(here):
    """Random numbers of a tensor in parts are those of no other rank; a copy is the same."""
    from torch.distributed.tensor import rand

    torch.manual_seed(5)
    tensor = rand(4 * here.size, 3, device_mesh=mesh(here), placements=[Shard(0)])
    whole = tensor.full_tensor().cpu()
    parts = whole.chunk(here.size)
    assert all(not torch.equal(parts[0], one) for one in parts[1:]), whole
    copy = rand(3, 3, device_mesh=mesh(here), placements=[Replicate()])
    every = [None] * here.size
    dist.all_gather_object(every, copy.to_local().cpu())
    assert all(torch.equal(one, every[0]) for one in every)


def tensor_parallel(here, sequence=False):
    from torch.distributed.tensor import parallel

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.norm = nn.LayerNorm(8)
            self.up = nn.Linear(8, 16)
            self.down = nn.Linear(16, 8)

        def forward(self, x):
            return self.down(torch.relu(self.up(self.norm(x))))

    expected = Block()
    plan = {"up": parallel.ColwiseParallel(), "down": parallel.RowwiseParallel()}
    if sequence:
        plan = {
            "norm": parallel.SequenceParallel(),
            "up": parallel.ColwiseParallel(input_layouts=Shard(1)),
            "down": parallel.RowwiseParallel(),
        }
    model = parallel.parallelize_module(Block().to(here.device), mesh(here), plan)
    x = torch.randn(2, 4 * here.size, 8, generator=torch.Generator().manual_seed(1))
    given = x.to(here.device)
    if sequence:
        given = distribute_tensor(given, mesh(here), [Shard(1)])
    result = model(given)
    result = result.full_tensor() if isinstance(result, DTensor) else result
    torch.testing.assert_close(result.cpu(), expected(x))
    result.square().mean().backward()
    expected(x).square().mean().backward()
    grads = model.up.weight.grad.full_tensor(), model.down.weight.grad.full_tensor()
    for got, other in zip(grads, (expected.up.weight.grad, expected.down.weight.grad)):
        torch.testing.assert_close(got.cpu(), other)


def _example(here):
    """The argument of PyTorch 2.5 that newer releases do not need: what a stage gets."""
    from torch.distributed import pipelining

    needed = inspect.signature(pipelining.PipelineStage).parameters.get("input_args")
    if needed is None or needed.default is not inspect.Parameter.empty:
        return {}
    return {"input_args": (torch.zeros(2, 8, device=here.device),)}


def pipeline(here, schedule):
    """Each rank has a stage; the loss, the results and gradients are those of the whole."""
    from torch.distributed import pipelining

    def stages():
        torch.manual_seed(1)
        return [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(here.size)]

    layers = stages()
    mine = layers[here.rank].to(here.device)
    stage = pipelining.PipelineStage(mine, here.rank, here.size, here.device, **_example(here))

    def loss(result, target):
        return (result - target).square().mean()

    make = getattr(pipelining, schedule)
    run = make(stage, 4, loss_fn=loss)
    # Before PyTorch 2.7 the gradients of the four parts of a batch are added.
    count = 1 if "scale_grads" in inspect.signature(make).parameters else 4
    x = torch.randn(8, 8, generator=torch.Generator().manual_seed(1))
    target = torch.zeros(8, 8)
    losses = []
    arguments = [x.to(here.device)] if here.rank == 0 else []
    last = here.rank == here.size - 1
    named = {"target": target.to(here.device), "losses": losses} if last else {}
    got = run.step(*arguments, **named)
    whole = nn.Sequential(*stages())
    expected = whole(x)
    # The loss of a batch is the mean of those of its parts.
    loss(expected, target).backward()
    if last:
        torch.testing.assert_close(got.detach().cpu(), expected.detach())
        mean = torch.stack([one.detach() for one in losses]).mean()
        torch.testing.assert_close(mean.cpu(), loss(expected, target).detach())
    for one, other in zip(mine.parameters(), whole[here.rank].parameters()):
        torch.testing.assert_close(one.grad.cpu() / count, other.grad)


# --- functional collectives -------------------------------------------------------------------


def functional(here, name, backend=None):
    """A functional collective between computations, compiled if a backend is named."""
    import torch.distributed._functional_collectives as collectives

    group, size = dist.group.WORLD, here.size
    x = torch.arange(float(2 * size), device=here.device) + here.rank
    every = [torch.arange(float(2 * size)) + rank for rank in range(size)]
    calls = {
        "all_reduce": lambda x: collectives.all_reduce(x * 2, "sum", group),
        "all_reduce_avg": lambda x: collectives.all_reduce(x * 2, "avg", group),
        "all_gather_tensor": lambda x: collectives.all_gather_tensor(x * 2, 0, group),
        "reduce_scatter_tensor": lambda x: collectives.reduce_scatter_tensor(
            x * 2, "sum", 0, group
        ),
        "all_to_all_single": lambda x: collectives.all_to_all_single(x * 2, None, None, group),
        "broadcast": lambda x: collectives.broadcast(x * 2, 0, group),
        "all_reduce_coalesced": lambda x: torch.cat(
            collectives.all_reduce_coalesced([x * 2, x * 4], "sum", group)
        ),
        "all_gather_into_tensor_coalesced": lambda x: torch.cat(
            collectives.all_gather_into_tensor_coalesced([x * 2, x * 4], group)
        ),
    }
    total = sum(every) * 2
    expected = {
        "all_reduce": total,
        "all_reduce_avg": total / size,
        "all_gather_tensor": torch.cat(every) * 2,
        "reduce_scatter_tensor": total.chunk(size)[here.rank],
        "all_to_all_single": torch.cat([one.chunk(size)[here.rank] for one in every]) * 2,
        "broadcast": every[0] * 2,
        "all_reduce_coalesced": torch.cat([total, total * 2]),
        "all_gather_into_tensor_coalesced": torch.cat([torch.cat(every) * n for n in (2, 4)]),
    }[name]

    def compute(x):
        return calls[name](x) + 1

    if backend:
        torch._dynamo.reset()
        compute = torch.compile(compute, backend=backend, fullgraph=True)
    torch.testing.assert_close(compute(x).cpu(), expected + 1)


# --- checkpoints ------------------------------------------------------------------------------


def _pieces(here, placement):
    whole = torch.arange(48.0).reshape(8, 6)
    tensor = distribute_tensor(whole.to(here.device), mesh(here), [placement])
    return whole, tensor


def checkpoint(here, folder, asynchronous=False):
    """Saved in parts along the rows, loaded along the columns, as copies and as a whole."""
    import torch.distributed.checkpoint as dcp

    whole, tensor = _pieces(here, Shard(0))
    state = {"tensor": tensor, "plain": torch.full((3,), 7.0, device=here.device), "number": 5}
    if asynchronous:
        dcp.async_save(state, checkpoint_id=folder).result()
        dist.barrier()
    else:
        dcp.save(state, checkpoint_id=folder)
    for placement in (Shard(0), Shard(1), Replicate()):
        room = distribute_tensor(torch.zeros(8, 6, device=here.device), mesh(here), [placement])
        loaded = {"tensor": room, "plain": torch.zeros(3, device=here.device), "number": 0}
        dcp.load(loaded, checkpoint_id=folder)
        assert torch.equal(loaded["tensor"].full_tensor().cpu(), whole), placement
        assert loaded["plain"].device.type == here.device.type
        assert loaded["plain"].tolist() == [7.0] * 3 and loaded["number"] == 5


def checkpoint_of_a_training(here, folder):
    """A sharded model and its optimizer go on from a checkpoint as if nothing had been."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import state_dict as states

    model = sharded(here)
    optimizer = adam(model)
    train(here, model, 2, optimizer)
    values = dict(zip(("model", "optimizer"), states.get_state_dict(model, optimizer)))
    dcp.save(values, checkpoint_id=folder)
    again = sharded(here)
    other = adam(again)
    room = dict(zip(("model", "optimizer"), states.get_state_dict(again, other)))
    dcp.load(room, checkpoint_id=folder)
    states.set_state_dict(
        again, other, model_state_dict=room["model"], optim_state_dict=room["optimizer"]
    )
    train(here, model, 2, optimizer)
    train(here, again, 2, other)
    for (name, one), two in zip(model.named_parameters(), again.parameters()):
        assert torch.equal(one.to_local().cpu(), two.to_local().cpu()), name


def whole_state_of_a_sharded_model(here):
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_model_state_dict(sharded(here), options=options)
    for name, value in Network().state_dict().items() if here.rank == 0 else ():
        assert torch.equal(state[name], value), name
