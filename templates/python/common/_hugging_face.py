# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The device in Accelerate, Transformers, Sentence Transformers and safetensors.

Each of these packages has lists of the devices that it supports. Where a package would use the CPU
because it finds none of those devices, it uses this one. This module is imported when such a
package is, not by `import torch`, and works without them; see `_integrations.py`.
"""

import functools
import importlib
import inspect
import logging
import os
import types
from typing import Any, Callable, Optional, Union

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)
_distributed = importlib.import_module("._distributed", __package__)
_other_accelerator = importlib.import_module("._defaults", __package__).other_accelerator

_NAME: str = _device._NAME


def _is_default() -> bool:
    """Whether a program that names no device should get this one."""
    return bool(_device.is_available()) and _other_accelerator().type == "cpu"


def add_default_device(module: types.ModuleType) -> None:
    """Makes Accelerate use the device where it would use the CPU because it finds no other.

    Its variable ACCELERATE_TORCH_DEVICE and `Accelerator(cpu=True)` take precedence.
    """
    state = vars(module)["PartialState"]
    original = state.default_device.fget

    @functools.wraps(original)
    def default_device(self: Any) -> torch.device:
        chosen: torch.device = original(self)
        if chosen.type == "cpu" and _device.is_available():
            return torch.device(_NAME)
        return chosen

    state.default_device = property(default_device)


def add_processes(module: types.ModuleType) -> None:
    """Makes Accelerate's processes use a device each, and the device's process group.

    Its list of kinds of processes has none for other devices, so they are of CUDA's kind, which
    the rest of Accelerate treats as it should.
    """
    state = vars(module)["PartialState"]
    prepare, set_device = state._prepare_backend, state.set_device
    kind = vars(module)["DistributedType"].MULTI_GPU

    @functools.wraps(prepare)
    def _prepare_backend(self: Any, cpu: bool = False, *arguments: Any, **options: Any) -> Any:
        backend, found = prepare(self, cpu, *arguments, **options)
        launched = os.environ.get("LOCAL_RANK", "-1") != "-1"
        if found.value != "NO" or cpu or not launched or not _is_distributed():
            return backend, found
        self._uses_this_device = True
        return backend or _distributed.both(), kind

    @functools.wraps(set_device)
    def _set_device(self: Any) -> None:
        if self.device is None and vars(self).get("_uses_this_device", False):
            index = self.local_process_index % _device.device_count()
            _device.set_device(index)
            self.device = torch.device(_NAME, index)
            return
        set_device(self)

    state._prepare_backend = _prepare_backend
    state.set_device = _set_device


def add_launcher(module: types.ModuleType) -> None:
    """Makes `accelerate launch` start a process for each device, unless it is told otherwise."""
    original: Callable[[Any], Any] = vars(module)["_validate_launch_command"]

    @functools.wraps(original)
    def _validate_launch_command(args: Any) -> Any:
        others = ("cpu", "tpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "config_file")
        config = vars(module).get("default_config_file")
        told = any(getattr(args, name, None) for name in others)
        if not told and not (config and os.path.isfile(config)) and _is_distributed():
            if args.num_processes is None:
                args.num_processes = _device.device_count()
            args.multi_gpu = args.multi_gpu or args.num_processes > 1
        return original(args)

    vars(module)["_validate_launch_command"] = _validate_launch_command


def _is_distributed() -> bool:
    """Whether processes that name no device should get this one and its process group."""
    return bool(_distributed.is_registered()) and _is_default()


def add_memory(module: types.ModuleType) -> None:
    """Makes Accelerate's `get_max_memory`, and so `device_map="auto"`, include the devices."""
    original: Callable[..., dict[Any, Any]] = vars(module)["get_max_memory"]

    @functools.wraps(original)
    def get_max_memory(max_memory: Optional[dict[Any, Any]] = None) -> dict[Any, Any]:
        if not _is_default():
            return original(max_memory)
        if max_memory is not None:
            found: dict[Any, Any] = _without_warning(module, lambda: original(max_memory))
            return found
        if not _device.capabilities().has("memory_info"):
            vars(module)["logger"].warning(
                f"the driver of {_device.display_name} does not report its free memory, so nothing "
                'is placed on it: pass max_memory, such as {0: "10GiB"}'
            )
            return original()
        free = {
            index: _device.memory.mem_get_info(index)[0] for index in range(_device.device_count())
        }
        return {**free, **original()}

    vars(module)["get_max_memory"] = get_max_memory


def add_scaler(module: types.ModuleType) -> None:
    """Makes Accelerate scale gradients on the device; releases before 1.0 lack this function."""
    original: Optional[Callable[..., Any]] = vars(module).get("get_grad_scaler")
    if original is None:
        return

    @functools.wraps(original)
    def get_grad_scaler(distributed_type: Any = None, **options: Any) -> Any:
        is_sharded = getattr(distributed_type, "value", None) == "FSDP"
        if is_sharded or not _is_default():
            return original(distributed_type, **options)
        return torch.amp.GradScaler(_NAME, **options)

    vars(module)["get_grad_scaler"] = get_grad_scaler


