# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/distributed.md, typed on two machines, both of which are this one."""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "distributed.md"
PYTHON = os.environ["BACKENDKIT_TEST_PYTHON"]
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.M | re.S)
(JOB,) = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.M | re.S)
#: Calls, and what each makes a group for.
CALLS = re.findall(r"^\| `(init_\w+\(.*?\))` \| (.*) \|$", TEXT, re.M)

TRAIN = """
import torch
import torch.distributed as dist

dist.init_process_group()
layer = torch.nn.Linear(2, 1, device="foo")
model = torch.nn.parallel.DistributedDataParallel(layer)
model(torch.ones(4, 2, device="foo") * dist.get_rank()).sum().backward()
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {layer.weight.grad.tolist()}\\n", end="")
dist.destroy_process_group()
"""

#: What the training operator 1.9 sets in the container of each of two machines, with and without an
#: `elasticPolicy`; the port and the number of the machine are what they stand for.
OPERATOR = {
    "elastic": {
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": "localhost:PORT",
        "PET_NNODES": "2:2",
        "PET_NPROC_PER_NODE": "auto",
    },
    "master": {
        **{"MASTER_ADDR": "localhost", "MASTER_PORT": "PORT", "WORLD_SIZE": "2", "RANK": "NUMBER"},
        "PET_MASTER_ADDR": "localhost",
        "PET_MASTER_PORT": "PORT",
        "PET_NODE_RANK": "NUMBER",
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "auto",
    },
}

#: Stand-ins: `torchrun` of the Python that has the backend, and what SLURM brings.
PROGRAMS = {
    "torchrun": f'exec {PYTHON} -m torch.distributed.run "$@"',
    "scontrol": 'test "$*" = "show hostnames node[0-1]" && echo localhost',
    "srun": """
test "$1" = --ntasks-per-node=1
shift
export SLURM_NNODES=2 SLURM_JOB_ID=7 SLURM_JOB_NODELIST='node[0-1]'
"$@" &
"$@"
wait $!
""",
}


def free_port() -> int:
    """A free port, and not of those that programs get by asking for any: it stays free for now."""
    for port in random.sample(range(20000, 30000), 100):
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("localhost", port))
            return port
    raise AssertionError("no port is free")


def train(script: str, folder: Path) -> None:
    """Runs a script that starts `train.py` on two machines with one device each."""
    for name, text in PROGRAMS.items():
        program = folder / name
        program.write_text(f"#!/bin/sh -e\n{text}\n")
        program.chmod(0o755)
    (folder / "train.py").write_text(TRAIN)
    environment = {
        **os.environ,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "FOO_SIMULATOR_DEVICES": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = sorted(line for line in done.stdout.splitlines() if line.startswith("rank"))
    assert said == [f"rank {rank} of 2: [[2.0, 2.0]]" for rank in range(2)]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda text: text.split()[0])
def test_commands(command: str, tmp_path: Path) -> None:
    assert command.count(":29500") == 1
    script = command.replace("node0:", "localhost:").replace(":29500", f":{free_port()}")
    if "srun" not in script:  # which types it on each machine
        script = f"machine() {{\n{script}}}\nmachine &\nmachine\nwait $!\n"
    train(script, tmp_path)


@pytest.mark.parametrize("kind", OPERATOR)
def test_kubernetes(kind: str, tmp_path: Path) -> None:
    """The container of the job, with what the operator sets."""
    workers = yaml.safe_load(JOB)["spec"]["pytorchReplicaSpecs"]["Worker"]
    (container,) = workers["template"]["spec"]["containers"]
    assert (workers["replicas"], container["name"]) == (2, "pytorch")
    chosen = OPERATOR[kind]
    named = [name for name in chosen if name.startswith("PET_") and "NPROC" not in name]
    assert [name for name in named if f"`{name}`" not in TEXT] == []
    values = " ".join(f"{name}={value}" for name, value in chosen.items())
    values = re.sub(r"\bPORT\b", str(free_port()), values)
    command = f"env {values} {' '.join(container['command'])}"
    first, second = (command.replace("=NUMBER", f"={number}") for number in range(2))
    train(f"{first} &\n{second}\nwait $!\n", tmp_path)


def alone(code: str, folder: Path) -> str:
    """What the only process of a group prints."""
    environment = {**os.environ, "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
    environment.update(RANK="0", WORLD_SIZE="1", GLOO_SOCKET_IFNAME="lo")
    done = subprocess.run(
        [PYTHON, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("call", "group"), CALLS)
def test_calls(call: str, group: str, tmp_path: Path) -> None:
    code = f"""
import torch
from torch.distributed import *
from torch.distributed.device_mesh import init_device_mesh
{call.replace("(2,)", "(1,)")}
all_reduce(torch.ones(1, device="foo"))
print(sorted(one.type for one in group.WORLD._device_types))
destroy_process_group()
"""
    kinds = [kind for kind, word in (("cpu", "CPU"), ("foo", "device")) if word in group]
    assert alone(code, tmp_path) == f"{kinds}\n"


def test_the_first_program(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", TEXT.split("## ")[0], re.M | re.S)
    assert alone(f"{code}print(tensor.tolist())\n", tmp_path) == "[1.0, 1.0, 1.0, 1.0]\n"
