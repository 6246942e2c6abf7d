# SPDX-License-Identifier: Apache-2.0
"""What the machines run: a training that keeps its state, and goes on from there when it restarts.

training.py FOLDER STEPS [SECONDS]      # a step takes so long, at least
"""

from __future__ import annotations

import datetime
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


def main() -> None:
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
    local, rank = int(os.environ["LOCAL_RANK"]), int(os.environ["RANK"])
    torch.foo.set_device(local % torch.foo.device_count())
    dist.init_process_group(timeout=datetime.timedelta(seconds=20))
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2).to("foo")
    state = {"model": model.state_dict(), "step": torch.zeros(1)}
    saved, first = folder / "saved", 0
    if (saved / ".metadata").exists():
        dcp.load(state, checkpoint_id=str(saved))
        first = int(state["step"].item())
    copies = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(copies.parameters(), lr=0.01)
    for step in range(first, steps):
        optimizer.zero_grad()
        copies(torch.full((2, 4), step / steps, device="foo")).square().mean().backward()
        optimizer.step()
        state["step"].fill_(step + 1)
        dcp.save(state, checkpoint_id=str(saved))
        if rank == 0:
            (folder / "step").write_text(str(step + 1))
        time.sleep(seconds)
    total = sum(one.double().sum().item() for one in model.parameters())
    words = (rank, local, dist.get_world_size(), first, f"{total:.6f}")
    os.write(1, f"result {' '.join(map(str, words))}\n".encode())  # in one piece
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
