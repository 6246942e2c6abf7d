# SPDX-License-Identifier: Apache-2.0
"""What copies between host and device cost, beside memcpy; `memory.py` runs it."""

import ctypes
import statistics
import time

import torch

torch.set_num_threads(1)
TURNS = 15


def copy(target: torch.Tensor, source: torch.Tensor) -> None:
    target.copy_(source)


def memcpy(target: torch.Tensor, source: torch.Tensor) -> None:
    ctypes.memmove(target.data_ptr(), source.data_ptr(), source.nbytes)


def taken(work, target: torch.Tensor, source: torch.Tensor, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        work(target, source)
    return (time.perf_counter() - start) / count


def main() -> None:
    for size, count in ((256 << 20, 1), (1 << 20, 20), (4096, 200), (4, 200)):
        host = torch.ones(size, dtype=torch.uint8)
        other = torch.ones_like(host)
        pinned = host.pin_memory()
        there = host.to("foo")
        cases = {
            "memcpy": (memcpy, other, host),
            "there": (copy, there, host),
            "back": (copy, other, there),
            "pinned": (copy, there, pinned),
        }
        times: dict[str, list[float]] = {name: [] for name in cases}
        for turn in range(TURNS + 1):
            for name, case in cases.items():
                value = taken(*case, count)
                if turn:  # the first one touches memory that nobody had
                    times[name].append(value)
        print(size, *(statistics.median(each) for each in times.values()))


if __name__ == "__main__":
    main()
