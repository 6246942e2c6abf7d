# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The properties of devices, like those in `torch.cuda`.

If the runtime does not report them, the functions raise a NotImplementedError that names the
function to implement.
"""

import importlib
from typing import NamedTuple, Union

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)

__all__ = [
    "DeviceProperties",
    "can_device_access_peer",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
]

#: A device's index, name or object; None is the current device.
_Device = Union[int, str, torch.device, None]


class DeviceProperties(NamedTuple):
    """What a driver reports about a device."""

    name: str
    #: In bytes.
    total_memory: int
    #: The number of units that compute in parallel; 0 if the driver does not report it.
    multi_processor_count: int
    #: The capability, which determines the kernels that the device can run.
    major: int
    minor: int


def get_device_properties(device: _Device = None) -> DeviceProperties:
    """The properties of a device, by default the current one; raises like `init`."""
    index = _device._index(device)
    return DeviceProperties(*_device._library().properties(index))


def get_device_name(device: _Device = None) -> str:
    """The name of a device; raises like `get_device_properties`."""
    return get_device_properties(device).name


def get_device_capability(device: _Device = None) -> tuple[int, int]:
    """The major and minor version of a device's capability; raises like `get_device_properties`."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: _Device, peer_device: _Device) -> bool:
    """Whether tensors can be copied between two devices without the host; raises like `init`.

    False for a device and itself.
    """
    index, peer = _device._index(device), _device._index(peer_device)
    return bool(_device._library().can_access_peer(index, peer))
