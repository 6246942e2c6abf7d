# SPDX-License-Identifier: Apache-2.0
"""What the probes compute with."""

import torch


def numbers() -> torch.Tensor:
    return torch.arange(6, dtype=torch.float32).reshape(2, 3)


def network() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))


def losses(model: torch.nn.Module, steps: int = 3) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    history = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(numbers()) - 1.0).pow(2).mean()
        loss.backward()
        optimizer.step()
        history.append(round(loss.item(), 4))
    return history
