# SPDX-License-Identifier: Apache-2.0
"""Training and tensors on several devices: what PyTorch builds on collectives.

Each result is compared with that of one process on the CPU.
"""

import inspect
import json

import parallel_programs as copies
import pytest
import shard_programs as parts
import split_programs as splits
from backend import RELEASE

pytestmark = pytest.mark.needs("distributed")

FSDP2 = pytest.mark.skipif(RELEASE < (2, 6), reason="PyTorch 2.5 has FSDP2 for CUDA only")
# PyTorch's reducer brings its map of used parameters to the device from pinned memory.
MAP_OF_USED = pytest.mark.needs("pinned_memory")


def each(names):
    return [pytest.param(one, id=one.__name__) for one in names]


# --- DistributedDataParallel ------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bucket_cap_mb": 0.0005},
        pytest.param({"bucket_cap_mb": 0.0005, "static_graph": True}, marks=MAP_OF_USED),
        {"gradient_as_bucket_view": True},
        pytest.param({"find_unused_parameters": True}, marks=MAP_OF_USED),
        {"broadcast_buffers": False},
    ],
    ids=json.dumps,
)
def test_ddp(ranks, options):
    ranks(copies.ddp, **options)


@pytest.mark.parametrize(
    "program",
    each(
        [
            copies.ddp_of_the_ranks_device,
            copies.ddp_begins_with_the_first_ranks_values,
            copies.ddp_without_sync,
            copies.ddp_with_uneven_inputs,
            copies.ddp_with_a_wrapped_hook,
            copies.ddp_with_a_hook_of_ones_own,
            copies.ddp_with_power_sgd,
            copies.ddp_with_buffers,
            copies.ddp_of_two_models,
            copies.ddp_compiled,
        ]
    ),
)
def test_ddp_in_other_ways(ranks, program):
    ranks(program)


@MAP_OF_USED
def test_ddp_with_unused_parameters(ranks):
    ranks(copies.ddp_with_unused_parameters)


@pytest.mark.parametrize("hook", ["allreduce_hook", "fp16_compress_hook", "bf16_compress_hook"])
def test_ddp_with_a_hook(ranks, hook):
    ranks(copies.ddp_with_a_hook, hook)


@pytest.mark.needs("events")
def test_ddp_logging_data(ranks):
    ranks(copies.ddp_logging_data)


@pytest.mark.needs("autocast")
def test_ddp_with_autocast(ranks):
    ranks(copies.ddp_with_autocast)


def test_ddp_then_a_checkpoint(ranks, tmp_path):
    ranks(copies.ddp_then_a_checkpoint, str(tmp_path))


@pytest.mark.parametrize("bucket_view", [False, True])
def test_zero_optimizer(ranks, bucket_view):
    ranks(copies.zero_optimizer, bucket_view)


def test_model_averaging(ranks):
    ranks(copies.model_averaging)


@pytest.mark.parametrize("dims", [1, 3])
def test_sync_batch_norm(ranks, dims):
    ranks(copies.sync_batch_norm, dims)


def test_sync_batch_norm_in_ddp(ranks):
    ranks(copies.sync_batch_norm_in_ddp)


@pytest.mark.parametrize("name_of", ["all_reduce", "all_gather", "broadcast", "all_to_all_single"])
def test_gradients_pass_collectives(ranks, name_of):
    ranks(copies.autograd_of_collectives, name_of)


# --- FSDP -------------------------------------------------------------------------------------


