"""Your own Python code for npu: the names in `__all__` also appear in `torch.npu`."""

import torch

__all__ = ["device_names"]


def device_names() -> list[str]:
    """The devices that this process can use, such as `["npu:0", "npu:1"]`."""
    return [f"npu:{index}" for index in range(torch.npu.device_count())]
