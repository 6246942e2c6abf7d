# SPDX-License-Identifier: Apache-2.0
"""Threads that train a network each, for some seconds; `threads.py` runs it.

Prints the steps of each thread. After a round of steps a network begins anew, and the losses of
each round have to be those of the CPU.
"""

import argparse
import importlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext

import torch
from torch import nn

ROUND = 20
WIDTH = 64


def losses(seed: int, place: str, gradients: bool) -> Iterator[float]:
    """Those of a training on a device, step by step, for ever."""
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 4)
    )
    start = [torch.randn(one.shape, generator=generator) / 8 for one in network.parameters()]
    start = [one.to(place) for one in start]
    batch = torch.randn(16, WIDTH, generator=generator).to(place)
    network.to(place)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    while True:
        with torch.no_grad():
            for parameter, value in zip(network.parameters(), start):
                parameter.copy_(value)
        for _ in range(ROUND):
            with torch.set_grad_enabled(gradients):
                loss = network(batch).square().mean()
            if gradients:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            yield loss.item()


class Trainer(threading.Thread):
    """A thread with a network of its own, and a stream where the backend has streams."""

    def __init__(self, number: int, place: str, gradients: bool, start: threading.Barrier) -> None:
        super().__init__()
        self.steps = self.wrong = 0
        self.ends = self.failed = False
        self._place = place
        self._start = start
        self._arguments = number, place, gradients
        reference = losses(number, "cpu", gradients)
        self._expected = [next(reference) for _ in range(ROUND)]

    def run(self) -> None:
        try:
            self._train()
        except BaseException:
            self.failed = True
            self._start.abort()
            raise

    def _train(self) -> None:
        module = getattr(torch, self._place)
        streams = self._place != "cpu" and module.capabilities().has("streams")
        with module.stream(module.Stream()) if streams else nullcontext():
            mine = losses(*self._arguments)
            next(mine)
            self.steps = 1
            self._start.wait()
            while not self.ends:
                expected = self._expected[self.steps % ROUND]
                self.wrong += abs(next(mine) - expected) > 1e-4 * abs(expected)
                self.steps += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="foo")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--no-gradients", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not hasattr(torch, options.device):  # a package that is not installed, but on the path
        importlib.import_module(f"torch_{options.device}")
    start = threading.Barrier(options.threads + 1)
    trainers = [
        Trainer(number, options.device, not options.no_gradients, start)
        for number in range(options.threads)
    ]
    for trainer in trainers:
        trainer.start()
    start.wait()
    time.sleep(options.seconds)
    for trainer in trainers:
        trainer.ends = True
    for trainer in trainers:
        trainer.join()
    if any(trainer.failed for trainer in trainers):
        sys.exit("error: a thread failed")
    wrong = sum(trainer.wrong for trainer in trainers)
    if wrong:
        sys.exit(f"error: {wrong} losses are not those of the CPU")
    print(*(trainer.steps for trainer in trainers))


if __name__ == "__main__":
    main()
