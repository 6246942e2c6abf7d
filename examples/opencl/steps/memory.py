"""Pinned memory, and what the allocator keeps."""

import torch


def memory() -> str:
    used, kept = torch.ocl.memory_allocated(), torch.ocl.memory_reserved()
    return f"{used >> 20} MiB in tensors, {kept >> 20} MiB from the driver"


host = torch.randn(2048, 2048).pin_memory()
there = host.to("ocl", non_blocking=True)
torch.ocl.synchronize()
print("pinned:", host.is_pinned(), "- equal:", torch.equal(there.cpu(), host))
print("a tensor:   ", memory())
del there
print("without it: ", memory())
torch.ocl.empty_cache()
print("empty_cache:", memory())