@pytest.mark.needs("streams", "events")
@pytest.mark.parametrize("strategy", ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"])
def test_fsdp1(ranks, strategy):
    ranks(parts.fsdp1, strategy)


@pytest.mark.needs("streams", "events")
@pytest.mark.parametrize(
    "program",
    each(
        [
            parts.fsdp1_in_mixed_precision,
            parts.fsdp1_on_the_cpu_meanwhile,
            parts.fsdp1_clips_gradients,
        ]
    ),
)
def test_fsdp1_in_other_ways(ranks, program):
    ranks(program)


@pytest.mark.needs("streams", "events")
@pytest.mark.parametrize("use_orig_params", [False, True])
def test_fsdp1_accumulates_gradients(ranks, use_orig_params):
    ranks(parts.fsdp1_accumulates_gradients, use_orig_params=use_orig_params)


@FSDP2
@pytest.mark.needs("streams", "events")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reshard_after_forward": False},
        {"precision": "bfloat16"},
        {"pinned": False},
        pytest.param({"pinned": True}, marks=pytest.mark.needs("pinned_memory")),
    ],
    ids=json.dumps,
)
def test_fsdp2(ranks, options):
    if "pinned" in options and "pin_memory" not in _fields_of_offloading():
        pytest.skip("CPUOffloadPolicy of this PyTorch has no `pin_memory`")
    ranks(parts.fsdp2, **options)


def _fields_of_offloading():
    module, _ = parts._fully_shard()
    return inspect.signature(module.CPUOffloadPolicy).parameters


@FSDP2
@pytest.mark.needs("streams", "events")
@pytest.mark.parametrize(
    "program",
    each(
        [
            parts.fsdp2_accumulates_gradients,
            parts.fsdp2_clips_gradients,
            parts.fsdp2_in_two_dimensions,
            parts.fsdp2_keeps_copies,
        ]
    ),
)
def test_fsdp2_in_other_ways(ranks, program):
    ranks(program)


# --- tensors in parts -------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [8, 5])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("rows", "columns"),
        ("columns", "rows"),
        ("rows", "copies"),
        ("copies", "rows"),
        ("copies", "columns"),
    ],
)
def test_redistribute(ranks, rows, first, second):
    ranks(parts.placed, rows, first, second)


@pytest.mark.parametrize(
    "program",
    each(
        [
            parts.meshes,
            parts.a_mesh_of_a_group,
            parts.sum_of_parts,
            parts.operations,
        ]
    ),
)
def test_tensors_in_parts(ranks, program):
    ranks(program)


@pytest.mark.skipif(
    RELEASE < (2, 7), reason="before PyTorch 2.7 random numbers of a DTensor are CUDA's only"
)
def test_random_tensors_in_parts(ranks):
    ranks(parts.random_tensors)


@pytest.mark.parametrize("sequence", [False, True])
def test_tensor_parallel(ranks, sequence):
    ranks(parts.tensor_parallel, sequence)


@pytest.mark.parametrize("schedule", ["ScheduleGPipe", "Schedule1F1B"])
def test_pipeline(ranks, schedule):
    ranks(parts.pipeline, schedule)


# --- functional collectives -------------------------------------------------------------------

FUNCTIONAL = [
    "all_reduce",
    "all_reduce_avg",
    "all_gather_tensor",
    "reduce_scatter_tensor",
    "all_to_all_single",
    "broadcast",
    "all_reduce_coalesced",
    "all_gather_into_tensor_coalesced",
]


@pytest.mark.parametrize("collective", FUNCTIONAL)
def test_functional_collectives(ranks, collective):
    ranks(parts.functional, collective)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("collective", FUNCTIONAL[:5])
def test_compiled_functional_collectives(ranks, collective, backend):
    ranks(parts.functional, collective, backend)


# --- checkpoints and groups -------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_checkpoint(ranks, tmp_path, asynchronous):
    ranks(parts.checkpoint, str(tmp_path / "checkpoint"), asynchronous)


@FSDP2
@pytest.mark.needs("streams", "events")
def test_checkpoint_of_a_training(ranks, tmp_path):
    ranks(parts.checkpoint_of_a_training, str(tmp_path / "checkpoint"))


@pytest.mark.needs("streams", "events")
def test_whole_state_of_a_sharded_model(ranks):
    ranks(parts.whole_state_of_a_sharded_model)


@pytest.mark.skipif(
    RELEASE < (2, 9), reason="groups of backends other than NCCL split from PyTorch 2.9 on"
)
@pytest.mark.parametrize("program", each(splits.PROGRAMS))
def test_split_group(ranks, program):
    ranks(program)
