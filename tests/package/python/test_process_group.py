# SPDX-License-Identifier: Apache-2.0
"""The device's process group in programs that torchrun and others start, in a process per device.

What the process group computes is tested on any device, in tests/device.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from pathlib import Path

import pytest

PYTHON = os.environ["BACKENDKIT_TEST_PYTHON"]
TORCHRUN = ("torch.distributed.run", "--standalone")
START = """
import os, warnings
import torch
import torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])

def result(*values):  # one write: several processes share the file
    os.write(1, f"result {rank} {' '.join(map(str, values))}\\n".encode())
"""
#: Ends with one line of each process.
END = """
value = torch.full((3,), float(rank + 1), device=f"foo:{rank}")
dist.all_reduce(value)
host = torch.ones(2)
parts = sorted(one.type for one in dist.group.WORLD._device_types)
if "cpu" in parts:
    dist.all_reduce(host)
    dist.monitored_barrier()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2).to(value.device))
model(torch.ones(2, 4, device=value.device)).sum().backward()
everything = [None] * dist.get_world_size()
dist.all_gather_object(everything, rank)
dist.barrier(device_ids=None if "cpu" in parts else [rank])
dist.destroy_process_group()
result(value.tolist(), "+".join(parts), everything)
"""
MESH = """
from torch.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("foo", (2,), mesh_dim_names=("data",))
dist.all_reduce(torch.ones(2, device="foo"), group=mesh.get_group("data"))
"""


def launch(
    code: str, folder: Path, *flags: str, launcher: tuple[str, ...] = TORCHRUN, **environment: str
) -> list[str]:
    """The last words of each process, in the order of ranks; this package warns of nothing.

    Programs that use only PyTorch get no warning at all.
    """
    (folder / "program.py").write_text(code)
    command = [PYTHON, "-m", *launcher, *(flags or ("--nproc-per-node=foo",)), "program.py"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_")}
    kept.update(GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", **environment)
    done = subprocess.run(
        command, cwd=folder, env=kept, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    others = re.search(r"\b(accelerate|lightning|transformers|staging)\b", code)
    assert ("torch_foo" if others else "Warning") not in done.stderr, done.stderr
    return sorted(re.findall(r"^result (.*)$", done.stdout, re.M))


@functools.cache
def has(name: str) -> bool:
    """Whether PyTorch has something in this release."""
    module, _, attribute = name.rpartition(".")
    ask = f"import torch.distributed; print(hasattr({module}, {attribute!r}))"
    variables = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    return subprocess.check_output([PYTHON, "-c", ask], text=True, env=variables) == "True\n"


def need(name: str) -> None:
    if not has(name):
        pytest.skip(f"PyTorch has no {name} in this release")


@pytest.mark.parametrize(
    ("begin", "parts"),
    [
        ("torch.foo.set_device(rank); dist.init_process_group()", "cpu+foo"),
        ("dist.init_process_group()", "cpu"),
        ("dist.init_process_group('fooccl')", "foo"),
        ("dist.init_process_group('cpu:gloo,foo:fooccl')", "cpu+foo"),
        ("dist.init_process_group(device_id=torch.device('foo', rank))", "foo"),
        ("dist.init_process_group(dist.get_default_backend_for_device('foo'))", "foo"),
        (MESH, "cpu+foo"),
    ],
)
def test_ways_to_start(begin: str, parts: str, tmp_path: Path) -> None:
    # Made before the device is in use, it gets its part for the device with the first collective.
    parts = "cpu+foo" if parts == "cpu" else parts
    if "get_default_backend_for_device" in begin:
        need("torch.distributed.get_default_backend_for_device")
    if "device_id" in begin and not has("torch.distributed.get_default_backend_for_device"):
        parts = "cpu+foo"  # PyTorch 2.5
    expected = [f"{rank} [3.0, 3.0, 3.0] {parts} [0, 1]" for rank in range(2)]
    assert launch(START + begin + END, tmp_path) == expected


COALESCED = """
ends = torch.zeros(2, device=value.device)
ends[rank] = rank + 1
with dist._coalescing_manager(device=value.device):
    dist.all_reduce(out)
    dist.all_reduce(ends)
out = ends
"""
BROADCAST = "functional.broadcast(value, 0, dist.group.WORLD) * both.to(value.device)"
COMPILED = """
for of_dist in ("Dynamo does not know how to trace the", "Graph break due to unsupported"):
    warnings.filterwarnings("ignore", f"{of_dist} builtin")

@torch.compile(backend="aot_eager")
def average(value):
    value = value * 1
    dist.all_reduce(value)  # a part of the graph
    return value * both.to(value.device) / 3

@torch.compile(backend="aot_eager")
def broadcast(value):
    value = value * 1
    dist.broadcast(value, 0)  # breaks it
    return value * both.to(value.device)
