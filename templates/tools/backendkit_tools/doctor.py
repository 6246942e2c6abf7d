# SPDX-License-Identifier: Apache-2.0
"""Judges a Python, its PyTorch and its backends, for `backendgen doctor`.

The arguments are VERSION OLDEST NEWEST PACKAGE DEVICE TIMEOUT PLACE: backendgen's version, the
PyTorch releases that it is tested with, the backend to look at or "", the device to use or "", the
limit for it in seconds, and "project" if the working folder belongs to one.

This runs without site-packages (`python -I -S`), and imports nothing that is installed. What it
prints is described in generator/doctor/report.h.
"""

import sys

from backendkit_tools import (
    doctor_backends,
    doctor_builds,
    doctor_device,
    doctor_environment,
    doctor_python,
    doctor_torch,
)
from backendkit_tools.doctor_report import Wishes, end


def main() -> None:
    version, oldest, newest, package, device, timeout, place = sys.argv[1:]
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    wishes = Wishes(version, oldest, newest, package, device, int(timeout), place == "project")
    python = doctor_python.judge(wishes)
    torch = doctor_torch.judge(python, wishes)
    backends = doctor_backends.judge(python, torch, wishes)
    doctor_environment.judge(python, torch, backends)
    doctor_builds.judge(wishes)
    if wishes.device:
        doctor_device.judge(wishes)
    end()


if __name__ == "__main__":
    main()
