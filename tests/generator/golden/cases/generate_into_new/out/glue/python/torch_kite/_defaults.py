# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""What PyTorch uses when a program names no device.

PyTorch then uses the machine's accelerator, which is this device as soon as its name is known,
whether the program uses it or not. A program that does not use it must run as it does without this
package. So where PyTorch cannot use this device, the functions here patch PyTorch to use the
default that it has without this device.
"""

import functools
import importlib
import inspect
import types
import warnings
from typing import Any, Callable

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)

_NAME: str = _device._NAME


def _in_use() -> bool:
    """Whether this process uses the driver.

    PyTorch may mark the package as initialized earlier, for example in `fork_rng()`.
    """
    return _device._failure is None and _device._library().is_in_use()


def _has_group(c10d: types.ModuleType) -> bool:
    """Whether a vendor has registered a process group as the default one of the device.

    The library's own does not count: it is always there, also in programs that use only the CPU.
    """
    name = c10d.Backend.default_device_backend_map.get(_NAME)
    return name is not None and name != _device._build.DISTRIBUTED


def other_accelerator() -> torch.device:
    """The accelerator that PyTorch would use without the device; the CPU if there is none."""
    for kind in ("cuda", "xpu", "mps", "mtia"):
        is_available = getattr(getattr(torch, kind, None), "is_available", None)
        if is_available is not None and is_available():
            return torch.device(kind)
    return torch.device("cpu")


def _group_of_others(c10d: types.ModuleType) -> str:
    """The process group that PyTorch would use on this machine without the device: "cpu:gloo"."""
    known: dict[str, str] = c10d.Backend.default_device_backend_map
    kind = other_accelerator().type
    return f"{kind}:{known[kind]}" if kind in known else f"cpu:{known['cpu']}"


def patch_process_groups(c10d: types.ModuleType) -> None:
    """Makes `init_process_group()` create the same group as without the device.

    If the process uses the device, the group has a part for it too. Once a vendor has registered a
    process group of its own for the device, PyTorch decides.
    """
    config = c10d.BackendConfig
    original = config.__init__
    distributed = importlib.import_module("._distributed", __package__)

    @functools.wraps(original)
    def initialize(self: Any, backend: Any) -> None:
        if str(backend) != c10d.Backend.UNDEFINED or _has_group(c10d):
            original(self, backend)
            return
        chosen = distributed.default_config()
        if chosen is not None:
            original(self, chosen)
            return
        try:
            original(self, backend)
            self.device_backend_map.pop(_NAME, None)  # 2.5 has a part for each device
            found = bool(self.device_backend_map)
        except ValueError:  # it has no process group for the accelerator
            found = False
        if not found:
            original(self, _group_of_others(c10d))

    config.__init__ = initialize


def patch_device_meshes(module: types.ModuleType) -> None:
    """Makes `fully_shard` and `replicate` without a mesh leave a module on the CPU.

    If the process uses the device, or a vendor has registered a process group for it, PyTorch
    decides.
    """
    original = getattr(module, "init_device_mesh", None)
    if original is None:
        return
    c10d = importlib.import_module("torch.distributed.distributed_c10d")

    @functools.wraps(original)
    def init_device_mesh(device_type: str, *arguments: Any, **options: Any) -> Any:
        if device_type == _NAME and not _in_use() and not _has_group(c10d):
            device_type = other_accelerator().type
        return original(device_type, *arguments, **options)

    vars(module)["init_device_mesh"] = init_device_mesh


def patch_data_parallel(module: types.ModuleType) -> None:
    """Makes `torch.nn.DataParallel` call its module, as on a machine without devices.

    It copies modules to several devices with functions that PyTorch builds only for CUDA.
    """
    original: Callable[[], Any] = vars(module)["_get_available_device_type"]

    def available() -> Any:
        found = original()
        return None if found == _NAME else found

    vars(module)["_get_available_device_type"] = available


def patch_fake_tensors(module: types.ModuleType) -> None:
    """Makes fake tensors on CUDA work without CUDA while the process does not use this device.

    PyTorch assumes that it may start an available device.
    """
    if hasattr(module, "_is_privateuse1_backend_available"):
        vars(module)["_is_privateuse1_backend_available"] = _in_use


def patch_accelerator(module: types.ModuleType) -> None:
    """Makes torch.accelerator count the devices without starting one.

    From 2.8 on, PyTorch asks this package for their number. Older releases start the device, which
    raises an error if there is none; in 2.6 `is_available()` does so too.
    """
    if hasattr(module, "device_index"):
        return
    original = module.device_count

    @functools.wraps(original)
    def device_count() -> int:
        is_ours = module.current_accelerator() == torch.device(_NAME)
        count: int = _device.device_count() if is_ours else original()
        return count

    vars(module)["device_count"] = device_count


def patch_fork_rng(module: types.ModuleType) -> None:
    """Keeps `fork_rng()` from warning that it would have to start several devices, one by one.

    Reading the states of this device's generators starts nothing. In releases where devices are
    CUDA's if their type is not given, as pipelines do not, those of this type are this device's.
    """
    original = vars(module)["fork_rng"]
    signature = inspect.signature(original)
    if signature.parameters["device_type"].default is None:
        vars(module)["_fork_rng_warned_already"] = True
        return

    @functools.wraps(original)
    def fork_rng(*arguments: Any, **options: Any) -> Any:
        given = signature.bind(*arguments, **options).arguments
        devices = given.get("devices")
        if devices and "device_type" not in given:
            given["devices"] = devices = list(devices)
            if all(isinstance(one, torch.device) and one.type == _NAME for one in devices):
                given["device_type"] = _NAME
        return original(**given)

    vars(module)["fork_rng"] = fork_rng


def patch_profiler_activities(autograd: types.ModuleType) -> None:
    """Makes torch.profiler record this device only if there is one.

    A profile waits for the devices that it records, which raises an error if there is none.
    """
    original: Callable[[], set[Any]] = vars(autograd)["_supported_activities"]

    def supported_activities() -> set[Any]:
        ours = set() if _device.is_available() else {autograd.ProfilerActivity.PrivateUse1}
        return original() - ours

    vars(autograd)["_supported_activities"] = supported_activities


def patch_data_loader(module: types.ModuleType) -> None:
    """Makes `DataLoader(pin_memory=True)` continue if the device has no pinned memory.

    PyTorch does the same on MPS, with the same warning.
    """
    if _device.capabilities().has("pinned_memory"):
        return
    base = vars(module)["_BaseDataLoaderIter"]
    original = base.__init__

    @functools.wraps(original)
    def initialize(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        place = getattr(self, "_pin_memory_device", None) or _NAME
        if self._pin_memory and place.split(":")[0] == _NAME:
            self._pin_memory = False
            warnings.warn(
                f"'pin_memory' argument is set as true but not supported on "
                f"{_device.display_name}, whose Runtime has no `allocate_host`: the memory is "
                "not pinned",
                stacklevel=2,
            )

    base.__init__ = initialize


def patch_timer(module: types.ModuleType) -> None:
    """Keeps `torch.utils.benchmark.Timer` from waiting for a device that does not exist.

    Releases in which it does not use torch.accelerator wait for any backend's device.
    """
    if hasattr(module, "privateuse1_device_handler") and not _device.is_available():
        vars(module)["privateuse1_device_handler"] = None
