"""Trains tiny models of `transformers` on a device of OpenCL and on the CPU.

    pip install transformers
    python transformers_models.py [--steps 5] [NAME ...]

The weights are random, and nothing is downloaded. Both begin with the same weights and get the same
tokens. The table has the largest difference of a loss and of the gradients of a step, the latter by
the norm of the difference relative to the norm on the CPU, the seconds of a step, and the operators
of the training that fell back to the CPU. The first step, in which kernels are compiled, is not in
the seconds.

The models have no dropout, since the device draws its random numbers from another generator than
the CPU. `bert-dropout` has, so its loss only has to become smaller.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from typing import NamedTuple

import torch
import transformers
from compare import DEVICE, difference, fallbacks, reset_fallbacks

VOCABULARY = 128
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
#: What single precision leaves of a difference after the steps.
MOST = 1e-4


class Trained(NamedTuple):
    losses: list[float]
    gradients: list[list[torch.Tensor]]  # of each step
    seconds: float  # of a step


def bert(dropout: float = 0.0) -> torch.nn.Module:
    config = transformers.BertConfig(
        **SIZES, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout
    )
    return transformers.BertForMaskedLM(config)


def llama() -> torch.nn.Module:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, num_key_value_heads=2))


MODELS = {"bert": bert, "llama": llama, "bert-dropout": lambda: bert(dropout=0.1)}


def trained(model: torch.nn.Module, steps: int, device: str) -> Trained:
    """Some steps with sentences of several lengths."""
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    tokens = torch.randint(VOCABULARY, (8, 32), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(tokens)
    mask[::2, 24:] = 0
    labels = tokens.masked_fill(mask == 0, -100)  # the loss leaves out what is -100
    batch = {"input_ids": tokens, "attention_mask": mask, "labels": labels}
    there = {name: one.to(device) for name, one in batch.items()}
    losses, gradients, seconds = [], [], 0.0
    for number in range(steps):
        start = time.perf_counter()
        loss = model(**there).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds += (time.perf_counter() - start) / (steps - 1) if number else 0
        gradients.append([one.grad.cpu() for one in model.parameters() if one.grad is not None])
    return Trained(losses, gradients, seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(MODELS), metavar="NAME")
    parser.add_argument("--steps", type=int, default=5, help="by default %(default)s")
    options = parser.parse_args()
    if options.steps < 2:
        parser.error("--steps is 2 or more: the first one is not timed")
    head = f"{'loss':>7} {'losses':>8} {'gradients':>9} {'ocl':>9} {'cpu':>9}"
    print(f"{'model':<12} {head}  fallbacks")
    wrong = []
    for name in options.names:
        torch.manual_seed(0)
        model = MODELS[name]()
        here = trained(copy.deepcopy(model), options.steps, "cpu")
        reset_fallbacks()
        there = trained(model, options.steps, DEVICE)
        fell_back = fallbacks()
        losses = max(abs(one - two) for one, two in zip(there.losses, here.losses))
        gradients = max(difference(*both) for both in zip(there.gradients, here.gradients))
        seconds = f"{1000 * there.seconds:6.1f} ms {1000 * here.seconds:6.1f} ms"
        figures = f"{there.losses[-1]:7.3f} {losses:8.1e} {gradients:9.1e} {seconds}"
        print(f"{name:<12} {figures}  {fell_back}", flush=True)
        same = name == "bert-dropout" or max(losses, gradients) < MOST
        if not (same and there.losses[-1] < there.losses[0] and fell_back == "none"):
            wrong.append(name)
    if wrong:
        print(
            f"error: not as on the CPU, or not on the device: {', '.join(wrong)}", file=sys.stderr
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
