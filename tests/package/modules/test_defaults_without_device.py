# SPDX-License-Identifier: Apache-2.0
"""What PyTorch uses by default: in programs that do not use the device, as without the package."""

from __future__ import annotations

import types
import warnings
from typing import Any

import pytest
import torch
from package_without_library import Package


def have(monkeypatch: pytest.MonkeyPatch, *kinds: str) -> None:
    """Makes this a machine with these accelerators."""
    for kind in ("cuda", "xpu", "mps", "mtia"):
        there = kind in kinds
        monkeypatch.setattr(getattr(torch, kind), "is_available", lambda there=there: there)


OTHERS = {(): "cpu", ("mps",): "mps", ("xpu", "cuda"): "cuda", ("mtia", "xpu"): "xpu"}


def test_other_accelerator(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {}
    for kinds in OTHERS:
        have(monkeypatch, *kinds)
        chosen[kinds] = package.defaults.other_accelerator().type
    assert chosen == OTHERS


def c10d(**groups: str) -> Any:
    """torch.distributed.distributed_c10d with these process groups; none takes "undefined"."""

    class BackendConfig:
        def __init__(self, backend: str) -> None:
            if backend == "undefined":
                raise ValueError("no process group for foo")
            self.backend = backend

    known = {"cpu": "gloo", "cuda": "nccl", **groups}
    backend = types.SimpleNamespace(default_device_backend_map=known, UNDEFINED="undefined")
    return types.SimpleNamespace(BackendConfig=BackendConfig, Backend=backend)


@pytest.mark.parametrize(
    ("kinds", "group"), [((), "cpu:gloo"), (("cuda",), "cuda:nccl"), (("mtia",), "cpu:gloo")]
)
def test_process_groups_of_others(
    package: Package, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...], group: str
) -> None:
    have(monkeypatch, *kinds)
    module = c10d()
    package.defaults.patch_process_groups(module)
    assert module.BackendConfig("undefined").backend == group
    assert module.BackendConfig("mpi").backend == "mpi"


def test_a_process_group_of_the_device(package: Package) -> None:
    module = c10d(foo="rings")
    package.defaults.patch_process_groups(module)
    with pytest.raises(ValueError, match="no process group for foo"):
        module.BackendConfig("undefined")


@pytest.mark.parametrize(
    ("asked", "in_use", "groups", "chosen"),
    [
        ("foo", False, {}, "cpu"),
        ("foo", True, {}, "foo"),
        ("foo", False, {"foo": "rings"}, "foo"),
        ("foo", False, {"foo": "fooccl"}, "cpu"),
        ("foo", True, {"foo": "fooccl"}, "foo"),
        ("meta", False, {}, "meta"),
    ],
)
def test_meshes(
    package: Package, monkeypatch: pytest.MonkeyPatch, asked: str, in_use: bool,
    groups: dict[str, str], chosen: str,
) -> None:  # fmt: skip
    have(monkeypatch)
    package.library.answers["is_in_use"] = in_use
    distributed = package.defaults.importlib.import_module("torch.distributed.distributed_c10d")
    monkeypatch.setattr(distributed.Backend, "default_device_backend_map", groups)
    module = types.SimpleNamespace(init_device_mesh=lambda kind, *shape: (kind, *shape))
    package.defaults.patch_device_meshes(module)
    assert module.init_device_mesh(asked, (2,)) == (chosen, (2,))


def test_data_parallel(package: Package) -> None:
    found: list[str | None] = ["foo", "cuda", None]
    module = types.SimpleNamespace(_get_available_device_type=lambda: found.pop())
    package.defaults.patch_data_parallel(module)
    assert [module._get_available_device_type() for _ in range(3)] == [None, "cuda", None]


def test_a_broken_backend_is_not_in_use(package: Package) -> None:
    package.device._failure = ImportError("torn apart")
    module = types.SimpleNamespace(_is_privateuse1_backend_available=lambda: True)
    package.defaults.patch_fake_tensors(module)
    assert not module._is_privateuse1_backend_available()
    assert package.library.calls == []


@pytest.mark.parametrize(("current", "count"), [("foo", 2), ("cuda", 7)])
def test_count_of_the_accelerator(package: Package, current: str, count: int) -> None:
    package.name_device()
    module = types.SimpleNamespace(
        device_count=lambda: 7, current_accelerator=lambda: torch.device(current)
    )
    package.defaults.patch_accelerator(module)
    assert module.device_count() == count
    newer = types.SimpleNamespace(device_count=None, device_index=None)
    package.defaults.patch_accelerator(newer)
    assert newer.device_count is None


@pytest.mark.parametrize(("default", "quiet"), [(None, True), ("cuda", False)])
def test_warning_of_fork_rng(package: Package, default: str | None, quiet: bool) -> None:
    def fork_rng(devices: object = None, device_type: str | None = default) -> None:
        """Its default is None in releases that take the accelerator."""

    module = types.SimpleNamespace(fork_rng=fork_rng, _fork_rng_warned_already=False)
    package.defaults.patch_fork_rng(module)
    assert module._fork_rng_warned_already == quiet


def test_devices_of_fork_rng(package: Package) -> None:
    """Those of the device are the device's, where their type is not given and CUDA's otherwise."""
    package.name_device()
    name = package.defaults._NAME
    ours, taken = torch.device(name, 0), []

    def fork_rng(devices: object = None, enabled: bool = True, device_type: str = "cuda") -> None:
        taken.append(device_type)

    module = types.SimpleNamespace(fork_rng=fork_rng, _fork_rng_warned_already=False)
    package.defaults.patch_fork_rng(module)
    module.fork_rng([ours])
    module.fork_rng(devices={ours})
    module.fork_rng([0])
    module.fork_rng()
    module.fork_rng([ours, torch.device("cuda", 0)])
    module.fork_rng([ours], device_type="cpu")
    assert taken == [name, name, "cuda", "cuda", "cuda", "cpu"]


@pytest.mark.parametrize(("count", "recorded"), [(0, {"CPU"}), (1, {"CPU", "PrivateUse1"})])
def test_recorded_activities(package: Package, count: int, recorded: set[str]) -> None:
    package.library.answers["device_count"] = count
    module = types.SimpleNamespace(
        _supported_activities=lambda: {"CPU", "PrivateUse1"},
        ProfilerActivity=types.SimpleNamespace(PrivateUse1="PrivateUse1"),
    )
    package.defaults.patch_profiler_activities(module)
    assert module._supported_activities() == recorded


@pytest.mark.parametrize(
    ("pinned", "place", "pins"),
    [(False, None, False), (False, "foo:1", False), (False, "cuda", True), (True, None, True)],
)
def test_loader_without_pinned_memory(
    package: Package, pinned: bool, place: str | None, pins: bool
) -> None:
    class Iter:
        def __init__(self, place: str | None) -> None:
            self._pin_memory, self._pin_memory_device = True, place

    package.set_constants(DISPLAY_NAME="Foo Accelerator")
    package.library.answers["capabilities"] = (["pinned_memory"], [pinned], ["allocate_host()"])
    package.defaults.patch_data_loader(types.SimpleNamespace(_BaseDataLoaderIter=Iter))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert Iter(place)._pin_memory == pins
    named = ["Foo Accelerator" in str(warning.message) for warning in caught]
    assert named == [True] * (not pins)


@pytest.mark.parametrize("count", [0, 1])
def test_benchmark_timer(package: Package, count: int) -> None:
    package.library.answers["device_count"] = count
    module = types.SimpleNamespace(privateuse1_device_handler="handler")
    package.defaults.patch_timer(module)
    assert module.privateuse1_device_handler == ("handler" if count else None)
