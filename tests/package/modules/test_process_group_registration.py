# SPDX-License-Identifier: Apache-2.0
"""How `_distributed.py` registers the device's process group, with a stand-in for the library's."""

from __future__ import annotations

import datetime
import gc
import types
from typing import Any
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from package_without_library import Package
from torch.distributed import distributed_c10d as c10d

BOTH = "cpu:gloo,foo:fooccl"


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")


def attach(group: Any, timeout_ms: int) -> None:
    """Gives a group its own Gloo as the part for the device."""
    assert timeout_ms > 0
    made = c10d.ProcessGroup.unbox(group)
    gloo = made._get_backend(torch.device("cpu"))
    made._register_backend(torch.device("foo"), c10d.ProcessGroup.BackendType.CUSTOM, gloo)


def registered(package: Package) -> Any:
    """The module, with its process group registered; a test sets `is_in_use`."""
    package.name_device()
    vars(torch._C)["_get_accelerator"] = lambda: torch.device("foo")  # as the library's hooks say
    package.library.answers.update(attach_process_group=attach, is_in_use=False)
    module: Any = package.distributed
    module.register(c10d)
    package.defaults.patch_process_groups(c10d)
    return module


def start(*arguments: Any, **options: Any) -> Any:
    """The default group, of this process only."""
    dist.init_process_group(*arguments, store=dist.HashStore(), rank=0, world_size=1, **options)
    return c10d._get_default_group()


def config(group: Any) -> str:
    return str(c10d._world.pg_backend_config[group])


def parts(group: Any) -> set[str]:
    return {device.type for device in group._device_types}


def test_registration(package: Package) -> None:
    distributed = registered(package)
    assert distributed.is_registered()
    assert dist.get_default_backend_for_device("foo") == "fooccl"
    assert dist.Backend.default_device_backend_map["foo"] == "fooccl"
    assert not {"f", "o"} & set(dist.Backend.default_device_backend_map)
    assert dist.Backend.backend_capability["fooccl"] == ["foo"]


def test_without_a_process_group(package: Package) -> None:
    package.set_constants(DISTRIBUTED="")
    package.distributed.register(c10d)
    assert not package.distributed.is_registered()
    assert "foo" not in dist.Backend.default_device_backend_map


def test_a_library_without_a_process_group(package: Package) -> None:
    module = package.distributed
    module._device._ops = types.SimpleNamespace(is_in_use=lambda: False)
    module.register(c10d)
    assert not module.is_registered()


def test_the_vendors_process_group_stays(package: Package) -> None:
    package.name_device()
    dist.Backend.register_backend("rings", lambda *_: None, devices=["foo"])
    package.distributed.register(c10d)
    assert dist.get_default_backend_for_device("foo") == "rings"
    assert not package.distributed.is_registered()


def test_a_group_that_a_vendor_registers_later(package: Package) -> None:
    distributed = registered(package)
    dist.Backend.register_backend("rings", lambda *_: None, devices=["cpu"])
    assert distributed.is_registered()
    dist.Backend.register_backend("others", lambda *_: None, devices=["foo"])
    assert dist.get_default_backend_for_device("foo") == "others"
    assert not distributed.is_registered()
    assert distributed.default_config() is None
    assert "others" in str(c10d.BackendConfig("undefined"))


@pytest.mark.parametrize(("in_use", "made"), [(False, "cpu:gloo"), (True, BOTH)])
def test_default_group(package: Package, in_use: bool, made: str) -> None:
    registered(package)
    package.library.answers["is_in_use"] = in_use
    group = start()
    assert config(group) == made
    assert package.library.called("attach_process_group") == in_use
    assert parts(group) == ({"cpu", "foo"} if in_use else {"cpu"})
    assert config(dist.new_group([0])) == made
    assert c10d.BackendConfig("undefined").device_backend_map.keys() == parts(group)


def test_default_group_does_not_start_the_driver(package: Package) -> None:
    registered(package)
    start()
    names = {call[0] for call in package.library.calls}
    assert names <= {"await_use", "is_in_use", "is_in_bad_fork"}


