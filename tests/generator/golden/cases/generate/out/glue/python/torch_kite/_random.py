# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""Random numbers of the device, as `torch.cuda.random` has them.

A generator's state is a seed and how many numbers each thread of a kernel has drawn, 16 bytes.
"""

import importlib
from collections.abc import Iterable, Sequence
from typing import Union, overload

import torch

# Not `from . import`: that would wait for the package, which may be waiting for this module.
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
    """The generators that operators draw from where they are given none, one for each device.

    They are made when they are asked for; asking raises as `init` does, counting raises nothing.
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
    """Seeds the current device's generator, at the device's first use where that is to come."""
    if _device._failure is None:
        value = _as_seed(seed)
        _device._lazy_call(lambda: _seed_current(value), seed=True)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices, at their first use where that is to come.

    `torch.manual_seed` calls it. Does nothing where there is no device.
    """
    if _device._failure is None:
        value = _as_seed(seed)
        _device._lazy_call(lambda: _seed_each(value), seed_all=True)


def _as_seed(seed: int) -> int:
    """The seed as the signed integer that an operator takes; a RuntimeError if it has no place."""
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
    """Seeds the current device's generator at random and returns the seed; raises as `init`."""
    index = _device._index(None)
    drawn: int = _device._library().seed(index)
    return drawn % (1 << 64)


def seed_all() -> int:
    """Seeds all devices' generators with one random seed and returns it; raises as `init`."""
    value = seed()
    _seed_each(_as_seed(value))
    return value


def initial_seed() -> int:
    """The seed of the current device's generator; raises as `init` does."""
    index = _device._index(None)
    seed: int = _device._library().initial_seed(index)
    return seed % (1 << 64)


def get_rng_state(device: _Device = None) -> torch.Tensor:
    """The state of a device's generator, a tensor of bytes on the CPU; raises as `init` does."""
    index = _device._index(device)
    state: torch.Tensor = _device._library().get_rng_state(index)
    return state


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices' generators; raises as `init` does."""
    _device._lazy_init()
    return [get_rng_state(index) for index in range(_device.device_count())]


def set_rng_state(new_state: torch.Tensor, device: _Device = None) -> None:
    """Sets the state of a device's generator to one of `get_rng_state`; raises as `init` does."""
    index = _device._index(device)
    _device._library().set_rng_state(index, new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices' generators; raises as `init` does."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
