# SPDX-License-Identifier: Apache-2.0
"""Figures of the memory, which the library returns as flat lists."""

from __future__ import annotations

import pytest
from package_without_library import Package

POOLS = ("all", "large_pool", "small_pool")
COLUMNS = ("current", "peak", "allocated", "freed")


def give_stats(package: Package) -> None:
    stats = {f"allocation.{pool}.{column}": 1234 for pool in POOLS for column in COLUMNS}
    stats.update({f"allocated_bytes.{pool}.{column}": 512 for pool in POOLS for column in COLUMNS})
    stats.update({"allocated_bytes.all.peak": 3 << 20, "num_ooms": 2, "num_alloc_retries": 1})
    package.library.answers["memory_stats"] = (list(stats), list(stats.values()))


def test_stats_are_empty_before_the_first_use(package: Package) -> None:
    give_stats(package)
    assert package.device.memory_stats() == {}
    assert package.device.memory_summary() == ""
    assert package.device.memory_allocated() == 0
    assert package.device.memory_snapshot() == []
    package.device.reset_peak_memory_stats()
    assert package.library.calls == []


def test_stats(package: Package) -> None:
    give_stats(package)
    package.device.init()
    stats = package.device.memory_stats()
    assert list(stats) == sorted(stats)
    assert package.device.max_memory_allocated() == 3 << 20
    assert package.device.memory_reserved() == 0
    nested = package.device.memory_stats_as_nested_dict()
    assert nested["num_ooms"] == 2
    assert nested["allocated_bytes"]["all"]["peak"] == 3 << 20


@pytest.mark.parametrize(("abbreviated", "rows"), [(True, 2), (False, 6)])
def test_summary(package: Package, abbreviated: bool, rows: int) -> None:
    give_stats(package)
    package.device.init()
    text = package.device.memory_summary(1, abbreviated=abbreviated)
    title, head, *table = text.splitlines()
    assert title.startswith("foo:1, 2 times")
    assert head.split() == list(COLUMNS)
    assert len(table) == rows
    assert len({len(line) for line in [head, *table]}) == 1
    assert table[0].split() == "allocated bytes 512 B 3.00 MiB 512 B 512 B".split()
    assert table[rows // 2].split() == ["allocation", *["1,234"] * 4]


SIZES = {
    0: "0 B",
    1023: "1023 B",
    1024: "1.00 KiB",
    5 << 19: "2.50 MiB",
    1 << 30: "1.00 GiB",
    1 << 50: "1024.00 TiB",
}


def test_readable_sizes(package: Package) -> None:
    assert {size: package.memory._readable(size) for size in SIZES} == SIZES


#: Two segments of device 0: their address, size, stream, pool and number of blocks; and the
#: blocks' sizes, requested sizes, and whether they are allocated and active.
SEGMENTS = [1000, 300, 0, 1, 2, 5000, 64, 7, 0, 1]
BLOCKS = [100, 90, 1, 1, 200, 0, 0, 0, 64, 60, 0, 1]


def test_snapshot(package: Package) -> None:
    package.library.answers["memory_snapshot"] = lambda index: (
        ([], []) if index else (SEGMENTS, BLOCKS)
    )
    package.device.init()
    first, second = package.device.memory_snapshot()
    blocks = [(one["address"], one["size"], one["state"]) for one in first["blocks"]]
    assert blocks == [(1000, 100, "active_allocated"), (1100, 200, "inactive")]
    sums = [first[f"{kind}_size"] for kind in ("total", "allocated", "active", "requested")]
    assert sums == [300, 100, 100, 90]
    assert (first["segment_type"], second["segment_type"]) == ("small", "large")
    assert (second["stream"], second["allocated_size"], second["active_size"]) == (7, 0, 64)
    assert [one["state"] for one in second["blocks"]] == ["active_awaiting_free"]
    assert package.device.memory_snapshot(1) == []


def test_history(package: Package) -> None:
    rows = [4096, 100, 0, 5, 1 << 20, 200, 3, 6]
    package.library.answers.update(
        memory_history=lambda index: ([], []) if index else (["alloc", "oom"], rows),
        memory_snapshot=([], []),
    )
    first, second = package.memory._snapshot()["device_traces"]
    alloc = {"action": "alloc", "addr": 4096, "size": 100, "stream": 0, "time_us": 5, "frames": []}
    oom = {"action": "oom", "device_free": 1 << 20, "size": 200, "stream": 3, "time_us": 6}
    assert (first, second) == ([alloc, {**oom, "frames": []}], [])


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ({}, [100_000, 100_000]),
        ({"max_entries": 5, "clear_history": True}, [0, 5, 0, 5]),
        ({"enabled": None, "max_entries": 5}, [0, 0]),
    ],
)
def test_recording(package: Package, options: dict[str, object], limits: list[int]) -> None:
    package.memory._record_memory_history(**options)
    calls = [call for call in package.library.calls if call[0] == "record_memory_history"]
    assert [call[2] for call in calls] == limits
    assert {call[1] for call in calls} == {0, 1}
