# SPDX-License-Identifier: Apache-2.0
"""Tiny models of `transformers` train on the device as on the CPU."""

import copy

import pytest
import torch

transformers = pytest.importorskip("transformers")


def bert():
    config = transformers.BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return transformers.BertForMaskedLM(config)


def llama():
    config = transformers.LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    return transformers.LlamaForCausalLM(config)


@pytest.mark.parametrize("make", [bert, llama])
def test_training_is_as_on_the_cpu(device, make):
    torch.manual_seed(0)
    here = make().train()
    there = copy.deepcopy(here).to(device)
    there.tie_weights()  # docs/operators.md: PyTorch unties parameters on its way to the device
    tokens = torch.randint(64, (4, 16))
    mask = torch.ones_like(tokens)
    mask[0, 12:] = 0
    histories = []
    for model, place in ((here, "cpu"), (there, device)):
        steps = torch.optim.AdamW(model.parameters(), lr=1e-3)
        history = []
        for _ in range(5):
            output = model(tokens.to(place), attention_mask=mask.to(place), labels=tokens.to(place))
            steps.zero_grad()
            output.loss.backward()
            steps.step()
            history.append(output.loss.item())
        histories.append(history)
    assert histories[1] == pytest.approx(histories[0], rel=1e-4)
    assert histories[1][-1] < histories[1][0]
    for one, two in zip(there.parameters(), here.parameters()):
        torch.testing.assert_close(one.detach().cpu(), two.detach(), rtol=1e-3, atol=1e-4)


def test_generation_is_as_on_the_cpu(device):
    torch.manual_seed(0)
    model = llama().eval()
    tokens = torch.randint(64, (1, 6))
    options = {"max_new_tokens": 5, "do_sample": False}
    expected = model.generate(tokens, **options)
    assert torch.equal(model.to(device).generate(tokens.to(device), **options).cpu(), expected)
