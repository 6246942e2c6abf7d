# SPDX-License-Identifier: Apache-2.0
"""Transformers, Accelerate and safetensors pick the device where they would take the CPU."""

import json

import pytest
import torch
from fresh_process import Forks

pytest.importorskip("accelerate")
pytest.importorskip("transformers")

PRELUDE = """
import json, os, sys, tempfile, warnings
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
warnings.simplefilter("ignore")
warnings.filterwarnings("always", message=".*could not set itself up")

def end(message, *arguments):
    print(message, file=sys.stderr, flush=True)
    os._exit(3)

warnings.showwarning = end
import torch, transformers
transformers.Trainer, transformers.pipeline, transformers.GPT2LMHeadModel
CONFIG = transformers.GPT2Config(
    n_layer=2, n_head=2, n_embd=32, vocab_size=64, n_positions=32, bos_token_id=0, eos_token_id=0
)

def model():
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(CONFIG)

def saved():
    model().save_pretrained(FOLDER)
    return FOLDER

def tell(*values):
    print("told", json.dumps([str(one) for one in values]))

TOKENS = torch.arange(8)[None]

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return {"input_ids": TOKENS[0] + index, "labels": TOKENS[0] + index}

def trainer(**options):
    arguments = transformers.TrainingArguments(
        FOLDER, per_device_train_batch_size=2, max_steps=3, save_steps=2, report_to=[],
        disable_tqdm=True, **options,
    )
    return transformers.Trainer(
        model(), arguments, train_dataset=Data(), eval_dataset=Data()
    )
"""


BEGIN = """
NAME, FOLDER = sys.argv[1:3]
module = getattr(torch, NAME)
"""


@pytest.fixture(scope="module")
def forks():
    forks = Forks(PRELUDE)
    yield forks
    forks.close()


@pytest.fixture
def told(name, forks, tmp_path):
    """Runs a program after the prelude; what it tells."""

    def run(program):
        lines = forks.printed(BEGIN + program, name, str(tmp_path))
        return [json.loads(line[5:]) for line in lines if line.startswith("told ")]

    return run


def test_trainer_trains_evaluates_and_resumes(told, name):
    first, second, cpu = told("""
one = trainer()
one.train()
tell(one.args.device, one.args.n_gpu, one.model.device, one.evaluate()["eval_loss"] < 10)
two = trainer()
two.train(resume_from_checkpoint=os.path.join(FOLDER, "checkpoint-2"))
tell(two.model.device, two.state.global_step)
three = trainer(use_cpu=True)
three.train()
tell(three.args.device, three.model.device)
""")
    assert first == [f"{name}:0", "1", f"{name}:0", "True"]
    assert second == [f"{name}:0", "3"]
    assert cpu == ["cpu", "cpu"]


@pytest.mark.parametrize(
    "option",
    [
        pytest.param("bf16", marks=pytest.mark.needs("autocast of bfloat16")),
        pytest.param("fp16", marks=pytest.mark.needs("autocast of float16")),
    ],
)
def test_trainer_s_mixed_precision(told, name, option):
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[option]
    (found,) = told(f"""
one = trainer({option}=True)
seen = set()
one.model.transformer.h[0].mlp.c_fc.register_forward_hook(lambda *all: seen.add(all[2].dtype))
one.train()
tell(one.model.device, *seen, type(one.accelerator.scaler).__name__)
""")
    scaler = "GradScaler" if dtype == torch.float16 else "NoneType"
    assert found == [f"{name}:0", str(dtype), scaler]


@pytest.mark.needs("memory_info")
@pytest.mark.parametrize("where", ["auto", "balanced", "balanced_low_0", "sequential"])
def test_a_device_map_that_asks_for_the_memory(told, name, module, where):
    (found,) = told(f"""
one = transformers.GPT2LMHeadModel.from_pretrained(saved(), device_map={where!r})
place = one(TOKENS.to(one.device)).logits.device.type
tell(place, {{parameter.device.type for parameter in one.parameters()}})
""")
    assert found == [name, f"{{'{name}'}}"]


