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


def tied_llama():
    model = llama()
    model.config.tie_word_embeddings = True
    model.tie_weights()
    return model


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=64,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=32,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    return transformers.GPT2LMHeadModel(config)


def t5():
    config = transformers.T5Config(
        vocab_size=64,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        pad_token_id=0,
    )
    return transformers.T5ForConditionalGeneration(config)


def names_of_parameters(model):
    """The names of each parameter; one that is tied has several."""
    names = {}
    for name, one in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(one), set()).add(name)
    return names


@pytest.mark.parametrize("make", [bert, gpt2, t5, llama, tied_llama])
def test_ties_stay(device, make):
    model = make()
    before = names_of_parameters(model)
    assert any(len(names) > 1 for names in before.values()) == (make is not llama)
    for place in (device, "cpu", device):
        assert names_of_parameters(model.to(place)) == before
    assert {one.device for one in model.parameters()} == {device}


@pytest.mark.parametrize("make", [bert, gpt2, t5, llama, tied_llama])
def test_training_is_as_on_the_cpu(device, make):
    torch.manual_seed(0)
    here = make().train()
    there = copy.deepcopy(here)
    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-3) for model in (here, there)]
    there.to(device)
    tokens = torch.randint(64, (4, 16))
    mask = torch.ones_like(tokens)
    mask[0, 12:] = 0
    histories = []
    for model, place, steps in zip((here, there), ("cpu", device), optimizers):
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
