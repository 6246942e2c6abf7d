# SPDX-License-Identifier: Apache-2.0
# BackendKit has this file; every backend's package has a copy, which builds replace.
"""Backward passes of several threads, none of which waits for that of another one.

PyTorch runs what backward does on a device in a thread of that device, which all threads of the
program share. Of what is ready there, that thread takes the operation with the highest number
first, and each thread of the program numbers its own operations: the thread that has done the most
is served first, and gets further ahead. On the CPU each thread runs its own backward. So it does
here while another one's backward runs in the threads of the devices, as where a program switches
PyTorch's multithreading off for its thread.
"""

import threading
from typing import Any

import torch


class Engine(torch._C._ImperativeEngine):
    """PyTorch's engine, as `torch.autograd` calls it."""

    def __init__(self, pytorch: Any) -> None:
        self.pytorch = pytorch
        self._threads_of_devices = threading.Lock()  # held during a backward that runs in them

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
    """Has `torch.autograd` call an `Engine`. Does nothing where that is so."""
    engine = torch.autograd.Variable._execution_engine
    if not hasattr(engine, "pytorch"):  # where this is imported anew, that of the first import
        torch.autograd.Variable._execution_engine = Engine(engine)