@pytest.mark.parametrize(
    "where, devices",
    [("NAME", "0"), ("{'': NAME}", "0"), ("{'': 0}", "0"), ("{'': f'{NAME}:0'}", "0")],
)
def test_a_device_map_that_names_the_device(told, name, where, devices):
    (found,) = told(f"""
one = transformers.GPT2LMHeadModel.from_pretrained(saved(), device_map={where})
tell({{str(parameter.device) for parameter in one.parameters()}})
""")
    assert found == [f"{{'{name}:{devices}'}}"]


def test_a_device_map_of_the_memory_that_is_given(told, name):
    """What does not fit stays on the CPU, without a warning that there is no such device."""
    (found,) = told("""
import logging
seen = []
class Seen(logging.Handler):
    def emit(self, record):
        seen.append(record.getMessage())
logging.getLogger("accelerate.utils.modeling").addHandler(Seen())
one = transformers.GPT2LMHeadModel.from_pretrained(
    saved(), device_map="auto", max_memory={0: 60000, "cpu": 10**8}
)
tell(set(one.hf_device_map.values()) == {0, "cpu"}, one(TOKENS.to(NAME)).logits.device, seen)
""")
    assert found == ["True", f"{name}:0", "[]"]


@pytest.mark.needs("memory_info")
def test_the_memory_that_there_is(told, module):
    found, given = told("""
from accelerate.utils import get_max_memory
found = get_max_memory()
tell(sorted(map(str, found)), all(value > 0 for value in found.values()))
tell(get_max_memory({0: "1MB"}))
""")
    names = sorted([*map(str, range(module.device_count())), "cpu"])
    assert found == [str(names), "True"]
    assert given == ["{0: 1000000}"]


def test_a_device_that_tells_no_memory(told, module):
    if not hasattr(module, "capabilities"):
        pytest.skip("only a backend made with BackendKit tells what it lacks")
    (found,) = told("""
import logging, types
seen = []
class Seen(logging.Handler):
    def emit(self, record):
        seen.append("pass max_memory" in record.getMessage())
logging.getLogger("accelerate.utils.modeling").addHandler(Seen())
module.capabilities = lambda: types.SimpleNamespace(has=lambda name: False)
from accelerate.utils import get_max_memory
tell(list(get_max_memory()), seen)
""")
    assert found == ["['cpu']", "[True]"]


PIPELINE = """
from tokenizers import Tokenizer, models, pre_tokenizers
words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(63)} | {"[UNK]": 63}, "[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="[UNK]", pad_token="[UNK]", eos_token="[UNK]"
)

def pipe(**options):
    one = transformers.pipeline("text-generation", model=model(), tokenizer=tokenizer, **options)
    assert one("w1 w2", max_new_tokens=2)[0]["generated_text"].startswith("w1 w2")
    tell(one.model.device)
"""


def test_pipelines(told, name):
    found = told(PIPELINE + "pipe(); pipe(device=0); pipe(device=NAME); pipe(device=-1)")
    assert found == [[f"{name}:0"], [f"{name}:0"], [f"{name}:0"], ["cpu"]]


@pytest.mark.needs("devices")
def test_a_pipeline_on_another_device(told, name):
    assert told(PIPELINE + "pipe(device=1)") == [[f"{name}:1"]]


def test_a_pipeline_of_a_model_that_is_split(told, name):
    found = told(
        PIPELINE
        + """
for rest in ("cpu", 0):
    places = {f"transformer.{part}": 0 for part in ("wte", "wpe", "h.0")}
    places |= {"transformer.h.1": rest, "transformer.ln_f": rest, "lm_head": 0}
    one = transformers.GPT2LMHeadModel.from_pretrained(saved(), device_map=places)
    pipe = transformers.pipeline("text-generation", model=one, tokenizer=tokenizer)
    tell(pipe.device)
"""
    )
    assert found == [[f"{name}:0"]] * 2


