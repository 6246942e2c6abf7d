# SPDX-License-Identifier: Apache-2.0
"""Runs device tests on a backend with one fault each, every one in a process of its own.

The processes are forked from this one, which has PyTorch, whose import takes longer than most of
the tests, but not the backend: that is loaded, and chooses its fault, after the fork. Reads jobs as
JSON from stdin, `[fault or -1, tests, seconds, variables of the environment]`; writes
`[status, text]` of each to stdout.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from typing import IO

if __name__ == "__main__":  # and not in processes that tests spawn, which import this module
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import pytest
import torch  # noqa: F401

OPTIONS = ["-q", "-p", "no:cacheprovider", "--tb=line"]


@dataclass
class Process:
    job: int
    end: float
    text: IO[str]


def child(fault: int, tests: list[str], variables: dict[str, str], text: IO[str]) -> int:
    os.setsid()
    for number in (1, 2):
        os.dup2(text.fileno(), number)
    os.environ.update(variables, BACKENDKIT_FAULT=str(fault))
    del os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
    import torch_foo  # noqa: F401

    of_device = not all(test.startswith("../") for test in tests)
    return pytest.main([*OPTIONS, *(["--device", "foo"] if of_device else []), *tests])


def begin(number: int, job: tuple[int, list[str], float, dict[str, str]]) -> tuple[int, Process]:
    fault, tests, seconds, variables = job
    text = tempfile.TemporaryFile("w+")
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            status = child(fault, tests, variables, text)
        except BaseException:
            traceback.print_exc(file=text)
        finally:
            text.flush()
            sys.stdout.flush()
            os._exit(status)
    return pid, Process(number, time.monotonic() + seconds, text)


def main() -> None:
    jobs = json.load(sys.stdin)
    gc.freeze()  # the children look for garbage among their own objects only
    results: list[tuple[int, str]] = [(0, "")] * len(jobs)
    waiting = list(range(len(jobs)))
    running: dict[int, Process] = {}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            number = waiting.pop(0)
            pid, process = begin(number, jobs[number])
            running[pid] = process
        time.sleep(0.02)
        for pid, process in list(running.items()):
            if time.monotonic() > process.end:
                os.killpg(pid, signal.SIGKILL)
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                process.text.seek(0)
                ended = os.waitstatus_to_exitcode(status)
                results[process.job] = (ended, process.text.read())
                del running[pid]
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
