# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Lets backward passes of several threads run at the same time.

PyTorch runs backward passes on a device in one thread per device, which all threads of the program
share. That thread takes the ready operation with the highest number first, and each thread of the
program numbers its own operations. So the thread that has done the most is served first and gets
further ahead. On the CPU, each thread runs its own backward pass. With this module, a backward pass
does that too while another one runs in the device threads, as if the program had switched off
PyTorch's multithreading for its thread.
"""

import threading
from typing import Any

import torch


class Engine(torch._C._ImperativeEngine):
    """A replacement for PyTorch's engine, for `torch.autograd` to call."""

    def __init__(self, pytorch: Any) -> None:
        self.pytorch = pytorch
        self._threads_of_devices = threading.Lock()  # held while a backward pass runs in them

    def run_backward(self, *arguments: Any, **options: Any) -> Any:
        if not torch.autograd.is_multithreading_enabled():
            return self.pytorch.run_backward(*arguments, **options)
        if self._threads_of_devices.acquire(blocking=False):
            try:
                return self.pytorch.run_backward(*arguments, **options)
            finally:
                self._threads_of_devices.release()
        with torch.autograd.set_multithreading_enabled(False):
            return self.pytorch.run_backward(*arguments, **options)


def install() -> None:
    """Makes `torch.autograd` call an `Engine`. Does nothing if it already does."""
    engine = torch.autograd.Variable._execution_engine
    if not hasattr(engine, "pytorch"):  # also if this module is imported again
        torch.autograd.Variable._execution_engine = Engine(engine)