@pytest.mark.needs("autocast of float16")
def test_accelerate_s_float16(told, name):
    (found,) = told("""
from accelerate import Accelerator
one = Accelerator(mixed_precision="fp16")
layer = torch.nn.Linear(4, 1)
layer, optimizer = one.prepare(layer, torch.optim.SGD(layer.parameters(), lr=0.1))
with one.autocast():
    dtype = torch.nn.functional.linear(torch.ones(1, 4, device=one.device), layer.weight).dtype
before = layer.weight.detach().clone()
for _ in range(4):  # the first scales are too large
    optimizer.zero_grad()
    one.backward(layer(torch.ones(2, 4, device=one.device)).float().mean())
    one.clip_grad_norm_(layer.parameters(), 1.0)
    optimizer.step()
tell(one.device.type, dtype, torch.equal(before, layer.weight), one.scaler._device)
""")
    assert found == [name, "torch.float16", "False", name]


@pytest.mark.parametrize("where", ['{"": NAME}', '{"": 0}'])
def test_a_checkpoint_is_dispatched(told, name, where):
    (found,) = told(f"""
from accelerate import init_empty_weights, load_checkpoint_and_dispatch
with init_empty_weights():
    one = transformers.GPT2LMHeadModel(CONFIG)
one.tie_weights()
one = load_checkpoint_and_dispatch(one, saved(), device_map={where})
logits = one.eval()(TOKENS.to(NAME)).logits.cpu()
same = torch.allclose(logits, model().eval()(TOKENS).logits, atol=1e-4)
tell({{str(parameter.device) for parameter in one.parameters()}}, same)
""")
    assert found == [f"{{'{name}:0'}}", "True"]


def test_safetensors(told, name):
    pytest.importorskip("safetensors")
    found = told("""
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model
path = os.path.join(FOLDER, "one.safetensors")
save_file({"a": torch.arange(4.0, device=NAME)}, path)
for place in (NAME, f"{NAME}:0", torch.device(NAME, 0), 0, "cpu"):
    one = load_file(path, device=place)["a"]
    tell(one.device, one.tolist())
with safe_open(path, framework="pt", device=NAME) as file:
    tell(file.get_tensor("a").device, file.get_slice("a")[1:3].tolist(), list(file.keys()))
one = model().to(NAME)
save_model(one, path)
load_model(model().to(NAME), path, device=NAME)
tell(load_file(path, device=NAME)["transformer.wpe.weight"].device)
for place in ("no_device", NAME + ":x"):
    try:
        safe_open(path, framework="pt", device=place)
    except Exception as error:
        tell(type(error).__name__, str(error))
with safe_open(path, "pt") as file:
    tell(isinstance(file, safe_open), isinstance(1, safe_open), safe_open | None)
""")
    numbers, there = "[0.0, 1.0, 2.0, 3.0]", f"{name}:0"
    assert found[:5] == [[there, numbers]] * 4 + [["cpu", numbers]]
    assert found[5:7] == [[there, "[1.0, 2.0]", "['a']"], [there]]
    for place, (kind, text) in zip(("no_device", f"{name}:x"), found[7:9]):
        assert kind == "SafetensorError" and place in text
    assert found[9] == ["True", "False", "safetensors.safe_open | None"]


@pytest.mark.needs("devices")
def test_safetensors_of_another_device(told, name):
    (found,) = told("""
from safetensors.torch import load_file, save_file
path = os.path.join(FOLDER, "one.safetensors")
save_file({"a": torch.arange(4.0)}, path)
module.set_device(1)
tell(load_file(path, device=f"{NAME}:1")["a"].device, load_file(path, device=NAME)["a"].device)
""")
    assert found == [f"{name}:1", f"{name}:1"]
