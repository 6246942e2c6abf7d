# SPDX-License-Identifier: Apache-2.0
"""Whole programs that use only the CPU: what they write, and how they end."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

TRAINS = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(step, round(loss.item(), 5))
"""

ENVIRONMENT = """
from torch.utils.collect_env import get_env_info
found = get_env_info()._asdict()
for name in ("torch_version", "is_debug_build", "cuda_runtime_version", "is_xnnpack_available",
             "is_cuda_available", "nvidia_gpu_models", "hip_compiled_version", "os"):
    print(name, found[name])
"""

SUITE = """
import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase, run_tests

class TestSmall(TestCase):
    def test_sum(self, device):
        self.assertEqual(torch.ones(2, device=device).sum(), 2)

instantiate_device_type_tests(TestSmall, globals(), only_for=("cpu",))
if __name__ == "__main__":
    run_tests()
"""

THREADS = """
import threading, torch
def work():
    for _ in range(3):
        torch.nn.Linear(4, 4)(torch.ones(2, 4)).sum()
threads = [threading.Thread(target=work) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
print(threading.active_count())
"""


@dataclass
class Program:
    """What to run with Python, and the exit status."""

    arguments: list[str]
    status: int = 0
    environment: dict[str, str] = field(default_factory=dict)

    def plain(self, text: str) -> str:
        """The text without what differs from run to run: times, ports and process ids."""
        text = re.sub(r"in \d+\.\d+s", "in 0s", text)
        # A PyTorch with CUDA may say that it finds no GPU.
        text = re.sub(
            r"(?m)^[A-Z]+:[\d-]+ [\d:]+ [\d:]+ (init|DeviceProperties)\.cpp.*\n", "", text
        )
        text = re.sub(r"USDT:[\d-]+ [\d:]+ [\d:]+", "USDT", text)
        text = re.sub(r"[WIE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+", "W", text)
        return re.sub(r"\[[WIE]\d+ [\d:.]+ ", "[W ", text)


def code(text: str, *flags: str, status: int = 0, **environment: str) -> Program:
    return Program([*flags, "-c", text], status, environment)


PROGRAMS = {
    "imports": code("import torch; print(torch.ones(2) + 1)"),
    "warnings are errors": code("import torch; print(torch.rand(1).shape)", "-W", "error"),
    "trains": code(TRAINS),
    "developer mode": code("import torch; torch.manual_seed(1)", "-X", "dev", "-W", "ignore"),
    "isolated from the user": code("import torch; print(torch.__name__)", "-s"),
    "optimized": code("import torch; print(torch.zeros(1))", "-OO"),
    "an exception": code("import torch; torch.ones(2) @ torch.ones(3)", status=1),
    "a status": code("import torch, sys; sys.exit(torch.tensor(3).item())", status=3),
    "an interrupt": code(
        "import os, signal, torch\n"
        "try: os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt: print('interrupted')"
    ),
    "a signal": code("import os, torch; os.kill(os.getpid(), 15)", status=-15),
    "threads": code(THREADS),
    "at exit": code("import atexit, torch; atexit.register(lambda: print(torch.ones(1).sum()))"),
    "without a device by name": code("import torch; torch.ones(1, device='cuda')", status=1),
    "logs of the library": code(
        "import os, torch, torch.distributed as d; s = d.HashStore()\n"
        "d.init_process_group(store=s, rank=0, world_size=1); d.barrier(); os._exit(0)",
        TORCH_CPP_LOG_LEVEL="INFO",
        TORCH_DISTRIBUTED_DEBUG="DETAIL",
    ),
    "collects the environment": code(ENVIRONMENT),
    "PyTorch's own tests": code(SUITE),
    "a profile in a file": code(
        "import torch\n"
        "with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=1))"
        " as p:\n"
        "    for _ in range(4): torch.ones(2).sum(); p.step()\n"
        "print(sorted(e.key for e in p.key_averages() if 'Step' not in e.key))"
    ),
    "processes of torchrun": Program(
        "-m torch.distributed.run --nproc-per-node=2 --master-addr=localhost --master-port=0 "
        "--rdzv-backend=c10d --rdzv-endpoint=localhost:0".split()
        + [str(Path(__file__).with_name("torchrun_program.py"))]
    ),
}
