# SPDX-License-Identifier: Apache-2.0
"""Trainings that go on from a checkpoint: with other ranks, and after one of them was killed."""

import contextlib
import os
import signal
import subprocess
import sys

import job_programs as programs
import pytest
import torch
from fresh_process import printed

pytestmark = [
    pytest.mark.needs("distributed"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()"),
]

#: Ranks of one job after another: each of 1, 2 and 4 comes after both others.
SIZES = (1, 2, 4, 1, 4, 2, 1)


@pytest.mark.needs("streams", "events")
def test_other_ranks_go_on_from_a_checkpoint(ends, tmp_path):
    for number, size in enumerate(SIZES):
        ends(programs.job, str(tmp_path), number, size=size, limit=120)


def _is_there(process):
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def _torchrun(arguments, limit):
    """Runs torchrun; its status, what it writes, and the number of its group of processes."""
    command = [sys.executable, "-m", "torch.distributed.run", *arguments]
    environment = {
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # see docs/distributed.md
    }
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=limit)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)  # torchrun ends its ranks
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(40)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, text, process.pid


@pytest.mark.needs("streams", "events")
def test_torchrun_starts_ranks_again_when_one_is_killed(name, world_size, tmp_path):
    status, text, group = _torchrun(
        [
            f"--nproc-per-node={world_size}",
            "--max-restarts=2",
            "--monitor-interval=0.2",
            "--rdzv-backend=c10d",
            "--rdzv-endpoint=localhost:0",
            programs.__file__,
            name,
            str(tmp_path),
        ],
        limit=200,
    )
    assert status == 0, text
    attempts = {}
    for file in tmp_path.glob("attempt-*"):
        attempt, rank = map(int, file.name.split("-")[1:])
        process, first = map(int, file.read_text().split())
        assert not _is_there(process), f"rank {rank} of attempt {attempt} is still there"
        attempts.setdefault(attempt, []).append(first)
    saved = programs.KILLED // programs.EVERY * programs.EVERY
    assert attempts == {0: [0] * world_size, 1: [saved] * world_size}, text
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)
    whole = torch.load(tmp_path / "whole.pt", weights_only=True)
    programs.close(whole, programs.uninterrupted(programs.ALL))


ENTRY = """
import os, sys
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
import torch.distributed as dist
device, group, store = sys.argv[1:]
print(hasattr(torch, device), group in dist.Backend.backend_list)
if not hasattr(dist.distributed_c10d, "_ensure_backend_registered"):  # as from PyTorch 2.14 on
    from importlib.metadata import entry_points
    found = entry_points(group="torch.distributed.backends")
    next(one for one in found if one.name == group).load()()
dist.init_process_group(group, store=dist.FileStore(store, 1), rank=0, world_size=1)
tensor = torch.full((2,), 3.0, device=device)
dist.all_reduce(tensor)
print(dist.get_backend(), tensor.tolist(), tensor.device.type)
dist.destroy_process_group()
"""


def test_a_group_is_found_by_its_name(name, module, tmp_path):
    group = torch.distributed.Backend.default_device_backend_map[name]
    if getattr(getattr(module, "_build", None), "DISTRIBUTED", None) != group:
        pytest.skip(f"{group} is not the process group that BackendKit's package has")
    lines = printed(ENTRY, name, group, str(tmp_path / "store"))
    assert lines == ["False False", f"{group} [3.0, 3.0] {name}"]
