"""Your own Python code for foo: the names in `__all__` also appear in `torch.foo`."""

import torch

__all__ = ["device_names"]


def device_names() -> list[str]:
    """The devices that this process can use, such as `["foo:0", "foo:1"]`."""
    return [f"foo:{index}" for index in range(torch.foo.device_count())]
