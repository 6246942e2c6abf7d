# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on a device: train.py DEVICE, as in `train.py foo:0`."""

import sys

import torch
from torch import nn


def main(device: str) -> None:
    """Prints the loss of a few steps; exits with 1 when it does not fall."""
    torch.manual_seed(0)
    x = torch.linspace(-3, 3, 256).unsqueeze(1).to(device)
    y = torch.sin(x)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for step in range(101):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 25 == 0:
            print(f"  step {step:3}  loss {losses[-1]:.4f}  on {loss.device}")
    if losses[-1] > losses[0] / 10:
        sys.exit(f"the loss did not fall: {losses[0]:.4f} to {losses[-1]:.4f}")


if __name__ == "__main__":
    main(sys.argv[1])
