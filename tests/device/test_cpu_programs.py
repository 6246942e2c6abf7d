# SPDX-License-Identifier: Apache-2.0
"""Programs that use only the CPU go on as without the backend, where PyTorch takes a default."""

import os

import pytest
import torch
from backend import RELEASE, lacking
from fresh_process import Forks, printed

PRELUDE = """
import os, sys, warnings
import torch
warnings.simplefilter("error")

def started():
    "Whether a process forked from here finds the driver in use."
    child = os.fork()
    if child == 0:
        os._exit(int(module._is_in_bad_fork()))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
BEGIN = """
NAME = sys.argv[1]
module = getattr(torch, NAME)
"""
GROUP = """
import torch.distributed as dist
warnings.simplefilter("ignore")
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
needs_groups = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="PyTorch is built without torch.distributed"
)


@pytest.fixture(scope="module")
def forks():
    forks = Forks(PRELUDE)
    yield forks
    forks.close()


@pytest.fixture
def run(name, forks):
    """Runs a program after the prelude; what it prints, line by line."""
    return lambda program: forks.printed(BEGIN + program, name)


@needs_groups
def test_a_process_group_by_default_is_that_of_the_cpu(run):
    assert run(
        GROUP
        + """
value = torch.ones(2)
dist.all_reduce(value)
dist.barrier()
everything = [None]
dist.all_gather_object(everything, "object")
print(value.tolist(), everything, dist.distributed_c10d._get_default_group()._device_types)
"""
    ) == ["[1.0, 1.0] ['object'] [device(type='cpu')]"]


@needs_groups
def test_a_registered_process_group_is_left_to_pytorch(run):
    assert run("""
import torch.distributed as dist
from torch.distributed.distributed_c10d import BackendConfig
dist.Backend.register_backend("ours", lambda *_: None, devices=[NAME])
print("ours" in str(BackendConfig(dist.Backend("undefined"))))
""") == ["True"]


@needs_groups
def test_another_wrong_group_is_the_same_error(run):
    assert run("""
from torch.distributed.distributed_c10d import Backend, BackendConfig
try:
    BackendConfig(Backend("cpu:gloo,cpu:gloo"))
except ValueError as error:
    print("Duplicate" in str(error))
""") == ["True"]


@needs_groups
def test_a_mesh_without_a_group(run):
    assert run(
        """
os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
warnings.simplefilter("ignore")
from torch.distributed.device_mesh import init_device_mesh
print(init_device_mesh("cpu", (1,)).device_type)
"""
    ) == ["cpu"]


@needs_groups
def test_shards_by_default_stay_on_the_cpu(run):
    pytest.importorskip(
        "torch.distributed.fsdp._fully_shard",
        reason="torch.distributed.fsdp has no fully_shard in this release",
    )
    assert run(
        GROUP
        + """
from torch.distributed.fsdp import fully_shard
model = fully_shard(torch.nn.Linear(2, 1))
if hasattr(torch.cpu.Stream, "record_event"):  # PyTorch 2.6 cannot compute with shards of the CPU
    model(torch.ones(1, 2)).sum().backward()
print(model.weight.device, module.is_initialized())
"""
    ) == ["cpu False"]


def test_data_parallel_calls_its_module(run):
    assert run("""
model = torch.nn.DataParallel(torch.nn.Linear(2, 1))
print(model(torch.ones(1, 2)).shape, model.device_ids)
""") == ["torch.Size([1, 1]) []"]


def test_data_parallel_on_the_device_calls_its_module(device):
    model = torch.nn.DataParallel(torch.nn.Linear(2, 1).to(device))
    assert model(torch.ones(1, 2, device=device)).device == device


def test_random_numbers_are_kept_without_a_warning(run):
    assert run("""
torch.manual_seed(3)
with torch.random.fork_rng():
    torch.rand(2)
first = torch.rand(1)
torch.manual_seed(3)
print(torch.equal(first, torch.rand(1)))
""") == ["True"]


def test_random_numbers_of_the_device_are_kept_by_default(device, module):
    """Where PyTorch takes the accelerator, which is since 2.13."""
    with torch.random.fork_rng(device_type=device.type, devices=range(module.device_count())):
        torch.manual_seed(1)
        first = torch.rand(2, device=device).cpu()
    with torch.random.fork_rng(device_type=device.type, devices=range(module.device_count())):
        torch.manual_seed(1)
        assert torch.equal(first, torch.rand(2, device=device).cpu())


def test_fake_tensors_do_not_start_a_device(run):
    assert run("""
from torch._subclasses.fake_tensor import FakeTensorMode
print(FakeTensorMode().avoid_device_init or torch.cuda.is_available())
""") == ["True"]


@needs_fork
def test_waiting_for_the_accelerator_does_not_start_it(run):
    assert run("""
from torch.utils.benchmark import Timer
if hasattr(torch, "accelerator"):
    torch.accelerator.synchronize()
module.synchronize()
Timer("1").timeit(2)
print(started())
""") == ["0"]


@needs_fork
def test_a_profile_of_the_cpu_has_nothing_of_the_device(name):
    # Not in a fork: that is asked whether its parent used the device, which a profile shows.
    program = """
warnings.simplefilter("ignore")
with torch.profiler.profile() as profile:
    torch.manual_seed(1)
    torch.ones(2).sum()
keys = [event.key for event in profile.key_averages()]
print("aten::sum" in keys, [key for key in keys if NAME in key], started())
"""
    assert printed(PRELUDE + BEGIN + program, name) == ["True [] 0"]


def test_waiting_for_a_device_in_use_is_waiting(run):
    assert run("""
module.synchronize()
value = torch.ones(2, device=NAME)
module.synchronize(0)
module.synchronize()
print(value.sum().item())
""") == ["2.0"]


@needs_fork
def test_a_child_of_a_process_that_used_the_device(run):
    assert run("""
print(started())
torch.ones(1, device=NAME)
print(started(), module._is_in_bad_fork())
""") == ["0", "1 False"]


def test_a_loader_pins_where_the_device_can(name, run):
    can = not lacking(name, "pinned_memory")
    # Before 2.7 a loader pins only for CUDA unless it is told the device.
    told = {} if RELEASE >= (2, 7) else {"pin_memory_device": name}
    assert run(f"""
from torch.utils.data import DataLoader
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for workers in (0, 1):
        (batch,) = DataLoader(torch.ones(1), pin_memory=True, num_workers=workers, **{told})
        print(batch.is_pinned(NAME))
print(sum("'pin_memory' argument" in str(one.message) for one in caught))
""") == [str(can)] * 2 + ["0" if can else "2"]
