# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The memory of the device, like `torch.cuda.memory`.

Values are bytes or counts. In a process that has not used the device, statistics are empty or 0:
reading them does not start the device.
"""

import importlib
import pickle
from collections.abc import Iterator
from typing import Any, Optional, Union

import torch

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_device = importlib.import_module("._device", __package__)

__all__ = [
    "OutOfMemoryError",
    "empty_cache",
    "get_per_process_memory_fraction",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

OutOfMemoryError = torch.OutOfMemoryError  # programs catch it by this name

_Device = Union[int, str, torch.device, None]
_Rows = Iterator[tuple[int, ...]]


def empty_cache() -> None:
    """Returns memory that no tensor uses to the driver. Does nothing if there is no device."""
    if _device.is_available():
        _device._library().empty_cache()


def memory_stats(device: _Device = None) -> dict[str, int]:
    """Statistics of a device's allocator, with the names of `torch.cuda.memory_stats`.

    A name such as `"allocated_bytes.all.peak"` has three parts: allocation, segment, active,
    inactive_split, allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes or
    requested_bytes; all, small_pool or large_pool; current, peak, allocated or freed.
    """
    if not _device.is_initialized():
        return {}
    names, figures = _device._library().memory_stats(_device._index(device))
    return dict(sorted(zip(names, figures)))


def memory_stats_as_nested_dict(device: _Device = None) -> dict[str, Any]:
    """The values of `memory_stats` in nested dictionaries, by the parts of their names."""
    nested: dict[str, Any] = {}
    for name, figure in memory_stats(device).items():
        *above, last = name.split(".")
        inner = nested
        for part in above:
            inner = inner.setdefault(part, {})
        inner[last] = figure
    return nested


def memory_allocated(device: _Device = None) -> int:
    """The bytes allocated to tensors."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: _Device = None) -> int:
    """The most bytes allocated to tensors, since the start or `reset_peak_memory_stats`."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: _Device = None) -> int:
    """The bytes that the allocator holds from the driver."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: _Device = None) -> int:
    """The most bytes held from the driver, since the start or `reset_peak_memory_stats`."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: _Device = None) -> None:
    """Sets each peak to the current value. Does nothing before a device is used."""
    if _device.is_initialized():
        _device._library().reset_peak_memory_stats(_device._index(device))


def reset_accumulated_memory_stats(device: _Device = None) -> None:
    """Resets the counts of what is allocated and freed. Does nothing before a device is used."""
    if _device.is_initialized():
        _device._library().reset_accumulated_memory_stats(_device._index(device))


def mem_get_info(device: _Device = None) -> tuple[int, int]:
    """The free and total bytes of a device, for all processes together.

    Raises like `init`, and NotImplementedError if the runtime does not report them.
    """
    index = _device._index(device)
    free_and_total: tuple[int, int] = _device._library().memory_info(index)
    return free_and_total


def set_per_process_memory_fraction(fraction: float, device: _Device = None) -> None:
    """Limits this process to a fraction, from 0 to 1, of a device's memory.

    Allocating more raises `torch.OutOfMemoryError`. Raises like `mem_get_info`, and a ValueError
    for an invalid fraction.
    """
    index = _device._index(device)
    _device._library().set_memory_fraction(index, fraction)


def get_per_process_memory_fraction(device: _Device = None) -> float:
    """The fraction of a device's memory that this process may use; raises like `init`."""
    index = _device._index(device)
    fraction: float = _device._library().memory_fraction(index)
    return fraction


def memory_snapshot(device: _Device = None) -> list[dict[str, Any]]:
    """The segments of one or all devices and their blocks, like `torch.cuda.memory_snapshot`."""
    count = _device.device_count() if _device.is_initialized() else 0
    chosen = range(count) if device is None else [_device._index(device)]
    return [segment for index in chosen for segment in _segments(index)]


def _segments(device: int) -> Iterator[dict[str, Any]]:
    heads, parts = _device._library().memory_snapshot(device)
    blocks = _rows(parts, 4)
    for address, size, stream, small, count in _rows(heads, 5):
        segment: dict[str, Any] = {
            "device": device,
            "address": address,
            "total_size": size,
            "allocated_size": 0,
            "active_size": 0,
            "requested_size": 0,
            "stream": stream,
            "segment_type": "small" if small else "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": [],
        }
        for _ in range(count):
            size, requested, allocated, active = next(blocks)
            state = "active_allocated" if allocated else "active_awaiting_free"
            segment["blocks"].append(
                {
                    "address": address,
                    "size": size,
                    "requested_size": requested,
                    "state": state if active else "inactive",
                    "frames": [],
                }
            )
            segment["allocated_size"] += size if allocated else 0
            segment["active_size"] += size if active else 0
            segment["requested_size"] += requested
            address += size
        yield segment


def _rows(flat: list[int], width: int) -> _Rows:
    return iter([tuple(flat[at : at + width]) for at in range(0, len(flat), width)])


def _record_memory_history(
    enabled: Optional[str] = "all",
    context: Optional[str] = "all",
    stacks: str = "all",
    max_entries: int = 100_000,
    device: _Device = None,
    clear_history: bool = False,
) -> None:
    """Records the latest memory events of all devices for `_snapshot`; None stops recording.

    `clear_history` forgets earlier events. Stacks are never recorded, whatever `context` and
    `stacks` are. As in `torch.cuda`, `device` does not limit the recording to one device.
    """
    for index in range(_device.device_count()):
        if clear_history:
            _device._library().record_memory_history(index, 0)
        _device._library().record_memory_history(index, max_entries if enabled else 0)


def _event(action: str, row: tuple[int, ...]) -> dict[str, Any]:
    first = "device_free" if action == "oom" else "addr"
    return {"action": action, **dict(zip((first, "size", "stream", "time_us"), row)), "frames": []}


def _snapshot(device: _Device = None) -> dict[str, Any]:
    """What `torch.cuda.memory._snapshot` returns for CUDA, for PyTorch's memory viewer."""
    traces = []
    for index in range(_device.device_count()):
        actions, rows = _device._library().memory_history(index)
        traces.append([_event(*event) for event in zip(actions, _rows(rows, 4))])
    return {"segments": memory_snapshot(device), "device_traces": traces, "allocator_settings": {}}


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Writes `_snapshot()` to a file that https://pytorch.org/memory_viz reads."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


def memory_summary(device: _Device = None, abbreviated: bool = False) -> str:
    """A table of `memory_stats`; `abbreviated` leaves out the pools."""
    if not _device.is_initialized():
        return ""
    index = _device._index(device)
    stats = memory_stats_as_nested_dict(index)
    title = f"{_device._NAME}:{index}, {stats['num_ooms']} times out of memory"
    lines = [f"{title}, {stats['num_alloc_retries']} times the cache was freed"]
    table: list[tuple[str, ...]] = [("", "current", "peak", "allocated", "freed")]
    pools = ("all",) if abbreviated else ("all", "large_pool", "small_pool")
    for name, figures in stats.items():
        if not isinstance(figures, dict):
            continue
        readable = _readable if name.endswith("_bytes") else "{:,}".format
        for pool in pools:
            label = name.replace("_", " ") if pool == "all" else "  " + pool.replace("_", " ")
            table.append((label, *(readable(figures[pool][column]) for column in table[0][1:])))
    widths = [max(map(len, column)) for column in zip(*table)]
    for label, *cells in table:
        right = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[1:]))
        lines.append(f"{label.ljust(widths[0])}  {right}")
    return "\n".join(lines)


def _readable(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.2f} {unit}"
        amount /= 1024
    return f"{amount:.2f} TiB"
