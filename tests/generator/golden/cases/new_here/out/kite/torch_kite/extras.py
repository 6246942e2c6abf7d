"""Your own Python for kite: what `__all__` lists appears in `torch.kite` too."""

import torch

__all__ = ["device_names"]


def device_names() -> list[str]:
    """The devices that this process can use, such as `["kite:0", "kite:1"]`."""
    return [f"kite:{index}" for index in range(torch.kite.device_count())]
