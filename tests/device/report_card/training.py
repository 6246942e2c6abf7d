# SPDX-License-Identifier: Apache-2.0
"""The reference training: three small models, and which of their operators fall back to the CPU."""

from __future__ import annotations

import copy
import time
from typing import Any, Callable

import torch

STEPS = 5
#: How far a loss may be from the CPU's, as a share of it: float32, and sums in another order.
TOLERANCE = 1e-3


def _perceptron() -> tuple[torch.nn.Module, torch.Tensor]:
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.GELU(),
        torch.nn.Linear(128, 10),
    )  # fmt: skip
    return model, torch.randn(32, 64)


def _convolutional() -> tuple[torch.nn.Module, torch.Tensor]:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2), torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10),
    )  # fmt: skip
    return model, torch.randn(8, 3, 16, 16)


class _Transformer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.head = torch.nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x).mean(dim=1))


def _transformer() -> tuple[torch.nn.Module, torch.Tensor]:
    return _Transformer(), torch.randn(8, 16, 32)


MODELS: dict[str, tuple[str, Callable[[], tuple[torch.nn.Module, torch.Tensor]]]] = {
    "perceptron": ("three linear layers, ReLU and GELU", _perceptron),
    "convolutional": ("two convolutions, batch norm, pooling, a linear layer", _convolutional),
    "transformer": ("one encoder layer with attention, a linear layer", _transformer),
}


def _steps(model: torch.nn.Module, x: torch.Tensor, target: torch.Tensor) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


def train(name: str, device: str, module: Any) -> dict[str, Any]:
    """What training one of MODELS on the device takes, after one run to warm up."""
    what, make = MODELS[name]
    torch.manual_seed(0)
    model, x = make()
    target = torch.randint(10, (x.shape[0],))
    row: dict[str, Any] = {"model": name, "what": what, "steps": STEPS, "problem": ""}
    try:
        expected = _steps(copy.deepcopy(model), x, target)
        there = [one.to(device) for one in (model, x, target)]
        _steps(copy.deepcopy(there[0]), *there[1:])
        has_report = hasattr(module, "reset_fallback_report")
        if has_report:
            module.reset_fallback_report()
        module.synchronize()
        started = time.perf_counter()
        losses = _steps(*there)
        module.synchronize()
        row["seconds"] = round(time.perf_counter() - started, 6)
    # Whatever a backend raises is what the card has to say.
    except Exception as error:
        text = str(error).strip().partition("\n")[0]
        row["problem"] = f"{type(error).__name__}: {text}"
        return row
    row["first_loss"], row["last_loss"] = (round(losses[at], 3) for at in (0, -1))
    row["as_on_the_cpu"] = all(
        abs(ours - theirs) <= TOLERANCE * max(1.0, abs(theirs))
        for ours, theirs in zip(losses, expected)
    )
    row["fallbacks"] = _fallbacks(module) if has_report else None
    return row


def _fallbacks(module: Any) -> list[dict[str, Any]]:
    """The operators that fell back, the most frequent first: the same order in every run."""
    rows = [
        {
            "operator": one.operator.removeprefix("aten::"),
            "calls": one.calls,
            "seconds": round(one.total_ms / 1000, 6),
            "bytes_copied": one.bytes_copied,
        }
        for one in module.fallback_report().rows
    ]
    return sorted(rows, key=lambda row: (-row["calls"], row["operator"]))