"""
#: What may be the first that a process does with the device in a group made before.
FIRST = {
    "all_to_all_single": "dist.all_to_all_single(out, value)",
    "in inference mode": "with torch.inference_mode(): dist.all_to_all_single(out, value.clone())",
    "functional": "out = " + BROADCAST,
    "functional, in inference mode": "with torch.inference_mode(): out = " + BROADCAST,
    "functional, counted": "with CommDebugMode(): out = " + BROADCAST,
    "functional, its operations counted": "with FlopCounterMode(display=False): out = " + BROADCAST,
    "compiled": COMPILED + "out = average(value)",
    "compiled, in inference mode": COMPILED + "with torch.inference_mode(): out = average(value)",
    "between two graphs": COMPILED + "out = broadcast(value)",
    "of the group": "with torch.inference_mode():\n"
    "  dist.group.WORLD.broadcast(value, 0).wait(); out = value * both.to(value.device)",
    "of C++": "dist._broadcast_coalesced(dist.group.WORLD, [out], 1 << 20, 0); out.copy_(both)",
    "barrier": "dist.barrier(device_ids=[rank]); out.copy_(both)",
    "barrier, in inference mode": "with torch.inference_mode(): dist.barrier(device_ids=[rank])\n"
    "out.copy_(both)",
    "coalesced": COALESCED,
}
FUNCTIONAL = """
import torch.distributed._functional_collectives as functional
from torch.distributed.tensor.debug import CommDebugMode
from torch.utils.flop_counter import FlopCounterMode
dist.init_process_group()
both = torch.tensor([1.0, 2.0])
value = torch.full((2,), float(rank + 1), device=f"foo:{rank}")
out = torch.zeros(2, device=value.device)
"""


@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_first_use_of_the_device(first: str, tmp_path: Path) -> None:
    code = START + FUNCTIONAL + first + "\nresult(out.tolist())\ndist.destroy_process_group()"
    assert launch(code, tmp_path) == [f"{rank} [1.0, 2.0]" for rank in range(2)]


#: All ranks are there when the group with the short time-out begins, and until the first is told.
ABSENT = """
import datetime
dist.init_process_group()
group = dist.new_group(timeout=datetime.timedelta(seconds=3))
store = dist.distributed_c10d._get_default_store()
if rank == 0:
    for _ in range(2):
        try:
            dist.all_reduce(torch.ones(2, device="foo:0"), group=group)
        except dist.DistBackendError as error:
            result("device_id" in str(error), "first operation" in str(error))
    store.set("told", "")
else:
    store.wait(["told"])
os._exit(0)
"""


def test_first_use_that_not_all_take_part_in(tmp_path: Path) -> None:
    assert launch(START + ABSENT, tmp_path) == ["0 True True"] * 2


THREADS = """
import threading, time
dist.init_process_group()
groups = [dist.new_group() for _ in range(2)]

def use(turn):
    # Each rank begins with another group; the other thread begins when this one waits.
    number = (turn + rank) % 2
    time.sleep(turn)
    value = torch.ones(2, device=f"foo:{rank}")
    dist.all_reduce(value, group=groups[number])
    sums[number] = value.tolist()

sums = {}
threads = [threading.Thread(target=use, args=[turn], daemon=True) for turn in range(2)]
for one in threads: one.start()
for one in threads: one.join(60)
for number in sorted(sums): result(number, sums[number])  # Gloo prints while groups connect
os._exit(0)
"""


def test_two_threads_use_two_groups_for_the_first_time(tmp_path: Path) -> None:
    need("torch.distributed.Store.clone")
    expected = [f"{rank} {group} [2.0, 2.0]" for rank in range(2) for group in range(2)]
    assert launch(START + THREADS, tmp_path) == expected


@pytest.mark.parametrize("count", ["foo", "auto", "2"])
def test_processes_of_torchrun(count: str, tmp_path: Path) -> None:
    code = START + "result(os.environ['WORLD_SIZE'])"
    assert launch(code, tmp_path, f"--nproc-per-node={count}") == ["0 2", "1 2"]


def test_in_detail(tmp_path: Path) -> None:
    code = START + "dist.init_process_group('cpu:gloo,foo:fooccl')" + END
    found = launch(code, tmp_path, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert found == [f"{rank} [3.0, 3.0, 3.0] cpu+foo [0, 1]" for rank in range(2)]


RECORDS = """
import pickle
dist.init_process_group()
tensor = torch.ones(4, device=f"foo:{rank}")
dist.all_reduce(tensor)
dist.broadcast(tensor, 0)
found = pickle.loads(torch._C._distributed_c10d._dump_fr_trace())["entries"]
result(sorted({(one["profiling_name"], *one["process_group"]) for one in found}))
dist.destroy_process_group()
"""


def test_records_of_the_flight_recorder(tmp_path: Path) -> None:
    need("torch._C._distributed_c10d._dump_fr_trace")
    names = [(f"gloo:{name}", "0:fooccl", "default_pg") for name in ("all_reduce", "broadcast")]
    found = launch(START + RECORDS, tmp_path, TORCH_FR_BUFFER_SIZE="100")
    assert found == [f"{rank} {names}" for rank in range(2)]


def test_group_that_nobody_destroys(tmp_path: Path) -> None:
    code = START + "dist.init_process_group('cpu:gloo,foo:fooccl')" + END
    code = code.replace("dist.destroy_process_group()", "")
    assert len(launch(code, tmp_path)) == 2


def test_compression_of_gradients(tmp_path: Path) -> None:
    code = (
        START
        + """
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
torch.foo.set_device(rank)
dist.init_process_group()
for hook in (default_hooks.bf16_compress_hook, default_hooks.fp16_compress_hook):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2).to("foo"))
    model.register_comm_hook(None, hook)
    model(torch.ones(2, 4, device="foo")).sum().backward()
