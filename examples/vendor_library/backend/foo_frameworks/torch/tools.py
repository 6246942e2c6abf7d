"""The vendor's own Python: what `__all__` lists appears in `torch.foo` too."""

import torch

__all__ = ["device_names"]


def device_names() -> list[str]:
    """The devices that this process can use, such as `["foo:0", "foo:1"]`."""
    return [f"foo:{index}" for index in range(torch.foo.device_count())]
