# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""What the devices are, as `torch.cuda` tells of its own.

Where the runtime does not say it, the functions raise a NotImplementedError that names the
function it would have to implement.
"""

import importlib
from typing import NamedTuple, Union

import torch

# Not `from . import`: that would wait for the package, which may be waiting for this module.
_device = importlib.import_module("._device", __package__)

__all__ = [
    "DeviceProperties",
    "can_device_access_peer",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
]

#: A device by its index, its name or as an object; None is the current one.
_Device = Union[int, str, torch.device, None]


class DeviceProperties(NamedTuple):
    """What a driver tells of a device."""

    name: str
    #: In bytes.
    total_memory: int
    #: How many parts of the device compute at the same time; 0 where the driver does not tell.
    multi_processor_count: int
    #: The capability, which says what kernels the device can run.
    major: int
    minor: int


def get_device_properties(device: _Device = None) -> DeviceProperties:
    """What a device, by default the current one, is; raises as `init` does."""
    index = _device._index(device)
    return DeviceProperties(*_device._library().properties(index))


def get_device_name(device: _Device = None) -> str:
    """The name of a device; raises as `get_device_properties`."""
    return get_device_properties(device).name


def get_device_capability(device: _Device = None) -> tuple[int, int]:
    """The major and minor number of a device's capability; raises as `get_device_properties`."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: _Device, peer_device: _Device) -> bool:
    """Whether tensors go from a device to another one without the host; raises as `init` does.

    False for a device and itself.
    """
    index, peer = _device._index(device), _device._index(peer_device)
    return bool(_device._library().can_access_peer(index, peer))
