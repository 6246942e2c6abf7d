"""A graph: work that a stream records once, and runs again with other numbers."""

import torch

numbers = torch.tensor([1.0, 2.0, 3.0], device="ocl")
stream, graph = torch.Stream(device="ocl"), torch.accelerator.Graph()
torch.accelerator.synchronize()
with stream, graph:
    result = numbers * numbers + 1
for first in (1.0, 10.0):
    with stream:
        numbers.fill_(first)
        graph.replay()
    stream.synchronize()
    print(result.tolist())
