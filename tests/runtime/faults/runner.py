# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a JSON list on stdin, `[function, fault, later]`, each in a process of its own.

The processes are forked from this one, which has PyTorch and the backend, whose imports take longer
than a case, but has not used the device. Writes a JSON list of what `cases.run_case` returned; of a
process that ended before, `{"ended": status, "text": what it said}`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

import cases

#: Seconds that a process may take.
PATIENCE = 120


def begin(case: tuple[str, str, bool]) -> tuple[int, object, object]:
    """Starts a process; its number, and the files of its result and of what it says."""
    result, said = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
    pid = os.fork()
    if pid == 0:
        os.dup2(said.fileno(), 2)
        status = 99
        try:
            json.dump(cases.run_case(*case), result)
            result.flush()
            status = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    return pid, result, said


def main() -> None:
    jobs = json.load(sys.stdin)
    gc.freeze()  # the children look for garbage among their own objects only
    results: list[object] = [None] * len(jobs)
    waiting = list(enumerate(jobs))
    running: dict[int, tuple[int, float, object, object]] = {}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            number, case = waiting.pop(0)
            pid, result, said = begin(case)
            running[pid] = (number, time.monotonic() + PATIENCE, result, said)
        time.sleep(0.01)
        for pid, (number, end, result, said) in list(running.items()):
            if time.monotonic() > end:
                os.kill(pid, 9)
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done:
                continue
            del running[pid]
            for file in (result, said):
                file.seek(0)
            ended = os.waitstatus_to_exitcode(status)
            log = Path(f"{os.environ['FAULTS_LOG']}.{pid}")
            text = said.read() + (log.read_text(errors="replace") if log.exists() else "")
            results[number] = (
                json.load(result) if ended == 0 else {"ended": ended, "text": text[:8000]}
            )
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
