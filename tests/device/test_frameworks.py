# SPDX-License-Identifier: Apache-2.0
"""Software of others picks the device: Lightning, Accelerate, and PyTorch's default device."""

import logging
import subprocess
import sys
import textwrap

import pytest
import torch
from fresh_process import Forks
from torch import nn
from torch.utils.data import DataLoader


@pytest.fixture
def lightning():
    module = pytest.importorskip("lightning.pytorch")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    return module


@pytest.fixture
def fit(lightning, recwarn):
    """Trains a small model with a Trainer's arguments; the model and the trainer."""

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)
            self.losses, self.seen = [], set()

        def training_step(self, batch, number):
            result = self.layer(batch)
            self.seen.add((str(batch.device), str(self.layer.weight.device), result.dtype))
            loss = (result.float() - batch.sum(1, keepdim=True)).square().mean()
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def run(**arguments):
        torch.manual_seed(0)
        quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
        arguments = {"max_epochs": 3, **dict.fromkeys(quiet, False), **arguments}
        model, trainer = Model(), lightning.Trainer(**arguments)
        trainer.fit(model, DataLoader(torch.randn(16, 4), batch_size=4))
        return model, trainer

    return run


@pytest.fixture
def groups():
    """The default process groups of devices."""
    return torch.distributed.Backend.default_device_backend_map


def test_lightning_trains_on_the_device(fit, name):
    model, trainer = fit(accelerator=name, strategy=name)
    assert model.seen == {(f"{name}:0", f"{name}:0", torch.float32)}
    assert model.losses[-1] < model.losses[0]
    assert trainer.accelerator.name() == name
    assert trainer.accelerator.get_device_stats(f"{name}:0")["allocation.all.allocated"] > 0
    reference, _ = fit(accelerator="cpu")
    assert model.losses == pytest.approx(reference.losses, rel=1e-4)


@pytest.mark.needs("devices")
@pytest.mark.parametrize("devices", [[1], "1,"])
def test_lightning_takes_the_device_that_is_asked_for(fit, name, devices):
    model, _ = fit(accelerator=name, strategy=name, devices=devices)
    assert model.seen == {(f"{name}:1", f"{name}:1", torch.float32)}


def test_lightning_refuses_devices_that_are_not_there(fit, name, beyond):
    with pytest.raises(
        ValueError, match=rf"devices=\[{beyond}\] do not exist: the {name} devices are "
    ):
        fit(accelerator=name, strategy=name, devices=[beyond])


@pytest.mark.needs("autocast")
def test_lightning_s_mixed_precision(fit, name, module):
    dtype = module.get_amp_supported_dtype()[0]
    precision = {torch.float16: "16-mixed", torch.bfloat16: "bf16-mixed"}[dtype]
    model, trainer = fit(accelerator=name, strategy=name, precision=precision)
    assert trainer.precision_plugin.device == name
    assert model.seen == {(f"{name}:0", f"{name}:0", dtype)}
    assert model.losses[-1] < model.losses[0]


@pytest.mark.parametrize("arguments", [{"accelerator": "NAME"}, {"accelerator": "auto"}, {}])
def test_lightning_needs_no_strategy_and_no_name(fit, name, arguments):
    arguments = {key: value.replace("NAME", name) for key, value in arguments.items()}
    model, trainer = fit(devices=1, **arguments)
    assert model.seen == {(f"{name}:0", f"{name}:0", torch.float32)}
    assert trainer.accelerator.name() == name


def test_lightning_with_a_strategy_for_the_cpu_says_what_to_pass(fit, lightning, name):
    strategy = lightning.strategies.SingleDeviceStrategy("cpu")
    with pytest.raises(ValueError, match=f'pass strategy="{name}" or no strategy'):
        fit(accelerator=name, strategy=strategy)


@pytest.mark.parametrize(
    "arguments",
    [
        {"devices": "BEYOND", "strategy": "ddp_notebook"},
        {"devices": "BEYOND", "strategy": "ddp"},
        {"strategy": "CPU"},
        {"devices": "BEYOND"},
    ],
)
def test_lightning_stays_on_the_cpu_with_what_only_works_there(lightning, name, beyond, arguments):
    if "devices" in arguments:
        arguments = {**arguments, "devices": beyond + 1}
    if arguments.get("strategy") == "CPU":
        strategy = lightning.strategies.SingleDeviceStrategy(torch.device("cpu"))
        arguments = {"strategy": strategy}
    trainer = lightning.Trainer(logger=False, **arguments)
    assert trainer.accelerator.name() == "cpu"
    assert trainer.strategy.root_device.type == "cpu"


@pytest.mark.parametrize("devices", [1, "1", [0], "0,"])
def test_lightning_takes_one_device_by_default(lightning, name, devices):
    trainer = lightning.Trainer(logger=False, devices=devices)
    assert trainer.accelerator.name() == name
    assert str(trainer.strategy.root_device) == f"{name}:0"


@pytest.mark.needs("devices")
@pytest.mark.parametrize("arguments", [{"accelerator": "NAME"}, {}, {"strategy": "ddp"}])
def test_lightning_takes_all_devices(lightning, name, module, groups, arguments):
    if name not in groups:
        pytest.skip("the device has no process group: [distributed] enabled = false")
    arguments = {key: value.replace("NAME", name) for key, value in arguments.items()}
    trainer = lightning.Trainer(logger=False, **arguments)
    assert trainer.accelerator.name() == name
    assert trainer.num_devices == module.device_count()
    assert "DDP" in type(trainer.strategy).__name__


