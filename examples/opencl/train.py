"""Trains two networks on a device of OpenCL and on the CPU, on scikit-learn's digits.

    pip install scikit-learn
    python train.py [--epochs 8] [NAME ...]

Both begin with the same weights and see the same batches, so that they should learn the same. The
table has the accuracy on images that were held out, the largest difference of a loss, the seconds
of an epoch, and the operators of the training that fell back to the CPU. The first epoch, in which
kernels are compiled, is not in the seconds.

The last network has dropout. The device draws its random numbers from another generator than the
CPU, so the two only have to learn.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from typing import NamedTuple

import torch
from compare import DEVICE, fallbacks, reset_fallbacks
from torch import nn

HELD_OUT = 397  # of 1797 images
BATCH = 50
#: Percent points by which the device may be worse than the CPU, and what dropout has to reach.
WORSE, REACHED = 0.5, 90.0


class Digits(NamedTuple):
    images: torch.Tensor  # of 8 x 8 pixels
    labels: torch.Tensor

    def to(self, device: str) -> Digits:
        return Digits(*(one.to(device) for one in self))


class Trained(NamedTuple):
    accuracy: float  # in percent
    losses: torch.Tensor
    seconds: float  # of an epoch


def digits() -> tuple[Digits, Digits]:
    """Images to train with, and images that are held out."""
    from sklearn.datasets import load_digits

    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(data.images, dtype=torch.float32)[order].unsqueeze(1) / 16
    labels = torch.tensor(data.target)[order]
    parts = zip(*(one.split([len(order) - HELD_OUT, HELD_OUT]) for one in (images, labels)))
    train, held_out = (Digits(*part) for part in parts)
    return train, held_out


def mlp() -> nn.Module:
    hidden = [nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU()]
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(128, 10))


def cnn(dropout: float = 0.0) -> nn.Module:
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AvgPool2d(2)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Dropout(dropout), nn.Linear(128, 10))


NETWORKS = {"mlp": mlp, "cnn": cnn, "dropout": lambda: cnn(dropout=0.3)}


def accuracy(network: nn.Module, data: Digits) -> float:
    network.eval()
    with torch.no_grad():
        right = network(data.images).argmax(dim=1) == data.labels
    return 100 * right.float().mean().item()


def epoch(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: Digits,
    batches: tuple[torch.Tensor, ...],
) -> torch.Tensor:
    """The loss of each batch. Nothing here waits for the device."""
    losses = []
    for batch in batches:
        output = network(data.images[batch])
        loss = nn.functional.cross_entropy(output, data.labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def trained(network: nn.Module, epochs: int, train: Digits, held_out: Digits) -> Trained:
    """The network after its training, where the data is."""
    device = train.images.device
    network.to(device).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3)
    shuffle = torch.Generator().manual_seed(1)
    losses, start = [], 0.0
    for number in range(epochs):
        if number == 1:
            start = time.perf_counter()
        order = torch.randperm(len(train.labels), generator=shuffle).to(device)
        losses.append(epoch(network, optimizer, train, order.split(BATCH)).cpu())
    seconds = (time.perf_counter() - start) / (epochs - 1)
    return Trained(accuracy(network, held_out), torch.cat(losses), seconds)


def is_wrong(name: str, here: Trained, there: Trained) -> bool:
    if name == "dropout":
        return min(here.accuracy, there.accuracy) < REACHED
    return there.accuracy < here.accuracy - WORSE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(NETWORKS), metavar="NAME")
    parser.add_argument("--epochs", type=int, default=8, help="by default %(default)s")
    options = parser.parse_args()
    if options.epochs < 2:
        parser.error("--epochs is 2 or more: the first one is not timed")
    data = digits()
    there_data = [one.to(DEVICE) for one in data]
    print(f"{'network':<8} {'ocl':>7} {'cpu':>7} {'losses':>8} {'ocl':>8} {'cpu':>8}  fallbacks")
    wrong = []
    for name in options.names:
        torch.manual_seed(0)
        network = NETWORKS[name]()
        here = trained(copy.deepcopy(network), options.epochs, *data)
        reset_fallbacks()
        there = trained(network, options.epochs, *there_data)
        fell_back = fallbacks()
        apart = (there.losses - here.losses).abs().max().item()
        accuracies = f"{there.accuracy:5.1f} % {here.accuracy:5.1f} %"
        seconds = f"{there.seconds:6.2f} s {here.seconds:6.2f} s"
        print(f"{name:<8} {accuracies} {apart:8.1e} {seconds}  {fell_back}", flush=True)
        if fell_back != "none" or is_wrong(name, here, there):
            wrong.append(name)
    if wrong:
        print(
            f"error: worse than the CPU, or not on the device: {', '.join(wrong)}", file=sys.stderr
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
