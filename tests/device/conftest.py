# SPDX-License-Identifier: Apache-2.0
"""Tests of an installed backend: `pytest tests/device --device foo`."""

import os

import pytest
import torch
from stream_tools import Work


def pytest_addoption(parser):
    parser.addoption("--device", default="foo", help="name of the device to test")


def pytest_configure(config):
    """A simulated device does its work late, so that a missing synchronization shows."""
    variable = f"{config.getoption('--device').upper()}_SIMULATOR_DELAY"
    os.environ.setdefault(variable, "200")


@pytest.fixture(scope="session")
def name(request):
    return request.config.getoption("--device")


@pytest.fixture(scope="session")
def module(name):
    """The device's module, such as torch.foo."""
    return getattr(torch, name)


@pytest.fixture
def device(name):
    return torch.device(f"{name}:0")


@pytest.fixture
def other(name):
    """A second device."""
    return torch.device(f"{name}:1")


@pytest.fixture
def stream():
    """The default stream of the first device, in releases without torch.accelerator too."""
    private_use_one = 20
    return torch.Stream(stream_id=0, device_index=0, device_type=private_use_one)


@pytest.fixture
def work(device):
    return Work(device)


@pytest.fixture
def streams(device):
    return [torch.Stream(device=device) for _ in range(2)]


@pytest.fixture(autouse=True)
def on_the_first_device(module):
    module.set_device(0)
    yield
    module.set_device(0)
