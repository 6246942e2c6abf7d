# SPDX-License-Identifier: Apache-2.0
"""What the machines run: an all_reduce, how long it takes, and whether its result is right.

reduction.py BYTES
"""

from __future__ import annotations

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group(timeout=datetime.timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    values = torch.arange(int(sys.argv[1]) // 4, dtype=torch.int32)
    tensor = (values * (rank + 1)).to("foo")
    dist.all_reduce(torch.zeros(1, device="foo"))  # connects the ranks for the device
    dist.barrier()
    started = time.monotonic()
    dist.all_reduce(tensor)
    torch.accelerator.synchronize()
    seconds = time.monotonic() - started
    right = torch.equal(tensor.cpu(), values * (size * (size + 1) // 2))
    os.write(1, f"result {rank} {seconds:.3f} {right}\n".encode())  # in one piece
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
