# SPDX-License-Identifier: Apache-2.0
"""Uses the device `ocl` while faulty_driver.c has the fault `argv[1]`, then without it.

Prints a line for each use: its name, and what it said or "worked". The second argument is
"mended", or "broken": then the process ends while the fault is there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import torch


def use(name: str, call: Callable[[], object], expected: object = None) -> None:
    try:
        result = call()
    except (RuntimeError, torch.OutOfMemoryError) as error:
        print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}")
    else:
        right = expected is None or result == expected
        print(f"{name}: {'worked' if right else repr(result)}")


def backward() -> None:
    torch.ones(4, device="ocl", requires_grad=True).sum().backward()


def main(fault: str, end: str) -> None:
    x, host = torch.arange(1000.0, device="ocl"), torch.ones(1000)
    known, elsewhere = x + 1, torch.ones(5, device="ocl:1")
    backward()
    stream, event, other = torch.ocl.Stream(), torch.ocl.Event(), torch.ocl.Event()
    other.record()
    torch.ocl.synchronize()
    os.environ["FAULTY_OPENCL"] = fault
    use("add", lambda: x.add(1) is None)
    use("first use of a kernel", lambda: x.exp() is None)
    use("synchronize", torch.ocl.synchronize)
    if fault == "later":
        os.environ["FAULTY_OPENCL"] = ""
    use("to the host", lambda: x.cpu()[3].item(), 3.0)
    use("to the device", lambda: host.to("ocl").shape, host.shape)
    use("item", lambda: x[3].item(), 3.0)
    use("fallback", lambda: torch.special.bessel_j0(x).shape, x.shape)
    use("from another device", lambda: elsewhere.to("ocl:0").shape, elsewhere.shape)
    use("record", event.record)
    use("wait", lambda: stream.wait_event(other))
    use("event", other.synchronize)
    use("stream", stream.synchronize)
    use("query", stream.query, True)
    use("much memory", lambda: torch.empty(64 << 20, device="ocl").shape[0], 64 << 20)
    use("pinned memory", lambda: torch.empty(1 << 24).pin_memory().shape[0], 1 << 24)
    use("backward", backward)
    del known
    use("empty_cache", torch.ocl.empty_cache)
    if end == "mended":
        os.environ["FAULTY_OPENCL"] = ""
        use("mended", lambda: (x + 1)[3].item(), 4.0)
        use("mended, at the end", torch.ocl.synchronize)


if __name__ == "__main__":
    main(*sys.argv[1:])
