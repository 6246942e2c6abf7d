"""Your own Python code for ocl: the names in `__all__` also appear in `torch.ocl`."""

import torch

__all__ = ["device_names"]


def device_names() -> list[str]:
    """The devices that this process can use, such as `["ocl:0", "ocl:1"]`."""
    return [f"ocl:{index}" for index in range(torch.ocl.device_count())]