@pytest.mark.parametrize(
    ("backend", "made"),
    [("fooccl", "foo:fooccl"), (BOTH, BOTH), ("gloo", None), ("cpu:gloo", "cpu:gloo")],
)
def test_named_group(package: Package, backend: str, made: str | None) -> None:
    registered(package)
    group = start(backend, timeout=datetime.timedelta(seconds=7))
    if made is not None:
        assert config(group) == made
    assert ("foo" in parts(group)) == ("fooccl" in backend)


def test_timeout(package: Package) -> None:
    registered(package)
    seen = []

    def note(group: Any, timeout_ms: int) -> None:
        seen.append(timeout_ms)
        attach(group, timeout_ms)

    package.library.answers["attach_process_group"] = note
    start("fooccl", timeout=datetime.timedelta(seconds=7))
    assert seen == [7000]


def test_default_backend_is_the_devices(package: Package) -> None:
    """Otherwise DistributedDataParallel, which asks the group for it, fails."""
    registered(package)
    package.library.answers["is_in_use"] = True
    group = start()
    assert group.name() == "custom"


def test_group_made_before_the_device_was_used(package: Package) -> None:
    distributed = registered(package)
    group = start()
    other = dist.new_group([0])
    assert parts(group) == parts(other) == {"cpu"}
    distributed.attach_late(other)
    assert (parts(group), parts(other)) == ({"cpu"}, {"cpu", "foo"})
    distributed.attach_late()
    assert parts(group) == {"cpu", "foo"}
    assert config(group) == config(other) == BOTH
    assert dist.get_backend() == BOTH
    assert package.library.called("attach_process_group") == 2
    distributed.attach_late()
    assert package.library.called("attach_process_group") == 2
    value = torch.ones(2)
    dist.all_reduce(value)
    assert value.tolist() == [1, 1]


def test_group_of_which_another_process_uses_the_device(package: Package) -> None:
    """All processes of a group must make the part for the device, or none."""
    distributed = registered(package)
    own = distributed._votes

    def votes_of_two(values: dict[str, Any]) -> Any:
        votes = own(values)
        assert votes.add("wanted", 0) == 0
        votes.add("wanted", 1)  # the other process
        return votes

    distributed._votes = votes_of_two
    assert parts(start()) == {"cpu", "foo"}


def test_an_operator_that_the_library_saw(package: Package) -> None:
    distributed = registered(package)
    group, other = start(), dist.new_group([0])
    distributed._use_group(other.boxed())
    assert (parts(group), parts(other)) == ({"cpu"}, {"cpu", "foo"})
    assert package.library.calls[-1] == ("await_use", 1)


def test_a_first_use_that_failed_is_told_again(package: Package) -> None:
    distributed = registered(package)
    group, other = start(), dist.new_group([0])
    package.library.answers["attach_process_group"] = mock.Mock(side_effect=RuntimeError("gone"))
    for _ in range(2):
        with pytest.raises(dist.DistBackendError, match="first operation"):
            distributed.attach_late()
    assert package.library.called("attach_process_group") == 1
    package.library.answers["attach_process_group"] = attach
    distributed.attach_late(other)
    assert (parts(group), parts(other)) == ({"cpu"}, {"cpu", "foo"})
    dist.destroy_process_group()
    del group
    gc.collect()
    assert not distributed._late


def test_destroyed_groups_get_no_part(package: Package) -> None:
    distributed = registered(package)
    start()
    dist.destroy_process_group()
    distributed.attach_late()
    assert package.library.called("attach_process_group") == 0


