# SPDX-License-Identifier: Apache-2.0
"""Uses a device, in a process that may crash or hang."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from typing import IO

from backendkit_tools.doctor_report import Wishes, bad, doubtful, good, run

__all__ = ["judge"]

_MARK = "BACKENDKIT-DEVICE "
_FRAMES = 8


def judge(wishes: Wishes) -> None:
    started = time.monotonic()
    with _nowhere() as out, _nowhere() as err:
        status, native = _use(wishes, out, err)
        out.seek(0)
        err.seek(0)
        said = out.read().decode("utf-8", "replace")
        errors = err.read().decode("utf-8", "replace")
    marks = re.findall(rf"^{_MARK}(\w+) ?(.*)$", said, re.M)
    steps = [text for kind, text in marks if kind == "step"]
    name = wishes.device
    wrong = False
    for kind, text in marks:
        if kind == "warning":
            doubtful(
                "device.warning", name, text, "`backendgen doctor` without `--device` says more"
            )
            wrong = True
        if kind == "fail":
            text, _, help_ = text.partition(" ## ")
            bad("device", name, text, help_ or _advice(wishes), *_trace(errors))
            return
    step = steps[-1] if steps else "start"
    if status is None:
        text = f"{step} does not end within {wishes.timeout} s"
        bad("device.hang", name, text, _advice(wishes), *_trace(errors), *native)
    elif status < 0:
        try:
            what = signal.Signals(-status).name
        except ValueError:
            what = f"signal {-status}"
        bad(
            "device.crash",
            name,
            f"{step} ends the process with {what}",
            _advice(wishes),
            *_trace(errors),
            *native,
        )
    elif status != 0 or not any(kind == "done" for kind, _ in marks):
        text = f"{step} ends the process with status {status}"
        bad("device", name, text, _advice(wishes), *_trace(errors))
    elif not wrong:
        skipped = [text for kind, text in marks if kind == "skip"]
        done = [step for step in steps if step not in ("import torch", "device")]
        notes = f"; {', '.join(skipped)}" if skipped else ""
        seconds = time.monotonic() - started
        good("device", name, f"{', '.join(done)} work, in {seconds:.1f} s{notes}")


def _nowhere() -> IO[bytes]:
    """A file that lies in no folder where the system has such, as every disk may be full."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("backendkit-doctor"), "w+b")
    return tempfile.TemporaryFile()


def _advice(wishes: Wishes) -> str:
    return f"report it to the maker of `{wishes.device.split(':')[0]}`, with these lines"


def _use(wishes: Wishes, out: IO[bytes], err: IO[bytes]) -> tuple[int | None, list[str]]:
    """Runs device_check.py; its status, None at the limit, and its native stack if gdb gives it."""
    spec = find_spec("backendkit_tools.device_check")
    assert spec is not None and spec.loader is not None
    source = spec.loader.get_source(spec.name)  # type: ignore[attr-defined]
    words = [sys.executable, "-X", "faulthandler", "-c", source, wishes.device, str(wishes.timeout)]
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    )
    native: list[str] = []
    status: int | None
    try:
        status = process.wait(wishes.timeout)
    except subprocess.TimeoutExpired:
        status = None
        process.send_signal(signal.SIGUSR1)  # device_check.py then writes the stack of Python
        time.sleep(0.2)
        native = _gdb(["-p", str(process.pid)], wishes.timeout)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of the group has ended
    process.wait()
    if status is not None and status < 0:
        native = _gdb(["-ex", "run", "--args", *words], wishes.timeout)
    return status, native


def _gdb(arguments: list[str], limit: float) -> list[str]:
    program = shutil.which("gdb")
    if program is None:
        return ["`apt-get install gdb` adds the native stack to these lines"]
    options = ["-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex", "set pagination off"]
    words = [program, *options]
    if "--args" in arguments:
        place = arguments.index("--args")
        words += [*arguments[:place], "-ex", "bt", *arguments[place:]]
    else:
        words += [*arguments, "-ex", "bt"]
    ended = run(words, limit + 10)
    frames = [line for line in ended.out.splitlines() if re.match(r"#\d+ ", line)]
    return [f"native: {frame}" for frame in frames[:_FRAMES]]


def _trace(errors: str) -> list[str]:
    """The last exception, or the stack of the current thread that faulthandler wrote."""
    lines = [line.rstrip() for line in errors.splitlines() if line.strip()]
    starts = [
        i
        for i, line in enumerate(lines)
        if line.startswith(("Fatal Python error", "Current thread", "Traceback", "Thread "))
    ]
    if not starts:
        return lines[-2:]
    begin = lines[starts[0] :]
    shown = [line for line in begin if not line.startswith("Extension modules")]
    return shown[: _FRAMES + 2] if len(shown) <= _FRAMES + 2 else [*shown[:_FRAMES], shown[-1]]