def _without_warning(module: types.ModuleType, call: Callable[[], Any]) -> Any:
    """Makes a call without Accelerate's warning about missing devices: it looks only for CUDA."""
    logger = logging.getLogger(module.__name__)

    def is_wanted(record: logging.LogRecord) -> bool:
        return "is not available, available devices are []" not in record.getMessage()

    logger.addFilter(is_wanted)
    try:
        return call()
    finally:
        logger.removeFilter(is_wanted)


def allow_half(module: types.ModuleType) -> None:
    """Makes Accelerate accept `mixed_precision="fp16"` if the device's autocast supports float16.

    The list of devices is a constant of this function, so it can only be changed there.
    """
    if torch.float16 not in _device._amp_dtypes():
        return
    function = inspect.unwrap(vars(module)["Accelerator"].__init__)
    original = function.__code__.co_consts
    constants = tuple(
        (*one, _NAME) if isinstance(one, tuple) and {"cuda", "npu", "xpu"} <= set(one) else one
        for one in original
    )
    if constants == original:
        raise LookupError(f'found no list of devices for mixed_precision="fp16" to add {_NAME} to')
    function.__code__ = function.__code__.replace(co_consts=constants)


def add_training_device(module: types.ModuleType) -> None:
    """Makes the Trainer of Transformers train on Accelerate's device instead of the CPU."""
    arguments = vars(module)["TrainingArguments"]
    original = vars(arguments)["_setup_devices"]  # a cached property, from functools or their own
    function = getattr(original, "func", None) or original.fget

    @functools.wraps(function)
    def _setup_devices(self: Any) -> torch.device:
        found: torch.device = function(self)
        state = getattr(self, "distributed_state", None)
        if state is None or self.use_cpu or state.device.type != _NAME:
            return found
        if found.type == "cpu":
            _device.set_device(0)
            found = torch.device(_NAME, 0)
        self._n_gpu = 1
        return found

    made = type(original)(_setup_devices)
    if hasattr(made, "__set_name__"):
        made.__set_name__(arguments, "_setup_devices")
    arguments._setup_devices = made


def add_bfloat16(module: types.ModuleType) -> None:
    """Makes Transformers accept `bf16=True` if the device's autocast supports bfloat16."""
    original: Callable[[], bool] = vars(module)["is_torch_bf16_gpu_available"]

    @functools.wraps(original)
    def is_torch_bf16_gpu_available() -> bool:
        if _is_default():
            return torch.bfloat16 in _device._amp_dtypes()
        return original()

    vars(module)["is_torch_bf16_gpu_available"] = is_torch_bf16_gpu_available


def add_pipeline_device(module: types.ModuleType) -> None:
    """Makes pipelines of Transformers use the device, also by number and by default."""
    pipeline = vars(module)["Pipeline"]
    original = pipeline.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def initialize(self: Any, *arguments: Any, **options: Any) -> None:
        given = signature.bind(self, *arguments, **options)
        wanted = given.arguments.get("device")
        places = getattr(given.arguments["model"], "hf_device_map", None)
        if wanted is None:  # a split model is on its first part's device
            wanted = 0 if places is None else next(iter(places.values()), None)
        place = None
        if isinstance(wanted, int) and wanted >= 0 and _is_default():
            place = torch.device(_NAME, wanted)
        if place is not None and places is None:
            given.arguments["device"] = place
        original(*given.args, **given.kwargs)
        if place is not None:
            self.device = place

    pipeline.__init__ = initialize


def add_name(module: types.ModuleType) -> None:
    """Makes Sentence Transformers use the device where it would use the CPU."""
    original: Optional[Callable[[], str]] = vars(module).get("get_device_name")
    if original is None or original.__module__ != module.__name__:
        return

    @functools.wraps(original)
    def get_device_name() -> str:
        name = original()
        return f"{_NAME}:{_device.current_device()}" if name == "cpu" and _is_default() else name

    vars(module)["get_device_name"] = get_device_name


def add_location(module: types.ModuleType) -> None:
    """Makes safetensors, which accepts only names that it knows, load to the device by its name."""
    original: Any = vars(module)["safe_open"]

    class _Kind(type):
        def __instancecheck__(cls, one: object) -> bool:
            return isinstance(one, original)

    class safe_open(metaclass=_Kind):
        __doc__ = original.__doc__
        __module__ = module.__name__

        def __new__(cls, filename: Any, framework: str, device: Any = "cpu", **more: Any) -> Any:
            if framework in ("pt", "torch", "pytorch"):
                device = _number(device)
            return original(filename, framework, device=device, **more)

    safe_open.__qualname__ = safe_open.__name__
    vars(module)["safe_open"] = safe_open


def _number(device: Union[str, int, torch.device]) -> Union[str, int, torch.device]:
    """The index of a device of this type; any other device unchanged."""
    kind, _, index = str(device).partition(":")
    if kind != _NAME or (index and not index.isdecimal()):
        return device
    return int(index) if index else int(_device.current_device())
