# SPDX-License-Identifier: Apache-2.0
"""Small programs that use only the CPU, and what each of them comes to.

A group is a module of this folder, whose functions with `@probe` run one after another in a fresh
process: `python -c 'import registry; registry.main()' GROUP OUTPUT` writes what came of them as
JSON. Run with a backend and without one, the two must be the same: values, exceptions with their
texts, warnings, threads, and what the process holds before and after.
"""

import contextlib
import faulthandler
import gc
import importlib
import json
import logging
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, Callable

import torch

#: Variables by which a test tells the processes apart, and one in which Inductor keeps an address.
THEIRS = (
    "PYTHONPATH",
    "FOO_SIMULATOR_DEVICES",
    "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR",
)
#: Seconds after which a group hangs: it takes half a minute, or two beside other work.
HANGS = 600
PROBES: dict[str, Callable[[], Any]] = {}
_destroyed: list[Any] = []  # the process groups of the probe that runs


def probe(function: Callable[[], Any]) -> Callable[[], Any]:
    """Adds a function to the probes; what it returns is compared by its `repr`."""
    assert function.__name__ not in PROBES, function.__name__
    PROBES[function.__name__] = function
    return function


def let_gloo_finish() -> None:
    """Waits until Gloo's threads have nothing left to do, up to PyTorch 2.7.

    There the Python object of a process group waits for them with the GIL, which they may still
    want: PyTorch's own deadlock, on the CPU.
    """
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 8):
        time.sleep(0.3)


def destroy_groups() -> None:
    """Destroys all process groups, whose Python objects stay until the probe's own are gone.

    These wait for Gloo's threads without the GIL. What else may be the last to hold a group, such
    as the Reducer of a model that outlives it, waits with the GIL in all releases.
    """
    if torch.distributed.is_initialized():
        let_gloo_finish()
        _destroyed.extend(torch.distributed.distributed_c10d._world.pg_map)
        torch.distributed.destroy_process_group()


def default_device() -> str:
    try:
        return str(torch.get_default_device())
    except AttributeError:  # PyTorch 2.5, when a default has been set and taken back
        return "cpu"


def without_addresses(value: Any) -> Any:
    return json.loads(re.sub(r"0x[0-9a-f]+", "0x", json.dumps(value)))


def outcome(function: Callable[[], Any]) -> dict[str, Any]:
    """Value or exception, and the warnings, without addresses."""
    result: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stdout(sys.stderr):
                result["value"] = repr(function())
        except Exception as error:  # the type and the text of any error are what is compared
            result["error"] = [type(error).__name__, str(error)]
    result["warnings"] = [f"{one.category.__name__}: {one.message}" for one in caught]
    return without_addresses(result)


def _threads() -> list[str]:
    names = []
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/comm") as file:
            names.append(file.read().strip())
    return sorted(names)


def thread_names(known: Sequence[str] = ()) -> list[str]:
    """The names of this process's threads, Python's and others.

    Those that end soon are waited for: any that are not among those that were known, and three
    seconds at most.
    """
    gc.collect()
    until = time.monotonic() + 3
    while extra(_threads(), known) and time.monotonic() < until:
        time.sleep(0.01)
    return _threads()


def _links(folder: str) -> list[str]:
    found = []
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            found.append(re.sub(r"\d+", "N", os.readlink(f"{folder}/{name}")))
    return sorted(found)


def _signals() -> dict[str, str]:
    with open("/proc/self/status") as file:
        lines = [line.split(":\t", 1) for line in file.read().splitlines()]
    masks = {name: value for name, value in lines if name in ("SigBlk", "SigIgn", "SigCgt")}
    of_python = {one.name: repr(signal.getsignal(one)) for one in signal.Signals}
    return {**masks, **of_python}


def ours(name: str) -> bool:
    """Whether a module is the backend's own."""
    return re.match(r"torch_foo\b|torch\.foo\b", name) is not None


def state() -> dict[str, Any]:
    """What the process holds, as a program could see it."""
    return without_addresses(
        {
            "modules": sorted(name for name in sys.modules if not ours(name)),
            "finders": [getattr(one, "__name__", type(one).__name__) for one in sys.meta_path],
            "environment": {k: v for k, v in os.environ.items() if k not in THEIRS},
            "files": _links("/proc/self/fd"),
            "signals": _signals(),
            "filters": repr(warnings.filters),
            "handlers": repr(logging.getLogger().handlers),
            "loggers": sorted(name for name in logging.Logger.manager.loggerDict if not ours(name)),
            "python threads": sorted(one.name for one in threading.enumerate()),
            "hooks": [repr(sys.excepthook), repr(threading.excepthook), repr(sys.displayhook)],
            "folder": os.getcwd(),
            "settings": {
                "dtype": str(torch.get_default_dtype()),
                "device": default_device(),
                "threads": torch.get_num_threads(),
                "interop": torch.get_num_interop_threads(),
                "precision": torch.get_float32_matmul_precision(),
                "gradients": torch.is_grad_enabled(),
                "deterministic": torch.are_deterministic_algorithms_enabled(),
                "sharing": torch.multiprocessing.get_sharing_strategy(),
                "start method": torch.multiprocessing.get_start_method(allow_none=True),
                "reductions": len(
                    sys.modules["multiprocessing.reduction"].ForkingPickler._extra_reducers
                ),
            },
            "names": {
                one.__name__: sorted(name for name in dir(one) if not name.startswith("__"))
                for one in (
                    torch,
                    torch.Tensor,
                    torch.nn.Module,
                    torch.UntypedStorage,
                    torch.nn.utils.rnn.PackedSequence,
                )
            },
        }
    )


def driver_is_in_use() -> bool:
    """Whether a backend has started its driver: then a process forked from here cannot use it."""
    module = getattr(torch, "foo", None)
    if module is None or module._failure is not None:
        return False
    child = os.fork()
    if child == 0:
        os._exit(int(module._is_in_bad_fork()))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def extra(more: Sequence[str], fewer: Sequence[str]) -> list[str]:
    """What one list has in addition to another."""
    return sorted((Counter(more) - Counter(fewer)).elements())


def run(names: list[str]) -> dict[str, Any]:
    """What came of these probes, or of all of them."""
    gc.collect()
    gc.freeze()  # what was imported stays: each probe's own garbage is quickly found
    begin = state()
    threads = {"import": _threads()}
    outcomes, driver = {}, ""
    known, modules = threads["import"], len(sys.modules)
    for name in names or list(PROBES):
        outcomes[name] = outcome(PROBES[name])
        gc.collect()
        _destroyed.clear()
        known = threads[name] = thread_names(known)
        if len(sys.modules) > modules:
            gc.freeze()  # what this probe was the first to import
            modules = len(sys.modules)
        if not driver and driver_is_in_use():
            driver = name
    return {
        "outcomes": outcomes,
        "threads": threads,
        "begin": begin,
        "end": state(),
        "driver": driver,  # the probe that started it, if one did
    }


def main() -> None:
    group, output, *names = sys.argv[1:]
    faulthandler.dump_traceback_later(HANGS, exit=True)
    importlib.import_module(group)
    result = run(names)
    with open(output, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
