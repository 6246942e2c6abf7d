"""Your own Python code for {{device}}: the names in `__all__` also appear in `torch.{{device}}`."""

import torch

__all__ = ["device_names"]


def device_names() -> list[str]:
    """The devices that this process can use, such as `["{{device}}:0", "{{device}}:1"]`."""
    return [f"{{device}}:{index}" for index in range(torch.{{device}}.device_count())]
