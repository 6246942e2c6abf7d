# SPDX-License-Identifier: Apache-2.0
"""Trains a small network for long on random streams; `./dev bench endurance [--steps N]`.

Every so many steps its parameters are compared with those of the same training on the CPU, which
have to be equal to the bit, and the memory of the device and of the process with what they were
after the first of these.
"""

import argparse
import random
import sys
import time

import torch
from torch import nn

ROUNDS = 20


def rss() -> int:
    """The memory of this process in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))


def make(place: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(place)
    return network, torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)


def step(network: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> torch.Tensor:
    loss = (network(batch) - batch.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def train(name: str, steps: int) -> bool:
    """Prints a line a round; False when something grew or came out otherwise than on the CPU."""
    module = getattr(torch, name)
    random.seed(0)
    here, there = make("cpu"), make(name)
    data = torch.randn(64, 16, 4)
    streams = [module.default_stream(), *(module.Stream() for _ in range(4))]
    before, good, flat = streams[0], True, None
    print("    steps  seconds  allocated  reserved  process  equal to the CPU")
    started = time.monotonic()
    for number in range(1, steps + 1):
        batch = data[number % len(data)]
        step(*here, batch)
        stream = random.choice(streams)
        stream.wait_stream(before)
        with module.stream(stream):
            inputs = batch.to(name, non_blocking=random.random() < 0.5)
            loss = step(*there, inputs)
            if random.random() < 0.01:
                loss.record_stream(random.choice(streams))
            if random.random() < 0.001:
                loss.item()
        before = stream
        if number % max(1, steps // ROUNDS) == 0:
            module.synchronize()
            equal = all(
                torch.equal(ours.cpu(), theirs)
                for ours, theirs in zip(there[0].parameters(), here[0].parameters())
            )
            del loss, inputs
            there[1].zero_grad()
            memory = module.memory_allocated(), module.memory_reserved(), rss()
            flat = flat or memory
            sizes = "  ".join(f"{size >> 10:>7}K" for size in memory)
            print(f"{number:>9}  {time.monotonic() - started:7.0f}  {sizes}  {equal}", flush=True)
            grown = memory[2] - flat[2]
            good &= equal and memory[:2] == flat[:2]
            good &= grown < 16 << 20
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="foo")
    parser.add_argument("--steps", type=int, default=200_000)
    options = parser.parse_args()
    if not train(options.device, options.steps):
        sys.exit("error: memory grew, or the parameters are not those of the CPU")


if __name__ == "__main__":
    main()
