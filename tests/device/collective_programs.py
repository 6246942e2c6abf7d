# SPDX-License-Identifier: Apache-2.0
"""What ranks run in test_collectives.py: every collective, on what is a function of the rank.

Each rank computes what it expects on the CPU, from what every rank gives.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

# --- what a rank gives ------------------------------------------------------------------------


def _random(rank, part):
    return torch.Generator().manual_seed(100 * rank + part)


def small(rank, shape, dtype, part=0):
    """Small numbers, whose sums and products every dtype of arithmetic holds exactly."""
    numbers = torch.randint(1, 4, shape, generator=_random(rank, part))
    if dtype is torch.bool:
        return numbers > 2
    if dtype.is_complex:
        return torch.complex(numbers.float(), numbers.flip(0).float() - 2).to(dtype)
    return numbers.to(dtype)


def negative(rank, shape, dtype, part=0):
    """Numbers whose average over the ranks is seldom whole."""
    return small(rank, shape, dtype, part).neg() - rank


def large(rank, shape, dtype, part=0):
    """Numbers about 2**63, below which an int64 ends."""
    numbers = torch.randint(-4, 4, shape, generator=_random(rank, part))
    return numbers.bitwise_xor(torch.iinfo(torch.int64).min).view(dtype)


def bits(rank, shape, dtype, part=0):
    """Any pattern of bits, such as those of NaN; the values of a bool are two."""
    count = torch.Size(shape).numel() * dtype.itemsize
    numbers = torch.randint(0, 256, (count,), dtype=torch.uint8, generator=_random(rank, part))
    return (numbers & 1 if dtype is torch.bool else numbers).view(dtype).reshape(shape)


def raw(tensor):
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)


def same(got, expected, what="result"):
    """Fails unless a tensor has these bits."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), (
        f"{what} is {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    )
    if not torch.equal(raw(got), raw(expected)):
        wrong = (raw(got) != raw(expected)).nonzero().flatten() // max(got.dtype.itemsize, 1)
        first = wrong[0].item()
        raise AssertionError(
            f"{what}: {len(wrong.unique())} of {got.numel()} elements differ, from {first} to "
            f"{wrong[-1].item()}: {got.detach().cpu().flatten()[first]} instead of "
            f"{expected.flatten()[first]}"
        )


# --- reductions -------------------------------------------------------------------------------


def operation(name):
    """The operator of a name; PREMUL_SUM multiplies by a half before it adds."""
    if name == "PREMUL_SUM":
        return dist._make_nccl_premul_sum(0.5)
    return getattr(dist.ReduceOp, name)


