# SPDX-License-Identifier: Apache-2.0
"""A backend that could not be loaded gives its place back to the machine's other accelerator.

Tests with a broken library see only machines without one; here CUDA is a stand-in.
"""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from package_without_library import Package

CAUSE = "`foo` is not available: torn apart"


def fail(package: Package, other: str | None) -> list[Any]:
    """Gives the place back to CUDA, whose calls are returned, or to nothing."""
    package.name_device()
    package.device._failure = ImportError("torn apart")
    calls: list[Any] = []

    def call(name: str, result: object = None) -> Any:
        return lambda *arguments: calls.append((name, *arguments)) or result

    cuda: Any = types.SimpleNamespace(
        device_count=call("device_count", 3),
        set_device=call("set_device"),
        set_stream=call("set_stream"),
        init=call("init"),
        default_generators=["generator 0", "generator 1"],
        is_initialized=lambda: bool(calls),
    )
    torch.get_device_module = lambda device=None: cuda
    for name in ("_accelerator_deviceCount", "_accelerator_getDefaultGenerator"):
        setattr(torch._C, name, None)  # not every release has them
    place = None if other is None else torch.device(other)
    package.not_loaded.install({"_get_accelerator": place or torch.device("cpu"),
                            "_accelerator_getAccelerator": place})  # fmt: skip
    return calls


def test_the_place_is_given_to_the_other_accelerator(package: Package) -> None:
    calls = fail(package, "cuda")
    assert torch._C._get_accelerator() == torch.device("cuda")
    assert torch._C._accelerator_getAccelerator() == torch.device("cuda")
    assert torch._C._accelerator_deviceCount() == 3
    torch._C._accelerator_setDeviceIndex(1)
    assert calls == [("device_count",), ("set_device", 1)]


def test_the_other_accelerator_is_started_where_it_must_be(package: Package) -> None:
    calls = fail(package, "cuda")
    torch._C._accelerator_setStream("a stream")
    assert calls == [("init",), ("set_stream", "a stream")]
    assert torch._C._accelerator_getDefaultGenerator(1) == "generator 1"


def test_what_the_other_accelerator_lacks(package: Package) -> None:
    fail(package, "cuda")
    with pytest.raises(RuntimeError, match="cuda.*torn apart"):
        torch._C._accelerator_synchronizeDevice(0)


def test_there_is_no_other_accelerator(package: Package) -> None:
    fail(package, None)
    assert torch._C._get_accelerator() == torch.device("cpu")
    assert torch._C._accelerator_getAccelerator() is None
    assert torch._C._accelerator_deviceCount() == 0
    for use in (
        lambda: torch._C._accelerator_setDeviceIndex(0),
        lambda: torch.ones(1).pin_memory(),
        lambda: torch.Stream(0),
    ):
        with pytest.raises(RuntimeError, match="when none is available"):
            use()
    assert not torch.ones(1).is_pinned()


def test_an_error_instead_of_an_accelerator(package: Package) -> None:
    """PyTorch raises one where it finds two; each program gets one of its own."""
    package.device._failure = ImportError("torn apart")
    package.not_loaded.install({"_get_accelerator": RuntimeError("two of them")})
    caught = []
    for _ in range(2):
        with pytest.raises(RuntimeError, match="two of them") as error:
            torch._C._get_accelerator()
        caught.append(error.value)
    assert caught[0] is not caught[1]


def test_memory_is_pinned_for_the_other_accelerator(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = fail(package, "cuda")
    aten = types.SimpleNamespace(
        is_pinned=lambda tensor, device: device.type == "cuda" and tensor.numel() > 1,
        _pin_memory=lambda tensor, device: f"pinned for {device}",
    )
    monkeypatch.setattr(torch.ops, "aten", aten, raising=False)
    one, two = torch.ones(1), torch.ones(2)
    assert not two.is_pinned()  # nothing is while CUDA has not started
    calls.append("started")
    assert (one.is_pinned(), two.is_pinned()) == (False, True)
    assert one.pin_memory() == "pinned for cuda"
    assert two.pin_memory() is two


def test_uses_of_the_device_name_the_cause(package: Package) -> None:
    fail(package, "cuda")
    for use in (
        lambda: torch.Generator("foo"),
        lambda: torch.Generator(device=torch.device("foo", 1)),
        lambda: torch.Event("foo:0"),
        lambda: torch.ones(1, device="foo"),
    ):
        with pytest.raises(RuntimeError, match=CAUSE):
            use()


def test_classes_that_are_called_stay_what_they_were(package: Package) -> None:
    generator, stream = torch.Generator, torch.Stream
    fail(package, None)
    assert torch.Generator is not generator
    assert isinstance(generator(), torch.Generator)
    assert type(torch.Generator()) is generator
    assert torch.Generator().device == torch.device("cpu")
    assert issubclass(stream, torch.Stream)
    assert not isinstance(generator(), torch.Stream)

    class Ours(torch.Generator):
        pass

    assert isinstance(Ours(), Ours)
    assert not isinstance(generator(), Ours)
