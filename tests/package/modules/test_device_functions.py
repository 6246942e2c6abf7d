# SPDX-License-Identifier: Apache-2.0
"""The logic of `torch.foo` and its parts: what they ask of the library and make of it."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from package_without_library import Package


class Number:
    """An integer that is not an `int`, as NumPy has them."""

    def __index__(self) -> int:
        return 1


INDICES = {
    "none": (lambda: None, 0),
    "a number": (lambda: 1, 1),
    "a number of another type": (Number, 1),
    "a name": (lambda: "foo:1", 1),
    "a name without an index": (lambda: "foo", 0),
    "a device": (lambda: torch.device("foo", 1), 1),
    "too high": (lambda: 2, "`foo:2`: the last one is `foo:1`"),
    "negative": (lambda: -1, "`foo:-1`"),
    "another type of device": (lambda: "cpu", "got `cpu`"),
    "a fraction": (lambda: 0.5, "got 0.5"),
}


def test_index(package: Package) -> None:
    package.name_device()
    for name, (make, expected) in INDICES.items():
        if isinstance(expected, int):
            assert package.device._index(make()) == expected, name
        else:
            with pytest.raises(ValueError, match=expected):
                package.device._index(make())


def test_the_driver_counts_its_devices_once(package: Package) -> None:
    assert [package.device.is_available() for _ in range(3)] == [True] * 3
    assert package.library.called("device_count") == 1


@pytest.mark.parametrize(
    ("said", "expected"), [("no card", "no card"), ("", "its driver finds no device")]
)
def test_no_device(package: Package, said: str, expected: str) -> None:
    package.library.answers.update(device_count=0, device_failure=said)
    assert not package.device.is_available()
    with pytest.raises(RuntimeError, match=f"`foo` is not available: {expected}"):
        package.device.init()
    assert not package.device.is_initialized()


def test_a_backend_that_was_not_loaded(package: Package) -> None:
    """Nothing asks its library; what needs a device names the cause."""
    device = package.device
    device._failure = cause = ImportError("torn apart")
    assert (device.device_count(), device.is_available(), device._is_in_bad_fork()) == (0,) * 3
    device.manual_seed(1)
    device.manual_seed_all(1)
    device.reset_fallback_report()
    device.empty_cache()
    assert device.get_amp_supported_dtype() == []
    assert str(device.fallback_report()) == "no operator fell back to the CPU"
    for use in (device.init, device.current_device, device.capabilities, device.seed):
        with pytest.raises(RuntimeError, match="`foo` is not available: torn apart") as caught:
            use()
        assert caught.value.__cause__ is cause
    assert package.library.calls == []


def test_calls_wait_for_the_first_use(package: Package) -> None:
    """Seeding all devices replaces the earlier seeds, and nothing else that waits."""
    made: list[str] = []
    package.device._lazy_call(lambda: made.append("a seed"), seed=True)
    package.device._lazy_call(lambda: made.append("something else"))
    package.device._lazy_call(lambda: made.append("seeds of all"), seed_all=True)
    package.device._lazy_call(lambda: made.append("a later seed"), seed=True)
    assert made == []
    package.device.init()
    package.device.init()
    assert made == ["something else", "seeds of all", "a later seed"]
    package.device._lazy_call(lambda: made.append("at once"), seed_all=True)
    assert made[3:] == ["at once"]


def test_a_forked_process(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks the library anew, once, and the message has the name for people."""
    package.set_constants(DISPLAY_NAME="Foo Accelerator")
    device = package.device
    device.init()
    package.library.answers["is_in_bad_fork"] = True
    assert device.is_initialized()
    monkeypatch.setattr(device.os, "getpid", lambda: -1)
    assert not device.is_initialized()
    with pytest.raises(RuntimeError) as caught:
        device.init()
    assert str(caught.value).count("Foo Accelerator") == 2
    assert package.library.called("is_in_bad_fork") == 1


def test_current_device(package: Package) -> None:
    """Contexts can be nested and entered again; a negative index and other devices do nothing."""
    device, library = package.device, package.library
    outer, on_cpu = device.device(1), device.device_of(torch.ones(1))
    with outer:
        with device.device(0), outer, device.device(-1), on_cpu:
            assert library.current == 1
        with outer:
            pass
        assert library.current == 1
    assert library.current == 0
    with pytest.raises(ZeroDivisionError), outer:
        1 / 0  # noqa: B018
    assert library.current == 0
    device.set_device(-1)
    assert (device._exchange_device(1), device._exchange_device(-1)) == (0, 1)


