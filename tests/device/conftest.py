# SPDX-License-Identifier: Apache-2.0
"""Tests of an installed backend: `pytest tests/device --device foo`."""

import pytest
import torch


def pytest_addoption(parser):
    parser.addoption("--device", default="foo", help="name of the device to test")


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
    """The only stream of the first device; torch.accelerator would give it, where there is one."""
    private_use_one = 20
    return torch.Stream(stream_id=0, device_index=0, device_type=private_use_one)


@pytest.fixture(autouse=True)
def on_the_first_device(module):
    module.set_device(0)
    yield
    module.set_device(0)
