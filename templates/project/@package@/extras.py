"""Your own Python for {{device}}: what `__all__` lists appears in `torch.{{device}}` too."""

import torch

__all__ = ["device_names"]


def device_names() -> list[str]:
    """The devices that this process can use, such as `["{{device}}:0", "{{device}}:1"]`."""
    return [f"{{device}}:{index}" for index in range(torch.{{device}}.device_count())]
