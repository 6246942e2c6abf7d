# SPDX-License-Identifier: Apache-2.0
"""What the driver of a device needs, as [doctor] of its backend.toml says."""

from __future__ import annotations

import glob
import grp
import os
import stat
import sys
from collections.abc import Sequence
from typing import Any

from backendkit_tools.doctor_elf import list_libraries
from backendkit_tools.doctor_library import Report

__all__ = ["judge"]


def judge(facts: dict[str, Any], report: Report, folders: Sequence[str]) -> None:
    """`facts` are the names of _build.py; the backend opens the libraries in `folders` itself."""
    advice = str(facts.get("DRIVER_INSTALL", "")) or "install the driver of the device"
    names = [str(name) for name in facts.get("DRIVER_LIBRARIES", [])]
    _judge_libraries(names, advice, report, folders)
    for pattern in facts.get("DEVICE_NODES", []):
        nodes = sorted(glob.glob(str(pattern)))
        if not nodes:
            report.bad(
                "driver.node",
                f"there is no {pattern}",
                advice,
                "its driver makes it when it is loaded and finds the device",
            )
        for node in nodes:
            _judge_node(node, report)


def _judge_libraries(names: list[str], advice: str, report: Report, folders: Sequence[str]) -> None:
    if not names:
        return
    loaded = list_libraries(os.path.realpath(sys.executable), list(folders), tuple(names))
    for name in loaded.not_preloaded:
        report.bad(
            "driver.library",
            f"{name} of the driver is not found",
            advice,
            "the system's loader looks in LD_LIBRARY_PATH and in the folders of `ldconfig -p`",
        )
    for name, who in loaded.missing.items():
        report.bad("driver.library", f"{name} is missing", advice, f"{who} needs it")


def _judge_node(node: str, report: Report) -> None:
    if os.access(node, os.R_OK | os.W_OK):
        return
    status = os.stat(node)
    both = stat.S_IRGRP | stat.S_IWGRP
    try:
        group = grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        group = str(status.st_gid)
    why = f"it is {stat.filemode(status.st_mode)}, of group {group}"
    if status.st_mode & both == both and status.st_gid != 0:
        help_ = f"`sudo usermod -aG {group} $USER`, then log out and in again"
    else:
        help_ = f"`sudo chmod a+rw {node}`"
    report.bad("driver.permission", f"{node} cannot be read and written by you", help_, why)
