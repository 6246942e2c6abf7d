# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The random numbers of the device, like `torch.cuda.random`.

A generator's state has 16 bytes: a seed, and how many numbers each thread of a kernel has drawn.
"""

import importlib
from collections.abc import Iterable, Sequence
from typing import Union, overload

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)

__all__ = [
    "default_generators",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]

_Device = Union[int, str, torch.device, None]


class _DefaultGenerators(Sequence[torch.Generator]):
    """The default generators, one per device, for operators that are given none.

    They are created on access. Accessing one raises like `init`; counting them never raises.
    """

    def __len__(self) -> int:
        return int(_device.device_count())

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[torch.Generator, ...]: ...

    def __getitem__(
        self, index: Union[int, slice]
    ) -> Union[torch.Generator, tuple[torch.Generator, ...]]:
        chosen = range(len(self))[index]
        if isinstance(chosen, range):
            return tuple(self[one] for one in chosen)
        _device._lazy_init()
        generator: torch.Generator = _device._library().default_generator(chosen)
        return generator


default_generators: Sequence[torch.Generator] = _DefaultGenerators()


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator; before the device is used, at its first use."""
    if _device._failure is None:
        value = _as_seed(seed)
        _device._lazy_call(lambda: _seed_current(value), seed=True)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices; before they are used, at their first use.

    `torch.manual_seed` calls this. Does nothing if there is no device.
    """
    if _device._failure is None:
        value = _as_seed(seed)
        _device._lazy_call(lambda: _seed_each(value), seed_all=True)


def _as_seed(seed: int) -> int:
    """The seed as the signed integer that an operator takes; raises RuntimeError if out of
    range."""
    seed = int(seed)
    if not -(1 << 63) <= seed < 1 << 64:
        raise RuntimeError(f"seed {seed} is not in [-0x8000_0000_0000_0000, 0xffff_ffff_ffff_ffff]")
    return seed - (1 << 64) if seed >= 1 << 63 else seed


def _seed_current(seed: int) -> None:
    library = _device._library()
    library.manual_seed(library.current_device(), seed)


def _seed_each(seed: int) -> None:
    for index in range(_device.device_count()):
        _device._library().manual_seed(index, seed)


def seed() -> int:
    """Sets a random seed for the current device's generator and returns it; raises like `init`."""
    index = _device._index(None)
    drawn: int = _device._library().seed(index)
    return drawn % (1 << 64)


def seed_all() -> int:
    """Sets one random seed for all devices' generators and returns it; raises like `init`."""
    value = seed()
    _seed_each(_as_seed(value))
    return value


def initial_seed() -> int:
    """The seed of the current device's generator; raises like `init`."""
    index = _device._index(None)
    seed: int = _device._library().initial_seed(index)
    return seed % (1 << 64)


def get_rng_state(device: _Device = None) -> torch.Tensor:
    """The state of a device's generator, a tensor of bytes on the CPU; raises like `init`."""
    index = _device._index(device)
    state: torch.Tensor = _device._library().get_rng_state(index)
    return state


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices' generators; raises like `init`."""
    _device._lazy_init()
    return [get_rng_state(index) for index in range(_device.device_count())]


def set_rng_state(new_state: torch.Tensor, device: _Device = None) -> None:
    """Sets the state of a device's generator to one of `get_rng_state`; raises like `init`."""
    index = _device._index(device)
    _device._library().set_rng_state(index, new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices' generators; raises like `init`."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