#: Dtypes whose arithmetic is that of another one; its result is rounded once.
NARROW = {
    getattr(torch, name): wide
    for names, wide in (
        (("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), torch.float32),
        (("complex32",), torch.complex64),
    )
    for name in names
    if hasattr(torch, name)
}


def combined(name, tensors):
    """What a reduction of these gives."""
    dtype = tensors[0].dtype
    if dtype in NARROW:
        return combined(name, [one.to(NARROW[dtype]) for one in tensors]).to(dtype)
    if dtype in (torch.uint16, torch.uint32, torch.uint64):  # the CPU has little arithmetic of them
        return _of_unsigned(name, tensors).to(dtype)
    stack = torch.stack(tensors)
    if stack.dtype is torch.bool:
        name = {"SUM": "BOR", "MAX": "BOR", "PRODUCT": "BAND", "MIN": "BAND"}.get(name, name)
    if name in ("BAND", "BOR", "BXOR"):
        by = {"BAND": "bitwise_and", "BOR": "bitwise_or", "BXOR": "bitwise_xor"}[name]
        result = tensors[0]
        for one in tensors[1:]:
            result = getattr(torch, by)(result, one)
        return result
    if name in ("MIN", "MAX"):
        return getattr(stack, f"a{name.lower()}")(0)
    if name == "PRODUCT":
        return stack.prod(0).to(stack.dtype)
    total = stack.sum(0).to(stack.dtype)
    return {"SUM": total, "AVG": total / len(tensors), "PREMUL_SUM": total * 0.5}[name]


def _of_unsigned(name, tensors):
    if name not in ("MIN", "MAX") or tensors[0].dtype is not torch.uint64:
        return combined(name, [one.to(torch.int64) for one in tensors])
    lowest = torch.iinfo(torch.int64).min  # with it, unsigned numbers are in the order of signed
    moved = [one.view(torch.int64).bitwise_xor(lowest) for one in tensors]
    return combined(name, moved).bitwise_xor(lowest).view(torch.uint64)


def reduced(name, got, tensors):
    expected = combined(name, tensors)
    if name == "AVG" and got.dtype not in NARROW:  # a third has no exact value
        torch.testing.assert_close(got.cpu(), expected.to(got.dtype))
    else:
        same(got, expected)


# --- collectives: each gives what waits for it (None if done), and what checks it -------------


class Call:
    """How a collective is called: what a rank gives, and in which group."""

    def __init__(self, here, give, group=None, async_op=False, lay=None, op="SUM"):
        self.device, self.group, self.op = here.device, group, op
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.give, self.lay = give, lay or (lambda tensor: tensor.to(here.device))
        self.options = {"group": group, "async_op": async_op}

    def own(self, part=0):
        return self.lay(self.give(self.rank, part))

    def room(self, like, count=None):
        """A tensor for a result, or so many, in which nothing is right yet."""
        if count is not None:
            return [self.room(like) for _ in range(count)]
        noise = 255 - raw(like)
        noise = noise & 1 if like.dtype is torch.bool else noise
        return self.lay(noise.view(like.dtype).reshape(like.shape))

    def everyone(self, part=0):
        return [self.give(rank, part) for rank in range(self.size)]

    def place(self, rank):
        """A rank of the group, among all."""
        return rank if self.group is None else dist.get_global_rank(self.group, rank)

    def root(self):
        """The last rank of the group: its rank there, and among all."""
        return self.size - 1, self.place(self.size - 1)


def broadcast(call):
    root, place = call.root()
    tensor = call.own()
    work = dist.broadcast(tensor, place, **call.options)
    return work, lambda: same(tensor, call.give(root, 0))


def all_gather(call):
    every = call.everyone()
    out = [call.room(one) for one in every]
    work = dist.all_gather(out, call.own(), **call.options)
    return work, lambda: [same(*pair) for pair in zip(out, every)]


def all_gather_into_tensor(call):
    expected = torch.cat(call.everyone())
    out = call.room(expected)
    work = dist.all_gather_into_tensor(out, call.own(), **call.options)
    return work, lambda: same(out, expected)


def all_to_all(call):
    """Part n of what a rank gives is for rank n."""
    expected = [call.give(rank, call.rank) for rank in range(call.size)]
    out = [call.room(one) for one in expected]
    work = dist.all_to_all(out, [call.own(part) for part in range(call.size)], **call.options)
    return work, lambda: [same(*pair) for pair in zip(out, expected)]


def all_to_all_single(call):
    expected = torch.cat([call.give(rank, call.rank) for rank in range(call.size)])
    given = call.lay(torch.cat([call.give(call.rank, part) for part in range(call.size)]))
    out = call.room(expected)
    work = dist.all_to_all_single(out, given, **call.options)
    return work, lambda: same(out, expected)


def gather(call):
    root, place = call.root()
    every = call.everyone()
    out = [call.room(one) for one in every] if call.rank == root else None
    work = dist.gather(call.own(), out, place, **call.options)
    return work, lambda: [same(*pair) for pair in zip(out or [], every)]


def scatter(call):
    root, place = call.root()
    expected = call.give(root, call.rank)
    parts = [call.own(part) for part in range(call.size)] if call.rank == root else None
    out = call.room(expected)
    work = dist.scatter(out, parts, place, **call.options)
    return work, lambda: same(out, expected)


class Several:
    """Works as one."""

    def __init__(self, works):
        self.works = works

    def wait(self):
        for work in self.works:
            work.wait()


def send_recv(call):
    """Round the ring: even ranks send first."""
    after, before = (call.rank + 1) % call.size, (call.rank - 1) % call.size
    given, out = call.own(), call.room(call.give(before, 0))
    to, of = call.place(after), call.place(before)
    work = None
    if call.options["async_op"]:
        work = Several([dist.isend(given, to, call.group), dist.irecv(out, of, call.group)])
    elif call.rank % 2:
        dist.recv(out, of, call.group)
        dist.send(given, to, call.group)
    else:
        dist.send(given, to, call.group)
        dist.recv(out, of, call.group)
    return work, lambda: same(out, call.give(before, 0))


def all_reduce(call):
    tensor = call.own()
    work = dist.all_reduce(tensor, operation(call.op), **call.options)
    return work, lambda: reduced(call.op, tensor, call.everyone())


def reduce(call):
    root, place = call.root()
    tensor = call.own()
    work = dist.reduce(tensor, place, operation(call.op), **call.options)

    def check():
        if call.rank == root:
            reduced(call.op, tensor, call.everyone())
        else:  # as it was
            same(tensor, call.own().cpu())

    return work, check


def reduce_scatter(call):
    out = call.room(call.give(0, 0))
    parts = [call.own(part) for part in range(call.size)]
    work = dist.reduce_scatter(out, parts, operation(call.op), **call.options)
    return work, lambda: reduced(call.op, out, call.everyone(call.rank))


def reduce_scatter_tensor(call):
    out = call.room(call.give(0, 0))
    given = call.lay(torch.cat([call.give(call.rank, part) for part in range(call.size)]))
    work = dist.reduce_scatter_tensor(out, given, operation(call.op), **call.options)
    return work, lambda: reduced(call.op, out, call.everyone(call.rank))


MOVES = (
    broadcast,
    all_gather,
    all_gather_into_tensor,
    all_to_all,
    all_to_all_single,
    gather,
    scatter,
    send_recv,
)
REDUCTIONS = (all_reduce, reduce, reduce_scatter, reduce_scatter_tensor)


def one(here, collective, dtype, shape, fill=bits, **how):
    """A collective of tensors of a dtype and a shape."""
    call = Call(here, lambda rank, part: fill(rank, shape, dtype, part), **how)
    work, check = collective(call)
    if work is not None:
        work.wait()
    check()


def in_inference_mode(here, collective):
    """Tensors of inference mode have no versions, which a write by PyTorch would raise."""
    with torch.inference_mode():
        one(here, collective, torch.float32, (4, 5), small)
    one(here, collective, torch.float32, (4, 5), small)


def unseen_by_autograd(here):
    """What a group writes is no change of a tensor that autograd has saved, as with NCCL."""
    weight = torch.ones(6, device=here.device, requires_grad=True)
    scale = torch.full((6,), here.rank + 2.0, device=here.device)
    parts = torch.zeros(6 * here.size, device=here.device)
    (weight * scale).sum().backward(retain_graph=True)
    loss = (weight * scale).sum()
    uneven = [torch.zeros(rank + 1, device=here.device) for rank in range(here.size)]
    before = [one._version for one in (scale, parts, *uneven)]
    dist.broadcast(scale, 0)
    dist.all_reduce(scale)
    dist.all_gather_into_tensor(parts, scale)
    dist.all_gather(uneven, torch.ones(here.rank + 1, device=here.device))
    assert [one._version for one in (scale, parts, *uneven)] == before
    loss.backward()
    same(parts, torch.full((6 * here.size,), 2.0 * here.size))


def uneven(here, collective, dtype):
    """Each rank gives another number of rows."""
    one(here, collective, dtype, None, lambda rank, _, kind, part: bits(rank, (rank + 1, 3), kind))


def uneven_reduce_scatter(here, dtype):
    """Part n has n + 1 rows, on every rank."""

    def part(rank, number):
        return small(rank, (number + 1, 3), dtype, number)

    out = torch.zeros(here.rank + 1, 3, dtype=dtype, device=here.device)
    given = [part(here.rank, number).to(here.device) for number in range(here.size)]
    dist.reduce_scatter(out, given)
    same(out, combined("SUM", [part(rank, here.rank) for rank in range(here.size)]))


def uneven_all_to_all_single(here, dtype, empty=False):
    """Rank i gives rank j so many rows: i + 2j + 1, or none of those with `empty`."""

    def part(rank, to):
        rows = 0 if empty and (rank + to) % 2 else rank + 2 * to + 1
        return bits(rank, (rows, 2), dtype, to)

    given = [part(here.rank, to) for to in range(here.size)]
    expected = [part(rank, here.rank) for rank in range(here.size)]
    out = torch.zeros(sum(map(len, expected)), 2, dtype=dtype, device=here.device)
    splits = [list(map(len, parts)) for parts in (expected, given)]
    dist.all_to_all_single(out, torch.cat(given).to(here.device), *splits)
    same(out, torch.cat(expected))


def uneven_all_to_all(here, dtype):
    given = [bits(here.rank, (here.rank + to,), dtype, to) for to in range(here.size)]
    expected = [bits(rank, (here.rank + rank,), dtype, here.rank) for rank in range(here.size)]
    out = [torch.zeros_like(part, device=here.device) for part in expected]
    dist.all_to_all(out, [part.to(here.device) for part in given])
    for pair in zip(out, expected):
        same(*pair)


def gathered_as_a_stack(here):
    """all_gather_into_tensor into one more dimension, instead of a longer first."""
    out = torch.zeros(here.size, 2, 3, device=here.device)
    dist.all_gather_into_tensor(out, small(here.rank, (2, 3), torch.float32).to(here.device))
    same(out, torch.stack([small(rank, (2, 3), torch.float32) for rank in range(here.size)]))


def sparse_sum(here, dtype, async_op=False):
    """Sparse tensors, each with an element of all ranks and one of its own, are added."""

    def of(rank):
        where = torch.tensor([[0, rank + 1], [0, 1]])
        return torch.sparse_coo_tensor(where, small(rank, (2,), dtype), (here.size + 1, 2))

    tensor = of(here.rank).to(here.device)
    work = dist.all_reduce(tensor, async_op=async_op)
    if async_op:
        work.wait()
    assert tensor.layout is torch.sparse_coo and tensor.device == here.device
    every = [of(rank).to_dense() for rank in range(here.size)]
    same(tensor.to_dense(), combined("SUM", every))


# --- layouts ----------------------------------------------------------------------------------


class Laid:
    """Tensors of a layout that lie in larger memory, the rest of which no collective may write."""

    def __init__(self, layout, device):
        self.layout, self.device, self.kept = layout, device, []

    def __call__(self, tensor):
        shape = tensor.shape
        if self.layout == "slice":
            base = torch.full((tensor.numel() + 12,), 77, dtype=tensor.dtype)
            where = torch.arange(5, 5 + tensor.numel()).reshape(shape)
        elif self.layout == "strided":
            base = torch.full((2 * tensor.numel() + 1,), 77, dtype=tensor.dtype)
            where = torch.arange(1, 2 * tensor.numel(), 2).reshape(shape)
        else:  # transposed: dense, with the dimensions in the other order
            base = torch.full((tensor.numel(),), 77, dtype=tensor.dtype)
            where = (
                torch.arange(tensor.numel())
                .reshape(shape[::-1])
                .permute(*range(len(shape) - 1, -1, -1))
            )
        base[where] = tensor
        on_device = base.to(self.device)
        view = on_device.as_strided(shape, where.stride(), where[(0,) * len(shape)].item())
        if self.layout == "strided":
            view = on_device[1::2].view(shape)
        self.kept.append((on_device, where))
        return view

    def check(self):
        for base, where in self.kept:
            outside = torch.ones(base.numel(), dtype=torch.bool)
            outside[where.flatten()] = False
            assert base.cpu()[outside].eq(77).all(), "memory beside the tensor was written"


def laid(here, collective, layout):
    """Tensors that are no whole memory; whether the collective takes them, rightly if it does."""
    lay = Laid(layout, here.device)
    try:
        fill = small if collective in REDUCTIONS else bits
        one(here, collective, torch.float32, (4, 6), fill, lay=lay)
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    lay.check()
    return "taken"
