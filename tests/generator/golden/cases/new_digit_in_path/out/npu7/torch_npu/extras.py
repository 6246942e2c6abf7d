"""Your own Python for npu: what `__all__` lists appears in `torch.npu` too."""

import torch

__all__ = ["device_names"]


def device_names() -> list[str]:
    """The devices that this process can use, such as `["npu:0", "npu:1"]`."""
    return [f"npu:{index}" for index in range(torch.npu.device_count())]
