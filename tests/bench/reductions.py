# SPDX-License-Identifier: Apache-2.0
"""Collectives on the device beside those of Gloo on the CPU, and how training hides them.

Those of the driver are the simulator's, over shared memory. Each rank writes its bytes there and
reads the result, so they are also beside two copies of as many bytes.

Ranks are processes of this machine. All that is compared is measured in turns, in one process. Gloo
keeps the processors busy that also do the simulator's copies, so that nothing hides these. Over a
link of limited rate, the processors wait for the link, as those of two machines do.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
RANKS = 2
#: Bytes of a tensor, and how many times it is reduced.
SIZES = ((4, 400), (64 << 10, 200), (1 << 20, 80), (64 << 20, 15))
#: The same over a link that limits them, of so many Gbit/s for both directions together.
LINK_SIZES = ((1 << 20, 60), (16 << 20, 25), (64 << 20, 15))
LINK_GBIT = 4
#: Runs a command in a network of its own. A packet there has at most 64 KB.
LINK = ["unshare", "--net", "sh", "-c"]
LINK += [
    "ip link set lo up && tc qdisc add dev lo root tbf "
    f'rate {LINK_GBIT}gbit burst 256kb latency 50ms && exec "$0" "$@"'
]
STEPS = 15
#: Of the model that is trained, and the milliseconds that its kernels take.
LAYERS, WEIGHTS, BUSY_MS = 8, 1 << 20, 5
UNITS = ((1 << 20, "MB"), (1 << 10, "KB"), (1, "B"))


def text_of(size: int) -> str:
    unit, name = next(one for one in UNITS if size >= one[0])
    return f"{size // unit} {name}"


# --- what a rank does -------------------------------------------------------------------------


def in_turns(calls: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Median seconds of each call, which all ranks begin together; the first round is left out."""
    import torch.distributed as dist

    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            dist.monitored_barrier()
            started = time.perf_counter()
            call()
            if number:
                times[name].append(time.perf_counter() - started)
    return {name: statistics.median(all_) for name, all_ in times.items()}


def reductions(
    device: str, sizes: Sequence[tuple[int, int]] = SIZES
) -> dict[str, dict[str, float]]:
    import torch
    import torch.distributed as dist

    found = {}
    for size, rounds in sizes:
        host = torch.zeros(size // 4)
        there = host.to(device)

        def on_device(tensor: torch.Tensor = there) -> None:
            dist.all_reduce(tensor)
            torch.accelerator.synchronize()

        other = torch.zeros(size // 4)

        def copies(tensor: torch.Tensor = host, other: torch.Tensor = other) -> None:
            other.copy_(tensor)
            tensor.copy_(other)

        calls = {
            "Gloo": lambda tensor=host: dist.all_reduce(tensor),
            "device": on_device,
            "copies": copies,
        }
        found[text_of(size)] = in_turns(calls, rounds)
    return found


def training(device: str) -> dict[str, float]:
    """Steps of DistributedDataParallel with and without its reductions, and these by themselves."""
    import torch
    import torch.distributed as dist
    from torch import nn

    def summed(bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0])

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(WEIGHTS, device=device))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    layers = nn.Sequential(*(Scale() for _ in range(LAYERS)))
    model = nn.parallel.DistributedDataParallel(layers, bucket_cap_mb=4 * WEIGHTS >> 20)
    # Not the average, whose division would be one more kernel.
    model.register_comm_hook(None, lambda _, bucket: summed(bucket))
    batch = torch.zeros(WEIGHTS, device=device)
    ones = torch.ones(WEIGHTS, device=device)
    gradients = [torch.zeros(WEIGHTS, device=device) for _ in range(LAYERS)]

    def step() -> None:
        model(batch).backward(ones)
        model.zero_grad()
        torch.accelerator.synchronize()

    def step_of_one_rank() -> None:
        with model.no_sync():
            step()

    def reduce() -> None:
        for one in gradients:
            dist.all_reduce(one)
        torch.accelerator.synchronize()

    return in_turns({"with": step, "without": step_of_one_rank, "alone": reduce}, STEPS)


MEASURED: dict[str, Callable[[str], Any]] = {
    "reductions": reductions,
    "link": lambda device: reductions(device, LINK_SIZES),
    "training": training,
}


def rank_of(device: str, measured: str, output: str) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    module = getattr(torch, device)
    module.set_device(int(os.environ["LOCAL_RANK"]) % module.device_count())
    dist.init_process_group()
    found = MEASURED[measured](device)
    if dist.get_rank() == 0:
        Path(output).write_text(json.dumps(found))
    dist.destroy_process_group()


# --- what starts them -------------------------------------------------------------------------