@pytest.mark.parametrize("kind", ["cpu", "foo"])
def test_mesh(package: Package, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mesh of the device makes a default group for it, also before the device is in use."""
    distributed = registered(package)
    process = {"MASTER_ADDR": "localhost", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}
    for name, value in process.items():
        monkeypatch.setenv(name, value)
    made = []

    class DeviceMesh:
        def __init__(self, device_type: str, mesh: object) -> None:
            made.append(config(start()))

    distributed.patch_meshes(types.SimpleNamespace(DeviceMesh=DeviceMesh))
    DeviceMesh(kind, [0])
    assert made == [BOTH if kind == "foo" else "cpu:gloo"]
    assert not distributed.wanted()


@pytest.mark.parametrize("backend", ["gloo", BOTH])
def test_monitored_barrier(package: Package, backend: str) -> None:
    registered(package)
    start(backend)
    dist.monitored_barrier()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=3), wait_all_ranks=True)


@pytest.mark.parametrize("backend", ["fooccl", BOTH])
def test_split_group(package: Package, backend: str) -> None:
    registered(package)
    parent = start(backend)
    made = dist.split_group(split_ranks=[[0]], group_desc="a half")
    assert made is not parent
    assert config(made) == config(parent)
    assert parts(made) == parts(parent)
    assert dist.split_group(parent, split_ranks=[[1]]) is None
    assert package.library.called("attach_process_group") == 2


def test_meshes_split_the_default_group(package: Package) -> None:
    from torch.distributed import device_mesh

    registered(package)
    assert device_mesh.split_group is c10d.split_group is dist.split_group


def test_detail(package: Package) -> None:
    registered(package)
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    group = start(BOTH)
    assert "Wrapper" in type(group._get_backend(torch.device("foo"))).__name__


def test_comm_hooks(package: Package) -> None:
    registered(package)
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.nn.parallel import distributed as parallel

    package.parallel.patch_data_parallel(parallel)
    asked = types.SimpleNamespace(device_type="foo", _log_and_throw=refuse)
    check = parallel.DistributedDataParallel._check_comm_hook
    for hook in (default_hooks.bf16_compress_hook, default_hooks.fp16_compress_hook):
        check(asked, hook)
    check(asked, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook))
    with pytest.raises(ValueError, match="annotation"):
        check(asked, wrongly_annotated)


def refuse(kind: type[Exception], text: str) -> None:
    raise kind(text)


def wrongly_annotated(state: object, bucket: int) -> None:
    """Not a hook: its bucket is none."""


@pytest.mark.parametrize(("in_use", "made"), [(True, 1), (False, 0)])
def test_sharded_parallel(package: Package, in_use: bool, made: int) -> None:
    registered(package)
    start()
    package.library.answers["is_in_use"] = in_use

    class FullyShardedDataParallel:
        def __init__(self, module: object, device_id: object = None) -> None:
            """Uses the default group."""

    module = types.SimpleNamespace(FullyShardedDataParallel=FullyShardedDataParallel)
    package.parallel.patch_sharded_parallel(module)
    FullyShardedDataParallel("model")
    assert package.library.called("attach_process_group") == made
    FullyShardedDataParallel("model", device_id=torch.device("foo", 1))
    assert package.library.called("attach_process_group") == 1


@pytest.mark.parametrize(("devices", "asked"), [(2, 0), (0, 1)])
def test_pinning(package: Package, devices: int, asked: int) -> None:
    registered(package)
    package.library.answers["device_count"] = devices
    calls = []
    module = types.SimpleNamespace(
        pin_memory=lambda *given: calls.append(given), unpin_memory=lambda *given: None
    )
    package.parallel.patch_pinning(module)
    module.pin_memory(0, 8)
    assert len(calls) == asked


def test_kernels_of_fully_shard(package: Package) -> None:
    registered(package)
    lib = torch.library.Library("fsdp", "FRAGMENT")
    lib.define("chunk_cat_of_test(Tensor x) -> Tensor")
    lib.impl("chunk_cat_of_test", lambda x: x, "CPU")
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    package.parallel.SHARDING = {"chunk_cat_of_test": "chunk_cat"}
    module = types.SimpleNamespace(lib=lib, chunk_cat=lambda x: x)
    package.parallel.add_sharding_kernels(module)
    assert has("fsdp::chunk_cat_of_test", "PrivateUse1")
    package.parallel.add_sharding_kernels(module)  # a second time does nothing


def test_end(package: Package) -> None:
    distributed = registered(package)
    distributed._end()
    assert package.library.called("end_process_groups") == 0
    start("fooccl")
    distributed._end()
    assert package.library.called("end_process_groups") == 1


def test_entry_point(package: Package) -> None:
    distributed = registered(package)
    distributed.register_entry()
    package.device._failure = ImportError("torn apart")
    with pytest.raises(RuntimeError, match="process group `fooccl`: torn apart"):
        distributed.register_entry()