@pytest.mark.needs("devices")
@pytest.mark.parametrize("arguments", [{"devices": 2}, {"strategy": "ddp"}, {"num_nodes": 2}])
def test_lightning_without_a_process_group_stays_on_the_cpu(
    lightning, name, groups, monkeypatch, arguments
):
    monkeypatch.delitem(groups, name, raising=False)
    trainer = lightning.Trainer(logger=False, **arguments)
    assert trainer.accelerator.name() == "cpu"


@pytest.mark.needs("devices")
def test_lightning_on_several_devices_says_what_is_missing(fit, name, groups, monkeypatch):
    monkeypatch.delitem(groups, name, raising=False)
    with pytest.raises(ValueError, match=f"2 devices needs a process group for {name}"):
        fit(accelerator=name, devices=2)


@pytest.mark.needs("autocast")
@pytest.mark.parametrize("accelerator", ["NAME", "auto"])
@pytest.mark.parametrize("launch", [False, True])
def test_lightning_s_fabric_in_mixed_precision(lightning, name, module, accelerator, launch):
    dtype = module.get_amp_supported_dtype()[0]
    precision = {torch.float16: "16-mixed", torch.bfloat16: "bf16-mixed"}[dtype]
    accelerator = accelerator.replace("NAME", name)
    fabrics = pytest.importorskip("lightning.fabric")
    fabric = fabrics.Fabric(accelerator=accelerator, devices=1, precision=precision)
    if launch:
        fabric.launch()
    x = torch.ones(2, 4, device=fabric.device)
    with fabric.autocast():
        assert nn.functional.linear(x, x).dtype == dtype
    assert str(fabric.device) == f"{name}:0"


@pytest.mark.parametrize("strategy", ["NAME", "auto"])
@pytest.mark.parametrize("together", [False, True])
def test_lightning_s_fabric(lightning, name, recwarn, together, strategy):
    """An optimizer that is made before the model moves, and one that is made after."""
    fabrics = pytest.importorskip("lightning.fabric")
    strategy = strategy.replace("NAME", name)
    fabric = fabrics.Fabric(accelerator=name, devices=1, strategy=strategy)
    fabric.launch()
    model = nn.Linear(4, 1)
    if together:
        model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    else:
        model = fabric.setup_module(model)
        optimizer = fabric.setup_optimizers(torch.optim.SGD(model.parameters(), lr=0.1))
    before = model.weight.detach().clone()
    fabric.backward(model(fabric.to_device(torch.ones(2, 4))).sum())
    optimizer.step()
    assert str(fabric.device) == str(model.weight.device) == f"{name}:0"
    assert not torch.equal(before, model.weight)


def run_fresh(code):
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()


TRAIN = """
import os, warnings
import torch
from accelerate import Accelerator
warnings.simplefilter("ignore")

def train(**arguments):
    accelerator = Accelerator(**arguments)
    model = torch.nn.Linear(4, 1)  # `prepare` moves it
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    data = torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=4)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for batch in data:
        accelerator.backward(model(batch).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    assert not torch.equal(before, model.weight.detach().cpu())
    print(accelerator.device.type, batch.device.type, model.weight.device.type)
"""


@pytest.fixture(scope="module")
def accelerate():
    """Runs a program, which may call `train`; what it prints, line by line."""
    pytest.importorskip("accelerate")
    forks = Forks(TRAIN)
    yield forks.printed
    forks.close()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("train()", "device"),
        ("train(cpu=True)", "cpu"),
        ("os.environ['ACCELERATE_TORCH_DEVICE'] = 'cpu'; train()", "cpu"),
    ],
    ids=["default", "cpu", "variable"],
)
def test_accelerate(name, accelerate, program, expected):
    place = name if expected == "device" else expected
    assert accelerate(program) == [f"{place} {place} {place}"]


@pytest.mark.needs("autocast of bfloat16")
def test_accelerate_s_mixed_precision(name, accelerate):
    assert accelerate("train(mixed_precision='bf16')") == [f"{name} {name} {name}"]


def test_import_torch_imports_neither(name):
    code = f"""
        import sys, torch
        torch.ones(1, device="{name}")
        print([one for one in sys.modules if one.partition(".")[0] in
              ("accelerate", "lightning", "lightning_fabric", "pytorch_lightning", "transformers")])
        print([one for one in sys.modules if one.endswith(("._lightning", "._hugging_face"))])
    """
    assert run_fresh(code) == ["[]", "[]"]


def test_the_default_device_of_a_process(name):
    code = f"""
        import torch
        torch.set_default_device("{name}")
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
        print({{str(one.device) for one in [*model.parameters(), *model.buffers()]}})
        print(torch.arange(3).device, torch.tensor([1.0]).device, torch.randn(2).device)
        print(torch.get_default_device())
        torch.set_default_device(None)
        print(torch.ones(1).device)
    """
    place = f"{name}:0"
    assert run_fresh(code) == [f"{{'{place}'}}", f"{place} {place} {place}", place, "cpu"]
