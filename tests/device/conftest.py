# SPDX-License-Identifier: Apache-2.0
"""Tests of an installed backend: `python -m backendkit.device_tests --device foo`.

A test that needs what not every backend has says so, with `@pytest.mark.needs("streams")` or by a
fixture of NEEDED_BY; it is skipped, with a reason that names the functions of the Runtime that
would unlock it, where the backend lacks it.
"""

import os

import pytest
import torch
from backend import lacking
from rank_starter import Starter
from ranks import Ranks
from report_card import plugin as report_card
from stream_tools import Work

#: What the fixtures need that a test asks for.
NEEDED_BY = {
    "other": ("devices",),
    "pin": ("pinned_memory",),
    "ranks": ("distributed",),
    "streams": ("streams",),
    "work": ("streams",),
}


def pytest_addoption(parser):
    installed = torch._C._get_privateuse1_backend_name()
    known = "" if installed == "privateuseone" else installed
    parser.addoption("--device", default=known, help="name of the device to test: %(default)s")
    parser.addoption(
        "--endings",
        type=int,
        default=2,
        help="processes for each way in which a program may end: %(default)s",
    )
    parser.addoption(
        "--world-size",
        type=int,
        default=2,
        help="processes of torch.distributed, which share devices: %(default)s",
    )
    report_card.add_options(parser)


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "needs(*names): skip where the backend has not all of these capabilities"
    )
    report_card.register(config, dict(os.environ))
    # A simulated device does its work late, so that a missing synchronization shows.
    variable = f"{config.getoption('--device').upper()}_SIMULATOR_DELAY"
    os.environ.setdefault(variable, "200")


def pytest_sessionstart(session):
    name = session.config.getoption("--device")
    if not name:
        raise pytest.UsageError("no backend is installed: `import torch` found none")
    module = getattr(torch, name, None)
    if module is None or not hasattr(module, "is_available"):
        raise pytest.UsageError(f"there is no torch.{name}: is its backend installed?")
    if not module.is_available():
        raise pytest.UsageError(f"torch.{name}.is_available() is False: there is no device to test")


def pytest_runtest_setup(item):
    needs = [name for marker in item.iter_markers("needs") for name in marker.args]
    for fixture in getattr(item, "fixturenames", ()):
        needs += NEEDED_BY.get(fixture, ())
    for need in dict.fromkeys(needs):
        reason = lacking(item.config.getoption("--device"), need)
        if reason:
            pytest.skip(reason)


@pytest.fixture(scope="session")
def name(request):
    return request.config.getoption("--device")


@pytest.fixture(scope="session")
def module(name):
    """The device's module, such as torch.foo."""
    return getattr(torch, name)


@pytest.fixture(scope="session")
def display_name(module, name):
    """What messages for people call the device."""
    return getattr(module, "display_name", name)


@pytest.fixture
def device(name):
    return torch.device(f"{name}:0")


@pytest.fixture
def other(name):
    """A second device; a test that gets it in its course is skipped where there is none."""
    if reason := lacking(name, "devices"):
        pytest.skip(reason)
    return torch.device(f"{name}:1")


@pytest.fixture
def beyond(module):
    """The index of the first device that does not exist."""
    return module.device_count()


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


@pytest.fixture(scope="session")
def world_size(request):
    return request.config.getoption("--world-size")


@pytest.fixture(scope="module")
def ranks(name, world_size, tmp_path_factory):
    """Processes with a group, for the programs of a module of tests."""
    with Ranks(name, world_size, tmp_path_factory.mktemp("ranks")) as processes:
        yield processes


@pytest.fixture(scope="module")
def starter(name, world_size, tmp_path_factory):
    made = Starter(name, world_size, tmp_path_factory.mktemp("groups"))
    yield made
    made.end()


@pytest.fixture
def ends(starter):
    """Runs a program, each rank of which ends with a status; the last rank may have its own."""

    def run(program, *arguments, status=0, last=None, **options):
        statuses, shown = starter(program, *arguments, **options)
        expected = [status] * len(statuses)
        if last is not None:
            expected[-1] = last
        assert statuses == expected, shown
        return shown

    return run


@pytest.fixture(autouse=True)
def on_the_first_device(module):
    module.set_device(0)
    yield
    module.set_device(0)