def torchrun(
    script: Path,
    work: Path,
    *arguments: str,
    ranks: int = RANKS,
    python: str | None = None,
    by: Sequence[str] = (),
    **environment: str,
) -> Any:
    """Runs a script as ranks, by a command that takes one; what the first writes to `--output`."""
    output = work / "found.json"
    command = [*by, python or os.environ["BACKENDKIT_TEST_PYTHON"], "-m", "torch.distributed.run"]
    command += ["--standalone", f"--nproc-per-node={ranks}", str(script), *arguments]
    done = subprocess.run(
        [*command, "--output", str(output)],
        cwd=work,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return json.loads(output.read_text())


def built(work: Path, *changes: tuple[str, str, str]) -> Path:
    """Where the backend of a new project with collectives is, built with other texts in files."""
    sys.path.append(str(HERE.parents[1] / "runtime" / "faults"))
    from project import add_collectives, replace_once

    work.mkdir()
    tools = Path(os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"])
    project, wheels, site = work / "foo", work / "wheels", work / "site"
    subprocess.run(
        [os.environ["BACKENDGEN"], "-C", work, "new", "foo"], check=True, stdout=subprocess.DEVNULL
    )
    add_collectives(project)
    for name, before, after in changes:
        replace_once(project / name, before, after)
    pip = [tools, "-m", "pip", "-q"]
    wheel = ["wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", wheels, project]
    subprocess.run([*pip, *wheel], check=True, cwd=work)
    install = ["install", "--no-index", "--no-deps", "--target", site, *wheels.glob("*.whl")]
    subprocess.run([*pip, *install], check=True, cwd=work)
    return site


#: A device whose memory the host can access.
UNIFIED = (("csrc/simulator.h", "kUnified = false", "kUnified = true"),)
#: A device with a kernel for products that takes time of the device, and no processor.
BUSY = (
    ("backend.toml", "[operators.kernels]\n", '[operators.kernels]\n"mul.out" = "foo::mul"\n'),
    (
        "csrc/kernels.cpp",
        '#include "runtime.h"\n',
        f"""#include "runtime.h"

#include <chrono>
#include <thread>

void foo::mul(const at::Tensor&, const at::Tensor&, const at::Tensor&) {{
  launch([] {{ std::this_thread::sleep_for(std::chrono::milliseconds({BUSY_MS})); }});
}}
""",
    ),
)


def over_link(
    work: Path, table: Callable[[str, Sequence], None], kinds: dict[str, dict[str, str]]
) -> None:
    """all_reduce by the host beside Gloo's on CPU tensors, where the network limits both."""
    if subprocess.run([*LINK, "true"], capture_output=True, check=False).returncode:
        print("\nall_reduce over a link of limited rate needs root and the package iproute2")
        return
    rows = []
    for kind, options in kinds.items():
        found = torchrun(HERE, work, "link", by=LINK, **options)
        for size, times in found.items():
            theirs, ours = times["Gloo"] * 1000, times["device"] * 1000
            remark = f"Gloo on the CPU {theirs:.1f} ms, {ours / theirs:.2f} x"
            rows.append((f"{size}, {kind}", f"{ours:.1f} ms", remark))
    rounds = ", ".join(str(count) for _, count in LINK_SIZES)
    table(f"The same over a link of {LINK_GBIT} Gbit/s, medians of {rounds}", rows)


def bench_distributed(work: Path, table: Callable[[str, Sequence], None]) -> None:
    """all_reduce by the host and by the driver, beside Gloo's on CPU tensors."""
    by_host = {"FOO_SIMULATOR_COLLECTIVES": "0"}
    base = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    unified = {"PYTHONPATH": str(built(work / "unified", *UNIFIED)), **by_host}
    by_driver = {"PYTHONPATH": str(built(work / "driver"))}
    kinds = {
        "staged": torchrun(HERE, work, "reductions", **by_host),
        "host_accessible": torchrun(HERE, work, "reductions", python=base, **unified),
        "driver": torchrun(HERE, work, "reductions", python=base, **by_driver),
    }
    rows = []
    for kind, found in kinds.items():
        for size, times in found.items():
            what, other = ("Gloo on the CPU", "Gloo") if kind != "driver" else ("copies", "copies")
            theirs, ours = times[other] * 1000, times["device"] * 1000
            remark = f"{what} {theirs:.3f} ms, {ours / theirs:.2f} x"
            rows.append((f"{size}, {kind}", f"{ours:.3f} ms", remark))
    rounds = ", ".join(str(count) for _, count in SIZES)
    table(f"all_reduce between {RANKS} processes, medians of {rounds}, in turns", rows)
    over_link(work, table, {"staged": by_host, "host_accessible": {"python": base, **unified}})
    busy = {"PYTHONPATH": str(built(work / "busy", *BUSY))}
    for kind, chosen in (("staged", by_host), ("driver", {})):
        found = torchrun(HERE, work, "training", python=base, **busy, **chosen)
        times = {name: value * 1000 for name, value in found.items()}
        table(
            f"A step of DistributedDataParallel, {LAYERS} layers of {4 * WEIGHTS >> 20} MB whose "
            f"kernels take {BUSY_MS} ms, {kind}",
            [
                ("with reductions", f"{times['with']:.1f} ms", f"median of {STEPS}"),
                ("without (no_sync)", f"{times['without']:.1f} ms", ""),
                ("these reductions by themselves", f"{times['alone']:.1f} ms", ""),
                ("what they add to a step", f"{times['with'] - times['without']:.1f} ms", ""),
            ],
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", choices=MEASURED)
    parser.add_argument("--device", default="foo")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    rank_of(options.device, options.measured, options.output)
