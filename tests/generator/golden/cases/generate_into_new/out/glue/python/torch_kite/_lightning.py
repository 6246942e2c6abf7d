# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The device in Lightning.

Imported when Lightning is, not by `import torch`, and does not need Lightning; see
`_integrations.py`.
"""

import functools
import importlib
import types
import warnings
from typing import Any, Union

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)

_NAME: str = _device._NAME


def add_accelerator(module: types.ModuleType) -> None:
    """Registers `accelerator="foo"`, unless it is already registered."""
    registry = getattr(module, "AcceleratorRegistry", None) or vars(module)["ACCELERATOR_REGISTRY"]
    if _NAME not in registry:
        made = _accelerator(vars(module)["Accelerator"])
        registry.register(_NAME, made, description=f"{_NAME} devices")


def add_strategy(module: types.ModuleType) -> None:
    """Registers `strategy="foo"`, which uses one device, unless it is already registered.

    In several processes, `strategy="ddp"` passes DistributedDataParallel no index of the device,
    because with one Lightning uses CUDA's streams.
    """
    registry = getattr(module, "StrategyRegistry", None) or vars(module)["STRATEGY_REGISTRY"]
    if _NAME not in registry:
        made = _strategy(vars(module)["SingleDeviceStrategy"])
        registry.register(_NAME, made, description=f"one {_NAME} device")
    strategy = vars(module).get("DDPStrategy")
    for name in ("determine_ddp_device_ids", "_determine_ddp_device_ids"):
        original = getattr(strategy, name, None)
        if original is not None:
            setattr(strategy, name, _without_index(original))


def _without_index(original: Any) -> Any:
    @functools.wraps(original)
    def determine_ddp_device_ids(self: Any) -> Any:
        return None if self.root_device.type == _NAME else original(self)

    return determine_ddp_device_ids


def _accelerator(base: Any) -> type:
    class Accelerator(base):  # type: ignore[misc]
        """The device as a Lightning accelerator."""

        def setup_device(self, device: torch.device) -> None:
            if device.type != _NAME:
                raise ValueError(
                    f'the strategy puts the model on `{device}`: with accelerator="{_NAME}", pass '
                    f'strategy="{_NAME}" or no strategy'
                )
            _device.set_device(device)

        def teardown(self) -> None:
            _device.memory.empty_cache()

        @staticmethod
        def parse_devices(devices: Union[int, str, list[int]]) -> list[int]:
            """The requested indices, from a number of devices, -1 for all, or indices."""
            if isinstance(devices, str) and "," in devices:
                chosen = [int(one) for one in devices.split(",") if one.strip()]
            elif isinstance(devices, (int, str)):
                count = int(devices)
                chosen = list(range(_device.device_count() if count == -1 else count))
            else:
                chosen = list(devices)
            there = range(_device.device_count())
            if not chosen or not set(chosen) <= set(there):
                raise ValueError(
                    f"devices={devices!r} do not exist: the {_NAME} devices are {list(there)}"
                )
            return chosen

        @staticmethod
        def get_parallel_devices(devices: list[int]) -> list[torch.device]:
            return [torch.device(_NAME, index) for index in devices]

        @staticmethod
        def auto_device_count() -> int:
            """The number that `devices="auto"` uses: all, or one if there is no process group."""
            count: int = _device.device_count()
            return count if _has_process_group() else min(1, count)

        @staticmethod
        def is_available() -> bool:
            return bool(_device.is_available())

        @staticmethod
        def name() -> str:
            return _NAME

        def get_device_stats(self, device: Any) -> dict[str, Any]:
            return dict(_device.memory.memory_stats(device))

    Accelerator.__qualname__ = Accelerator.__name__  # used in messages
    return Accelerator


def _strategy(base: Any) -> type:
    class Strategy(base):  # type: ignore[misc]
        """Lightning's strategy for one device: the first of the accelerator's."""

        strategy_name = _NAME

        def __init__(self, device: Union[str, torch.device] = f"{_NAME}:0", **options: Any) -> None:
            super().__init__(device=device, **options)
            self._parallel_devices: Any = None

        @property
        def parallel_devices(self) -> Any:
            return self._parallel_devices

        @parallel_devices.setter
        def parallel_devices(self, devices: Any) -> None:
            self._parallel_devices = devices
            if devices:
                self._root_device = devices[0]

    return Strategy


def patch_connectors(module: types.ModuleType) -> None:
    """Makes Lightning's connectors handle the device like those on their own lists.

    `accelerator="foo"` needs no strategy, `"auto"` uses the device where it would use the CPU, and
    mixed precision is the device's.
    """
    names = ("_AcceleratorConnector", "_Connector")
    connector = next(vars(module)[name] for name in names if name in vars(module))
    choose_accelerator = connector._choose_auto_accelerator
    set_devices = connector._set_parallel_devices_and_init_accelerator
    choose_strategy = connector._choose_strategy
    check_precision = connector._check_and_init_precision

    @functools.wraps(choose_accelerator)
    def _choose_auto_accelerator(self: Any) -> str:
        chosen: str = choose_accelerator(*(() if is_static else (self,)))
        if chosen != "cpu" or not _device.is_available():
            return chosen
        self._took_by_default = _NAME
        return _NAME

    @functools.wraps(set_devices)
    def _set_parallel_devices_and_init_accelerator(self: Any) -> None:
        if getattr(self, "_took_by_default", None) == _NAME and not _meets_request(self):
            self._accelerator_flag = "cpu"
        set_devices(self)

    @functools.wraps(choose_strategy)
    def _choose_strategy(self: Any) -> Any:
        if not _is_ours(self):
            return choose_strategy(self)
        count = self._num_nodes_flag * len(self._parallel_devices)
        if count <= 1:
            return _NAME
        if not _has_process_group():
            raise ValueError(
                f"training on {count} devices needs a process group for {_NAME}: register one with "
                "torch.distributed.Backend.register_backend, or train on one device of one machine"
            )
        return choose_strategy(self)

    @functools.wraps(check_precision)
    def _check_and_init_precision(self: Any) -> Any:
        if not _is_ours(self):
            return check_precision(self)
        # For an unknown accelerator, Lightning sets up mixed precision for CUDA.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*CUDA is not available")
            made = check_precision(self)
        if getattr(made, "device", None) == "cuda" and hasattr(made, "scaler"):
            return type(made)(made.precision, _NAME)
        return made

    is_static = isinstance(vars(connector)["_choose_auto_accelerator"], staticmethod)
    connector._choose_auto_accelerator = _choose_auto_accelerator
    connector._set_parallel_devices_and_init_accelerator = (
        _set_parallel_devices_and_init_accelerator
    )
    connector._choose_strategy = _choose_strategy
    connector._check_and_init_precision = _check_and_init_precision


def _is_ours(connector: Any) -> bool:
    """Whether the accelerator of one of Lightning's connectors is the device."""
    flag = connector._accelerator_flag
    return bool(flag == _NAME or getattr(flag, "name", lambda: None)() == _NAME)


def _has_process_group() -> bool:
    return _NAME in torch.distributed.Backend.default_device_backend_map


def _meets_request(connector: Any) -> bool:
    """Whether the device can do what a program that names no accelerator has asked for.

    If it asks for another device's strategy, or for more devices than there are, it stays on the
    CPU.
    """
    strategy, devices = connector._strategy_flag, connector._devices_flag
    place = getattr(strategy, "_root_device", None)
    if place is not None:
        return torch.device(place).type == _NAME
    there: int = _device.device_count()
    most = there
    if not _has_process_group():
        if strategy not in (None, "auto", _NAME) or connector._num_nodes_flag > 1:
            return False
        most = 1
    if devices in (None, "auto"):
        return True
    if isinstance(devices, str) and "," in devices:
        devices = [one for one in devices.split(",") if one.strip()]
    if isinstance(devices, (list, tuple)):
        return len(devices) <= most
    count = int(devices)
    return (there if count == -1 else count) <= most
