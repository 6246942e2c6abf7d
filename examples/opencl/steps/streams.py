"""Two streams, with events that order and time their work."""

import torch

one, two = torch.ocl.Stream(), torch.ocl.Stream()
start, end = (torch.ocl.Event(enable_timing=True) for _ in range(2))
with torch.ocl.stream(one):
    numbers = torch.arange(100.0, device="ocl")
    start.record()
    squares = numbers * numbers
    end.record()
two.wait_event(end)
with torch.ocl.stream(two):
    total = squares.sum()
two.synchronize()
print("total:", total.item())
print("the product took", start.elapsed_time(end), "ms")
