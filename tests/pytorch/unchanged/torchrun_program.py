# SPDX-License-Identifier: Apache-2.0
"""Two processes of it, which torchrun starts, train together on the CPU."""

import os
import sys

import torch
import torch.distributed as dist

# Gloo of PyTorch 2.8 to 2.10 tells of its connections, in pieces that two processes mix.
output = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
dist.init_process_group()
os.dup2(output, 1)

value = torch.ones(2) * dist.get_rank()
dist.all_reduce(value)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
model(value).sum().backward()
if dist.get_rank() == 0:
    print(value, dist.get_world_size(), next(model.parameters()).grad)
dist.barrier()
sys.stdout.flush()
os._exit(0)  # see END in tests/device/test_cpu_programs.py
