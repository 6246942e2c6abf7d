"""Run `pytest` where the wheel is installed and the driver library can be found."""

import foo_frameworks
import foo_frameworks.torch
import pytest
import torch


def test_the_package_is_loaded():
    assert foo_frameworks.is_loaded
    assert foo_frameworks.torch.is_loaded


def test_the_driver_counts_the_devices():
    assert torch.foo.device_names() == ["foo:0", "foo:1"]


@pytest.mark.parametrize("device", ["foo:0", "foo:1"])
def test_a_step_of_training(device):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(8, 3).to(device)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_the_drivers_own_words_reach_python():
    with pytest.raises(RuntimeError, match="memory"):
        torch.empty(2**60, dtype=torch.uint8, device="foo")
