"""Your own Python code for kite: the names in `__all__` also appear in `torch.kite`."""

import torch

__all__ = ["device_names"]


def device_names() -> list[str]:
    """The devices that this process can use, such as `["kite:0", "kite:1"]`."""
    return [f"kite:{index}" for index in range(torch.kite.device_count())]
