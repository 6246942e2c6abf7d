# SPDX-License-Identifier: Apache-2.0
"""Trains a network on the device and prints what became of its memory; `memory.py` runs it.

A line is `+ BLOCK BYTES STREAM`, where a tensor asks for BYTES, or `- BLOCK`. With `varying`, each
step has sentences of another length.
"""

import random
import sys

import torch
from torch import nn

WORDS, WIDTH, LAYERS, SENTENCES, STEPS = 4000, 256, 4, 16, 6


def train(varying: bool) -> None:
    torch.manual_seed(0)
    random.seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
    encoder = nn.TransformerEncoder(layer, LAYERS)
    parts = nn.Embedding(WORDS, WIDTH), encoder, nn.Linear(WIDTH, WORDS)
    network = nn.Sequential(*parts).to("foo")
    optimizer = torch.optim.AdamW(network.parameters())
    for _ in range(STEPS):
        length = random.randint(64, 192) if varying else 128
        words = torch.randint(WORDS, (SENTENCES, length + 1)).to("foo")
        guess = network(words[:, :-1])
        loss = nn.functional.cross_entropy(guess.flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    torch.foo.memory._record_memory_history(max_entries=10_000_000)
    train(varying="varying" in sys.argv)
    blocks: dict[int, int] = {}
    for number, event in enumerate(torch.foo.memory._snapshot()["device_traces"][0]):
        if event["action"] == "alloc":
            blocks[event["addr"]] = number
            print("+", number, event["size"], event["stream"])
        elif event["action"] == "free_requested":
            print("-", blocks.pop(event["addr"]))


if __name__ == "__main__":
    main()
