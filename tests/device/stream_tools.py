# SPDX-License-Identifier: Apache-2.0
"""What tests of streams share."""

import contextlib
import functools
import threading
import time

import torch

PRIVATE_USE_ONE = 20


def operators(device):
    """Those of the backend's library, for releases without torch.accelerator."""
    package = getattr(torch, device.type).__name__.partition(".")[0]
    return getattr(torch.ops, f"_{package}")


def current(device):
    if hasattr(torch, "accelerator"):
        return torch.accelerator.current_stream(device)
    number = operators(device).current_stream(device.index)
    return torch.Stream(stream_id=number, device_index=device.index, device_type=PRIVATE_USE_ONE)


def set_current(stream):
    if hasattr(torch, "accelerator"):
        torch.accelerator.set_stream(stream)
    else:
        operators(stream.device).exchange_stream(stream.device.index, stream.stream_id)


@contextlib.contextmanager
def on(stream):
    """As `with stream:`, which streams cannot do in every release."""
    module = getattr(torch, stream.device.type)
    before = current(stream.device)
    with module.device(stream.device):
        set_current(stream)
        try:
            yield stream
        finally:
            set_current(before)


@functools.cache
def size_of_work(name):
    """Elements of float32 that a device takes about half a millisecond or more to copy.

    By the fastest of three: other programs may take the processor away in one.
    """
    elements = 1 << 20
    while elements < 1 << 28:
        source, target = (torch.zeros(elements, device=f"{name}:0") for _ in range(2))
        if min(_seconds_of_copies(name, source, target) for _ in range(3)) > 0.004:
            break
        elements *= 2
    return elements


def _seconds_of_copies(name, source, target, count=10):
    getattr(torch, name).synchronize()
    begun = time.perf_counter()
    for _ in range(count):
        target.copy_(source)
    getattr(torch, name).synchronize()
    return time.perf_counter() - begun


class Work:
    """Copies within a device, on memory made beforehand, that keep a stream busy for long."""

    def __init__(self, device, times=150):
        self.times = times
        self.source, self.target = (
            torch.zeros(size_of_work(device.type), device=device) for _ in range(2)
        )
        getattr(torch, device.type).synchronize(device)

    def __call__(self, stream):
        with on(stream):
            for _ in range(self.times):
                self.target.copy_(self.source)


def in_threads(function, count=8):
    """Calls `function(number)` in threads that begin together; raises what one of them raised."""
    barrier, errors = threading.Barrier(count), []

    def run(number):
        try:
            barrier.wait()
            function(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