result(model.module.weight.grad.tolist()[0])
dist.destroy_process_group()
"""
    )
    assert launch(code, tmp_path) == [f"{rank} [2.0, 2.0, 2.0, 2.0]" for rank in range(2)]


def test_checkpoints_in_the_background(tmp_path: Path) -> None:
    """By default, PyTorch stages tensors in shared memory that CUDA pins."""
    pytest.importorskip("torch.distributed.checkpoint.staging", reason="no stagers in this release")
    code = (
        START
        + """
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import staging
torch.foo.set_device(rank)
dist.init_process_group()
state = {"weight": torch.arange(4.0, device="foo")}
options = {}
if hasattr(staging, "DefaultStager"):
    options["async_stager"] = staging.DefaultStager()
made = dcp.async_save(state, checkpoint_id="saved", **options)
getattr(made, "upload_completion", made).result()
loaded = {"weight": torch.zeros(4, device="foo")}
dcp.load(loaded, checkpoint_id="saved")
result(loaded["weight"].tolist())
dist.destroy_process_group()
"""
    )
    assert launch(code, tmp_path) == [f"{rank} [0.0, 1.0, 2.0, 3.0]" for rank in range(2)]


def test_lightning(tmp_path: Path) -> None:
    pytest.importorskip("lightning.pytorch")
    for arguments in (
        'accelerator="foo", devices=2, strategy="ddp"',
        'accelerator="auto", devices=2',
        'accelerator="foo", devices="auto"',
    ):
        assert launch(LIGHTNING.replace("ARGUMENTS", arguments), tmp_path) == [
            "0 foo:0 2 fooccl", "1 foo:1 2 fooccl",
        ], arguments  # fmt: skip


LIGHTNING = (
    START
    + """
import logging
import lightning as L
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.simplefilter("ignore")

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        return self.layer(batch).square().mean()

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=2)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

flags = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer = L.Trainer(ARGUMENTS, max_epochs=1, enable_model_summary=False, **flags)
trainer.fit(Model())
result(trainer.strategy.root_device, trainer.world_size, dist.get_backend())
"""
)

ACCELERATE = (
    START
    + """
import accelerate
accelerator = accelerate.Accelerator()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=2)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
for batch in data:
    accelerator.backward(model(batch).square().mean())
    optimizer.step()
    optimizer.zero_grad()
seen = accelerator.gather(torch.tensor([rank], device=accelerator.device))
result(accelerator.device, accelerator.num_processes, seen.tolist())
accelerator.wait_for_everyone()
accelerator.end_training()
"""
)


def test_accelerate_launch(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    launcher = ("accelerate.commands.accelerate_cli", "launch")
    flags = ("--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no")
    found = launch(ACCELERATE, tmp_path, *flags, launcher=launcher, HF_HOME=str(tmp_path))
    assert found == ["0 foo:0 2 [0, 1]", "1 foo:1 2 [0, 1]"]


def test_accelerate_with_torchrun(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    assert launch(ACCELERATE, tmp_path) == ["0 foo:0 2 [0, 1]", "1 foo:1 2 [0, 1]"]


def test_trainer_of_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    code = (
        START
        + """
warnings.simplefilter("ignore")
import transformers
transformers.logging.set_verbosity_error()

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x):
        return {"loss": self.layer(x).square().mean()}

rows = [{"x": torch.randn(4)} for _ in range(16)]
arguments = transformers.TrainingArguments(
    "trained", num_train_epochs=1, per_device_train_batch_size=2, report_to=[],
    save_strategy="no", disable_tqdm=True, logging_strategy="no",
)
trainer = transformers.Trainer(Model(), arguments, train_dataset=rows)
trainer.train()
result(arguments.device, arguments.world_size, trainer.state.global_step)
dist.destroy_process_group()
"""
    )
    assert launch(code, tmp_path) == ["0 foo:0 2 4", "1 foo:1 2 4"]
