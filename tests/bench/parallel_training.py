# SPDX-License-Identifier: Apache-2.0
"""Trainings on several ranks: they have to come out as in one process, and nothing may grow.

A small transformer trains for 200 steps on ranks that share each batch. The error of its parameters
is their distance from those of the same training in float64, in one process on the CPU; that of one
process on the device, in float32 as well, says how large rounding makes it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
STEPS, BATCH, LENGTH, WORDS, WIDTH = 200, 8, 12, 50, 32
#: What an error may be, in errors of one process. Ranks add in another order.
SPREAD = 4
#: Rounds of a long training. What it holds after the first, it may hold in the end.
ROUNDS = 10
ALLOWED = {"megabytes": 8, "threads": 0, "files": 0}

# --- what a rank does -------------------------------------------------------------------------


def transformer() -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), encoder, nn.Linear(WIDTH, WORDS))


def batches() -> Iterator[Any]:
    """Sequences, each word of which follows from the one before it."""
    import torch

    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        first = torch.randint(WORDS, (BATCH, 1), generator=generator)
        yield (first + 7 * torch.arange(LENGTH + 1)) % WORDS


def trained(model: Any, device: str, rank: int, size: int) -> Any:
    """The model after a training in which this rank has its part of each batch."""
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for batch in batches():
        mine = batch.chunk(size)[rank].to(device)
        guessed = model(mine[:, :-1])
        loss = torch.nn.functional.cross_entropy(guessed.flatten(0, 1), mine[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def values(model: Any) -> Any:
    import torch

    parts = [getattr(one, "full_tensor", lambda one=one: one)() for one in model.parameters()]
    return torch.cat([part.detach().cpu().double().flatten() for part in parts])


def ddp(model: Any) -> Any:
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model)


def fsdp(model: Any) -> Any:
    from torch.distributed.fsdp import fully_shard

    for layer in (*model[1].layers, model[2]):
        fully_shard(layer)
    return fully_shard(model)


KINDS: dict[str, Callable[[Any], Any]] = {"DDP": ddp, "FSDP2": fsdp}


def errors(device: str, kind: str) -> dict[str, float]:
    """The largest error of a parameter on these ranks, and in one process."""
    import torch.distributed as dist

    rank, size = dist.get_rank(), dist.get_world_size()
    exact = values(trained(transformer().double(), "cpu", 0, 1))
    single = values(trained(transformer().to(device), device, 0, 1))
    several = values(trained(KINDS[kind](transformer().to(device)), device, rank, size))
    start = values(transformer())
    return {
        "several": (several - exact).abs().max().item(),
        "single": (single - exact).abs().max().item(),
        "apart": (several - single).abs().max().item(),
        "moved": (exact - start).abs().max().item(),
    }


def held() -> dict[str, int]:
    """What this process holds now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    words = dict(line.split(":", 1) for line in lines)
    return {
        "megabytes": int(words["VmRSS"].split()[0]) >> 10,
        "threads": int(words["Threads"]),
        "files": len(os.listdir("/proc/self/fd")),
    }


def long_training(device: str, kind: str, steps: int) -> list[dict[str, int]]:
    """What the process holds after each round of a training."""
    import torch
    from torch import nn

    small = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
    if kind == "FSDP2":
        from torch.distributed.fsdp import fully_shard

        model = fully_shard(small)
    else:
        model = ddp(small)
    optimizer = torch.optim.AdamW(model.parameters())
    batch, found = torch.randn(8, 16).to(device), []
    for number in range(1, steps + 1):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if number % (steps // ROUNDS) == 0:
            torch.accelerator.synchronize()
            found.append(held())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="foo")
    parser.add_argument("--kind", choices=KINDS, default="DDP")
    parser.add_argument("--steps", type=int, default=0, help="of a long training, instead")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    module = getattr(torch, options.device)
    module.set_device(int(os.environ["LOCAL_RANK"]) % module.device_count())
    dist.init_process_group()
    if options.steps:
        found: Any = long_training(options.device, options.kind, options.steps)
    else:
        found = errors(options.device, options.kind)
    if dist.get_rank() == 0:
        options.output.write_text(json.dumps(found))
    dist.destroy_process_group()


# --- what starts them -------------------------------------------------------------------------


def bench_ranks(work: Path, table: Callable[[str, Sequence], None], steps: int) -> None:
    """Fails if a training comes out otherwise, or grows."""
    from reductions import torchrun

    rows, good = [], True
    for kind in KINDS:
        for ranks in (2, 4):
            found = torchrun(HERE, work, "--kind", kind, ranks=ranks)
            good &= found["several"] <= SPREAD * found["single"]
            remark = f"in one process {found['single']:.1e}; these are {found['apart']:.1e} apart, "
            remark += f"and moved by {found['moved']:.1g}"
            rows.append((f"{kind}, {ranks} ranks", f"{found['several']:.1e}", remark))
    table(f"Largest error of a parameter after {STEPS} steps of a transformer, float32", rows)
    rows = []
    for kind in KINDS:
        rounds = torchrun(HERE, work, "--kind", kind, f"--steps={steps}")
        first, last = rounds[0], rounds[-1]
        for what, allowed in ALLOWED.items():
            good &= last[what] <= first[what] + allowed
            rows.append((f"{kind}: {what}", str(last[what]), f"{first[what]} after a tenth"))
    table(f"What a rank holds after {steps} steps on 2 ranks", rows)
    if not good:
        sys.exit("error: parameters are not those of one process, or a training grows")


if __name__ == "__main__":
    main()