def test_autocast_registers_late(package: Package) -> None:
    """The question for dtypes is how `torch.autocast` starts; other questions start nothing."""
    package.set_constants(AMP_DTYPES=["bfloat16", "float16"])
    assert package.device.is_bf16_supported()
    assert package.library.calls == []
    for _ in range(2):
        assert package.device.get_amp_supported_dtype() == [torch.bfloat16, torch.float16]
    assert package.library.calls == [("register_late",)]


def test_capabilities(package: Package) -> None:
    package.set_constants(KERNEL_DTYPES=["float32", "int64"], FALLBACK="error")
    package.library.answers["capabilities"] = (["streams", "timing"], [1, 0], ["one()", "two()"])
    found = package.device.capabilities()
    assert found.runtime == {"streams": True, "timing": False}
    assert found.functions == {"streams": "one()", "timing": "two()"}
    assert [found.has(name) for name in ("streams", "timing", "flying")] == [True, False, False]
    assert (found.fallback, found.amp_dtypes) == ("error", [])
    assert found.kernel_dtypes == [torch.float32, torch.int64]


def test_properties(package: Package) -> None:
    answers = package.library.answers
    answers["properties"] = lambda index: (f"card {index}", 1 << 30, 4, 9, index)
    answers["can_access_peer"] = lambda one, other: int(one < other)
    assert package.device.get_device_name() == "card 0"
    assert package.device.get_device_capability(1) == (9, 1)
    assert package.device.get_device_properties(1).total_memory == 1 << 30
    assert package.device.can_device_access_peer(0, 1) is True
    assert package.device.can_device_access_peer(1, 0) is False


def test_public_names(package: Package) -> None:
    names = package.device.__all__
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if not hasattr(package.device, name)] == []


SEEDS = {
    0: 0,
    1 << 63: -(1 << 63),
    (1 << 64) - 1: -1,
    (1 << 63) - 1: (1 << 63) - 1,
    -(1 << 63): -(1 << 63),
}


def test_seeds(package: Package) -> None:
    """An operator takes a signed integer; PyTorch's seeds are both."""
    assert {seed: package.random._as_seed(seed) for seed in SEEDS} == SEEDS
    for seed in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(RuntimeError, match=str(seed)):
            package.device.manual_seed(seed)
    package.library.answers.update(initial_seed=-1, seed=-2)
    assert package.device.initial_seed() == (1 << 64) - 1
    assert package.device.seed_all() == (1 << 64) - 2
    seeded = [call for call in package.library.calls if call[0] == "manual_seed"]
    assert seeded == [("manual_seed", 0, -2), ("manual_seed", 1, -2)]


def test_default_generators(package: Package) -> None:
    package.library.answers["default_generator"] = lambda index: f"generator {index}"
    generators = package.device.default_generators
    assert (len(generators), package.device.is_initialized()) == (2, False)
    assert (generators[-1], generators[0]) == ("generator 1", "generator 0")
    assert generators[:5] == ("generator 0", "generator 1")
    with pytest.raises(IndexError):
        _ = generators[2]
    assert list(generators) == ["generator 0", "generator 1"]


def stream(number: int, index: int) -> Any:
    return types.SimpleNamespace(stream_id=number, device=torch.device("foo", index))


def test_current_stream(package: Package) -> None:
    """A context puts the stream of its device back, and the current device."""
    package.name_device()
    one, other = stream(5, 1), stream(6, 1)
    library, context = package.library, package.device.stream(one)
    with context as entered, package.device.stream(other), context, package.device.stream(None):
        assert entered is one
        assert (library.current, library.streams) == (1, [0, 5])
    assert (library.current, library.streams) == (0, [0, 0])
    package.device.set_stream(one)
    package.device.set_stream(None)
    assert (library.current, library.streams) == (1, [0, 5])


def test_events_between_processes(package: Package) -> None:
    package.set_constants(DISPLAY_NAME="Foo Accelerator")
    with pytest.raises(NotImplementedError, match="event of Foo Accelerator"):
        package.device.Event(interprocess=True)
    assert package.library.calls == []


def test_events_of_other_devices_are_not_ours(package: Package) -> None:
    class PyTorchs:
        device = torch.device("meta")

    package.streams.Event._base = PyTorchs
    assert not isinstance(PyTorchs(), package.device.Event)
    package.device._NAME = "meta"
    assert isinstance(PyTorchs(), package.device.Event)
    assert not isinstance(torch.ones(1, device="meta"), package.device.Event)
