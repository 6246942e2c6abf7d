# SPDX-License-Identifier: Apache-2.0
"""Process groups, meshes, sharded modules and checkpoints on the CPU."""

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from models import network, numbers
from registry import destroy_groups, probe

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


@contextlib.contextmanager
def group(*arguments: Any, **options: Any) -> Iterator[None]:
    """A process group of this process alone."""
    dist.init_process_group(*arguments, store=dist.HashStore(), rank=0, world_size=1, **options)
    try:
        yield
    finally:
        destroy_groups()


@contextlib.contextmanager
def environment() -> Iterator[None]:
    """The variables by which torchrun tells a process of its group."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    values = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "RANK": "0", "WORLD_SIZE": "1"}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]
        destroy_groups()


def described() -> Any:
    """What PyTorch says of the default group."""
    default = dist.distributed_c10d._get_default_group()
    config = dist.distributed_c10d._world.pg_backend_config.get(default)
    value = torch.ones(2)
    dist.all_reduce(value)
    return dist.get_backend(), str(config), [str(one) for one in default._device_types], value


@probe
def default_group() -> Any:
    with group():
        return described()


@probe
def default_group_from_the_environment() -> Any:
    with environment():
        dist.init_process_group()
        return described()


@probe
def undefined_group() -> Any:
    with group("undefined"):
        return described()


@probe
def gloo_group() -> Any:
    with group("gloo"):
        return described()


@probe
def group_by_device() -> Any:
    with group("cpu:gloo"):
        return described()


@probe
def group_with_a_device() -> Any:
    with group("gloo", device_id=torch.device("cpu")):
        return described()


@probe
def default_group_with_a_device() -> Any:
    with group(device_id=torch.device("cpu")):
        return described()


@probe
def fake_group() -> Any:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    try:
        return dist.get_world_size(), dist.get_backend()
    finally:
        destroy_groups()


@probe
def unknown_group() -> Any:
    with group("unheard"):
        return described()


@probe
def unavailable_group() -> Any:
    with group("nccl"):
        return described()


@probe
def default_backends() -> Any:
    backend = dist.Backend
    lists = backend.backend_list, backend.default_device_backend_map, backend.backend_capability
    return lists, sorted(backend.backend_type_map)


@probe
def backend_of_the_cpu() -> Any:
    return dist.get_default_backend_for_device("cpu")


@probe
def backend_config() -> Any:
    from torch.distributed.distributed_c10d import BackendConfig

    words = ("undefined", "gloo", "cpu:gloo", "cpu:gloo,cuda:nccl", "GLOO")
    return [str(BackendConfig(dist.Backend(word))) for word in words]


@probe
def collectives() -> Any:
    with group():
        gathered = [torch.zeros(2)]
        dist.all_gather(gathered, torch.ones(2))
        dist.broadcast(gathered[0], 0)
        work = dist.all_reduce(gathered[0], async_op=True)
        work.wait()
        return gathered, dist.get_rank()


@probe
def barriers() -> Any:
    with group():
        return dist.barrier(), dist.barrier(async_op=True).wait()


@probe
def barrier_of_gloo() -> Any:
    with group("gloo"):
        return dist.barrier(), dist.monitored_barrier()


@probe
def objects() -> Any:
    with group():
        everything: list[Any] = [None]
        dist.all_gather_object(everything, {"a": 1})
        sent = [numbers()]
        dist.broadcast_object_list(sent, 0)
        scattered: list[Any] = [None]
        dist.scatter_object_list(scattered, ["b"], 0)
        return everything, sent, scattered


@probe
def device_of_objects() -> Any:
    with group():
        found = []
        for name in ("_get_pg_default_device", "_get_object_coll_device", "_device_capability"):
            function = getattr(dist.distributed_c10d, name, None)
            found.append(function and str(function()))
        return found


@probe
def new_groups() -> Any:
    with group():
        one = dist.new_group([0])
        two = dist.new_group([0], backend="gloo")
        value = torch.ones(1)
        dist.all_reduce(value, group=one)
        dist.all_reduce(value, group=two)
        return value, dist.get_backend(one), dist.get_backend(two)


@probe
def subgroups() -> Any:
    with group():
        one, _ = dist.new_subgroups(group_size=1)
        return dist.get_world_size(one)


@probe
def subgroups_of_a_machine() -> Any:
    with group():
        one, _ = dist.new_subgroups()
        return dist.get_world_size(one)


@probe
def split_group() -> Any:
    with group():
        return dist.split_group(split_ranks=[[0]])


@probe
def mesh() -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    with group():
        made = init_device_mesh("cpu", (1,), mesh_dim_names=("all",))
        return made, made.get_group().size(), made.get_local_rank()


@probe
def mesh_without_a_group() -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    with environment():
        made = init_device_mesh("cpu", (1, 1), mesh_dim_names=("one", "two"))
        return made, dist.get_backend(), made["one"]


@probe
def mesh_from_a_group() -> Any:
    from torch.distributed.device_mesh import DeviceMesh

    with group("gloo"):
        return DeviceMesh.from_group(dist.group.WORLD, "cpu")


@probe
def mesh_of_a_function() -> Any:
    from torch.distributed.device_mesh import _get_device_handle

    return [str(_get_device_handle(name)) for name in ("cpu", "cuda")]


@probe
def distributed_tensor() -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    with environment():
        made = init_device_mesh("cpu", (1,))
        split = distribute_tensor(numbers(), made, [Shard(0)])
        return (split + 1).redistribute(made, [Replicate()]).to_local(), split.placements


@probe
def distributed_random_numbers() -> Any:
    import torch.distributed.tensor as tensors
    from torch.distributed.device_mesh import init_device_mesh

    with environment():
        made = init_device_mesh("cpu", (1,))
        torch.manual_seed(5)
        return tensors.rand(2, device_mesh=made).to_local(), torch.rand(1)


@probe
def tensor_parallel() -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    with environment():
        made = init_device_mesh("cpu", (1,))
        return parallelize_module(network(), made, {"0": ColwiseParallel()})(numbers())


def trained(model: torch.nn.Module) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(numbers()).pow(2).mean()
        loss.backward()
        optimizer.step()
    return round(loss.item(), 4), sorted({str(one.device) for one in model.parameters()})


@probe
def data_parallel_processes() -> Any:
    with group():
        return trained(torch.nn.parallel.DistributedDataParallel(network()))


@probe
def data_parallel_processes_of_gloo() -> Any:
    with group("gloo"):
        model = torch.nn.parallel.DistributedDataParallel(network(), find_unused_parameters=True)
        return trained(model), model.device_type


@probe
def data_parallel_processes_with_a_hook() -> Any:
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

    with group():
        model = torch.nn.parallel.DistributedDataParallel(network())
        model.register_comm_hook(None, bf16_compress_hook)
        return trained(model)


@probe
def fully_sharded_by_default() -> Any:
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard

    with group():
        return trained(fully_shard(network()))


@probe
def fully_sharded_over_gloo() -> Any:
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard

    with group("gloo"):
        return trained(fully_shard(network()))


@probe
def fully_sharded_on_a_mesh() -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard

    with group("gloo"):
        return trained(fully_shard(network(), mesh=init_device_mesh("cpu", (1,))))


@probe
def replicated() -> Any:
    from torch.distributed._composable.replicate import replicate

    with group():
        return trained(replicate(network()))


@probe
def replicated_by_shards() -> Any:
    from torch.distributed._composable.replicate_with_fsdp import replicate

    with group():
        return trained(replicate(network()))


@probe
def fully_sharded_wrapper() -> Any:
    from torch.distributed.fsdp import FullyShardedDataParallel

    with group("gloo"):
        return trained(FullyShardedDataParallel(network(), device_id=torch.device("cpu")))


@probe
def redundant_optimizer() -> Any:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    with group():
        model = network()
        step = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
        model(numbers()).sum().backward()
        step.step()
        return next(model.parameters())


@probe
def averaged_parameters() -> Any:
    from torch.distributed.algorithms.model_averaging.utils import average_parameters

    with group():
        model = network()
        average_parameters(model.parameters(), dist.group.WORLD)
        return next(model.parameters())


@probe
def local_sgd() -> Any:
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

    with group():
        model = network()
        averager = PeriodicModelAverager(period=1, warmup_steps=0)
        averager.average_parameters(list(model.parameters()))
        return next(model.parameters())


@probe
def distributed_checkpoint() -> Any:
    import torch.distributed.checkpoint as dcp

    with tempfile.TemporaryDirectory() as folder, group():
        state = {"model": network().state_dict(), "step": 3}
        dcp.save(state, checkpoint_id=folder)
        fresh = {"model": {k: torch.zeros_like(v) for k, v in state["model"].items()}, "step": 0}
        dcp.load(fresh, checkpoint_id=folder)
        return fresh, sorted(os.listdir(folder))


@probe
def checkpoint_without_a_group() -> Any:
    import torch.distributed.checkpoint as dcp

    with tempfile.TemporaryDirectory() as folder:
        dcp.save({"value": numbers()}, checkpoint_id=folder, no_dist=True)
        fresh = {"value": torch.zeros(2, 3)}
        dcp.load(fresh, checkpoint_id=folder, no_dist=True)
        return fresh


@probe
def checkpoint_by_one_thread() -> Any:
    import torch.distributed.checkpoint as dcp

    with tempfile.TemporaryDirectory() as folder, group():
        writer = dcp.FileSystemWriter(folder, thread_count=1)
        dcp.save({"value": numbers(), "list": [1]}, storage_writer=writer)
        fresh = {"value": torch.zeros(2, 3), "list": [0]}
        dcp.load(fresh, storage_reader=dcp.FileSystemReader(folder))
        return fresh


@probe
def checkpoint_in_the_background() -> Any:
    import torch.distributed.checkpoint as dcp

    with tempfile.TemporaryDirectory() as folder, group("cpu:gloo"):
        dcp.async_save({"value": numbers()}, checkpoint_id=folder).result()
        fresh = {"value": torch.zeros(2, 3)}
        dcp.load(fresh, checkpoint_id=folder)
        return fresh


@probe
def state_dict_of_a_model() -> Any:
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    with group():
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        return get_model_state_dict(network(), options=options)


@probe
def pipeline() -> Any:
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    with group("gloo"):
        stage = PipelineStage(network(), 0, 1, torch.device("cpu"))
        return ScheduleGPipe(stage, 2).step(numbers())


@probe
def processes_per_machine() -> Any:
    from torch.distributed.run import determine_local_world_size

    return [determine_local_world_size(word) for word in ("2", "cpu")]


@probe
def device_limits() -> Any:
    from torch.distributed.elastic.utils.distributed import get_free_port

    return get_free_port() > 0


@probe
def functional_collectives() -> Any:
    import torch.distributed._functional_collectives as functional

    with group():
        return functional.all_reduce(torch.ones(2), "sum", dist.group.WORLD) + 0


@probe
def compiled_collectives() -> Any:
    with group():

        @torch.compile(backend="aot_eager")
        def function(value: torch.Tensor) -> torch.Tensor:
            dist.all_reduce(value)
            return value + 1

        return function(torch.ones(2))


@probe
def joined() -> Any:
    from torch.distributed.algorithms.join import Join

    with group():
        model = torch.nn.parallel.DistributedDataParallel(network())
        with Join([model]):
            model(numbers()).sum().backward()
        return next(model.parameters()).grad


@probe
def remote_calls() -> Any:
    from torch.distributed import rpc

    with environment():
        rpc.init_rpc("worker", rank=0, world_size=1)
        value = rpc.rpc_sync("worker", torch.add, args=(numbers(), 1))
        rpc.shutdown()
        return value


@probe
def two_processes() -> Any:
    """Each of two processes finds its device for itself, and they agree."""
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(2):
            child = os.fork()
            if child == 0:
                status = 1
                with contextlib.suppress(BaseException):
                    store = dist.FileStore(f"{folder}/store", 2)
                    dist.init_process_group(store=store, rank=rank, world_size=2)
                    value = torch.full((2,), float(rank))
                    dist.all_reduce(value)
                    dist.barrier()
                    status = 0 if value.tolist() == [1.0, 1.0] else 2
                os._exit(status)
            children.append(child)
        return [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in children]
