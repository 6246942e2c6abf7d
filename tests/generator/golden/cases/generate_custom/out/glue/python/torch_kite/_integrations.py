# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Which functions of this package change which modules of PyTorch and of other packages.

The changes are made only if a program imports these modules; see `_lazy.py`.
"""

import importlib
import types
from typing import Callable

# `from . import` could deadlock: it waits for the package, which may wait for this module.
when_imported = importlib.import_module("._lazy", __package__).when_imported


def _deferred(module: str, function: str) -> Callable[[types.ModuleType], None]:
    """Returns a function that imports a module of this package and calls a function in it."""

    def call(imported: types.ModuleType) -> None:
        getattr(importlib.import_module(f".{module}", __package__), function)(imported)

    return call


def register() -> None:
    """Registers the changes, once the backend is loaded."""
    _register_distributed()
    _register_torch()
    _register_lightning()
    _register_hugging_face()
    when_imported("torchvision", _deferred("_torchvision", "add_autocast"))


def _register_distributed() -> None:
    c10d = "torch.distributed.distributed_c10d"
    when_imported(c10d, _deferred("_distributed", "register"))
    when_imported(c10d, _deferred("_defaults", "patch_process_groups"))
    when_imported("torch.distributed.device_mesh", _deferred("_distributed", "patch_meshes"))
    when_imported("torch.nn.parallel.distributed", _deferred("_parallel", "patch_data_parallel"))
    when_imported(
        "torch.distributed.fsdp.fully_sharded_data_parallel",
        _deferred("_parallel", "patch_sharded_parallel"),
    )
    when_imported("torch.cuda._pin_memory_utils", _deferred("_parallel", "patch_pinning"))
    when_imported("torch.distributed.pipelining.stage", _deferred("_parallel", "patch_pipelines"))
    for kernels in ("_composable.fsdp", "fsdp._fully_shard"):
        when_imported(
            f"torch.distributed.{kernels}._fsdp_collectives",
            _deferred("_parallel", "add_sharding_kernels"),
        )
    for sharding in ("fsdp._fully_shard._fsdp_init", "_composable.replicate_with_fsdp"):
        when_imported(
            f"torch.distributed.{sharding}", _deferred("_defaults", "patch_device_meshes")
        )


def _register_torch() -> None:
    when_imported("torch.nn.parallel.data_parallel", _deferred("_defaults", "patch_data_parallel"))
    when_imported("torch._subclasses.fake_tensor", _deferred("_defaults", "patch_fake_tensors"))
    when_imported("torch.accelerator", _deferred("_defaults", "patch_accelerator"))
    when_imported("torch.random", _deferred("_defaults", "patch_fork_rng"))
    when_imported("torch.autograd", _deferred("_defaults", "patch_profiler_activities"))
    when_imported("torch.utils.data.dataloader", _deferred("_defaults", "patch_data_loader"))
    when_imported("torch.utils.benchmark.utils.timer", _deferred("_defaults", "patch_timer"))
    when_imported("torch._dynamo.device_interface", _deferred("_dynamo", "add_interface"))
    when_imported("torch._dynamo", _deferred("_dynamo", "register_functions"))
    when_imported(
        "torch._inductor.codegen.common", _deferred("_dynamo", "explain_missing_code_generator")
    )
    when_imported("torch.multiprocessing.reductions", _deferred("_sharing", "register_reducers"))


def _register_lightning() -> None:
    fabric = ("lightning.fabric", "lightning_fabric")
    for lightning in (*fabric, "lightning.pytorch", "pytorch_lightning"):
        when_imported(f"{lightning}.accelerators", _deferred("_lightning", "add_accelerator"))
        when_imported(f"{lightning}.strategies", _deferred("_lightning", "add_strategy"))
        for connector in ("connector", "trainer.connectors.accelerator_connector"):
            when_imported(f"{lightning}.{connector}", _deferred("_lightning", "patch_connectors"))


def _register_hugging_face() -> None:
    for module, function in (
        ("accelerate.state", "add_default_device"),
        ("accelerate.state", "add_processes"),
        ("accelerate.commands.launch", "add_launcher"),
        ("accelerate.utils.modeling", "add_memory"),
        ("accelerate.utils.modeling", "add_scaler"),
        ("accelerate.accelerator", "allow_half"),
        ("transformers.utils.import_utils", "add_bfloat16"),
        ("transformers.training_args", "add_training_device"),
        ("transformers.pipelines.base", "add_pipeline_device"),
        ("sentence_transformers.util", "add_name"),
        ("sentence_transformers.util.environment", "add_name"),
        ("safetensors", "add_location"),
    ):
        when_imported(module, _deferred("_hugging_face", function))
