# SPDX-License-Identifier: Apache-2.0
"""Packages that take long to install find the device: `./dev frameworks`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

NAME = torch._C._get_privateuse1_backend_name()


@pytest.fixture(autouse=True)
def no_failed_set_up(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*could not set itself up")
        yield  # what would be raised is printed
    assert "could not set itself up" not in capsys.readouterr().err


def words(folder: Path) -> None:
    """Saves a tokenizer of the words w0 to w59."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    known = {f"w{number}": number for number in range(60)} | {"[UNK]": 60, "[PAD]": 61}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")
    fast.save_pretrained(folder)


def test_sentence_transformers(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer, models
    from sentence_transformers.util import get_device_name
    from transformers import BertConfig, BertModel

    words(tmp_path)
    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(tmp_path)

    def model(**options: str) -> SentenceTransformer:
        parts = [models.Transformer(str(tmp_path)), models.Pooling(32)]
        return SentenceTransformer(modules=parts, **options)

    texts = ["w1 w2", "w3"]
    assert get_device_name() == f"{NAME}:0"
    assert model().encode(texts, convert_to_tensor=True).device == torch.device(NAME, 0)
    expected = torch.tensor(model(device="cpu").encode(texts))
    torch.testing.assert_close(torch.tensor(model().encode(texts)), expected, atol=1e-5, rtol=1e-4)


def diffusion_pipeline():
    from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel

    torch.manual_seed(0)
    unet = UNet2DModel(
        sample_size=8,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(32, 32),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
    )
    pipeline = DDPMPipeline(unet=unet, scheduler=DDPMScheduler(num_train_timesteps=10))
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def image(pipeline) -> torch.Tensor:
    generator = torch.Generator("cpu").manual_seed(0)
    made = pipeline(generator=generator, num_inference_steps=2, output_type="np")
    return torch.tensor(made.images)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_diffusers(memory_format: torch.memory_format) -> None:
    pipeline = diffusion_pipeline()
    expected = image(pipeline)
    pipeline.to(NAME)
    pipeline.unet.to(memory_format=memory_format)
    assert pipeline.device == torch.device(NAME, 0)
    torch.testing.assert_close(image(pipeline), expected, atol=1e-4, rtol=1e-4)
    generator = torch.Generator(NAME).manual_seed(0)
    assert pipeline(generator=generator, num_inference_steps=2, output_type="np").images.shape


@pytest.mark.parametrize("where", ["balanced", NAME])
def test_a_device_map_of_diffusers(tmp_path: Path, where: str) -> None:
    from diffusers import DDPMPipeline

    diffusion_pipeline().save_pretrained(tmp_path)
    found = DDPMPipeline.from_pretrained(tmp_path, device_map=where)
    assert found.unet.device.type == NAME


@pytest.mark.parametrize("kind", ["enable_model_cpu_offload", "enable_sequential_cpu_offload"])
def test_diffusers_offloads(kind: str) -> None:
    pipeline = diffusion_pipeline()
    expected = image(pipeline)
    getattr(pipeline, kind)()
    assert pipeline._execution_device == torch.device(NAME, 0)
    torch.testing.assert_close(image(pipeline), expected, atol=1e-4, rtol=1e-4)


def test_peft(tmp_path: Path) -> None:
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=1, n_head=2, n_embd=32, vocab_size=64, n_positions=32)
    lora = LoraConfig(target_modules=["c_attn"], r=2, fan_in_fan_out=True)
    model = get_peft_model(GPT2LMHeadModel(config).to(NAME), lora)
    tokens = torch.arange(8, device=NAME)[None]
    loss = model(tokens, labels=tokens).loss
    loss.backward()
    assert loss.device.type == NAME
    model.save_pretrained(tmp_path)
    again = PeftModel.from_pretrained(GPT2LMHeadModel(config).to(NAME), tmp_path)
    assert {str(one.device) for one in again.parameters()} == {f"{NAME}:0"}


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_timm(memory_format: torch.memory_format) -> None:
    import timm

    torch.manual_seed(0)
    model = timm.create_model("resnet18").eval()
    x = torch.randn(1, 3, 64, 64)
    expected = model(x)
    model.to(NAME, memory_format=memory_format)
    found = model(x.to(NAME, memory_format=memory_format))
    torch.testing.assert_close(found.cpu(), expected, atol=1e-3, rtol=1e-3)


BOXES = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])


@pytest.mark.parametrize("autocast", [False, True])
def test_operators_of_torchvision(autocast: bool) -> None:
    from torchvision.ops import deform_conv2d, nms, ps_roi_align, ps_roi_pool, roi_align, roi_pool

    torch.manual_seed(0)
    images, weight = torch.randn(1, 4, 32, 32), torch.randn(2, 4, 3, 3)
    scores, rois = torch.tensor([0.9, 0.8, 0.7]), torch.cat([torch.zeros(3, 1), BOXES], 1)
    offset = torch.randn(1, 18, 30, 30)
    dtype = torch.bfloat16 if autocast else torch.float32
    calls = [
        lambda where, kind: nms(BOXES.to(where, kind), scores.to(where, kind), 0.5),
        *(
            lambda where, kind, pool=pool: pool(images.to(where, kind), rois.to(where, kind), 2)
            for pool in (roi_align, roi_pool, ps_roi_align, ps_roi_pool)
        ),
        lambda where, kind: deform_conv2d(
            images.to(where, kind), offset.to(where, kind), weight.to(where, kind)
        ),
    ]
    for call in calls:
        expected = call("cpu", torch.float32)
        with torch.autocast(NAME, dtype=torch.bfloat16, enabled=autocast):
            found = call(NAME, dtype)
        assert found.device.type == NAME
        if found.is_floating_point():
            assert found.dtype == dtype
            assert (found.float().cpu() - expected).abs().mean() < 0.1
        else:
            assert found.tolist() == expected.tolist()


def test_a_detector_of_torchvision_trains_under_autocast() -> None:
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

    torch.manual_seed(0)
    model = fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=3, min_size=64, max_size=64
    ).to(NAME)
    images = [torch.rand(3, 64, 64, device=NAME)]
    targets = [{"boxes": BOXES.to(NAME), "labels": torch.tensor([1, 2, 1], device=NAME)}]
    with torch.autocast(NAME, dtype=torch.bfloat16):
        losses = model(images, targets)
    loss = sum(losses.values())
    loss.backward()
    assert loss.device.type == NAME
    assert torch.isfinite(loss)
