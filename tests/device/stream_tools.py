# SPDX-License-Identifier: Apache-2.0
"""What tests of streams share."""

import contextlib
import threading

import pytest
import torch

needs_current_streams = pytest.mark.skipif(
    not hasattr(torch, "accelerator"),
    reason="before PyTorch 2.6 torch has no way to make a stream the current one",
)


@contextlib.contextmanager
def on(stream):
    """As `with stream:`, which streams can do since PyTorch 2.7."""
    device, before = torch.accelerator.current_device_index(), current(stream.device)
    torch.accelerator.set_device_index(stream.device.index)
    torch.accelerator.set_stream(stream)
    try:
        yield stream
    finally:
        torch.accelerator.set_stream(before)
        torch.accelerator.set_device_index(device)


def current(device):
    return torch.accelerator.current_stream(device)


class Work:
    """Copies within a device, which take a stream some milliseconds, on memory made beforehand."""

    def __init__(self, device, times=40):
        self.times = times
        self.source = torch.zeros(1 << 20, device=device)
        self.target = torch.zeros(1 << 20, device=device)
        torch.accelerator.synchronize(device)

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
