# SPDX-License-Identifier: Apache-2.0
"""The device tests where the host may use the device's memory, which it must not do too early,
where there is one device, as on most machines, and where autocast has one dtype."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

DEVICE_TESTS = Path(__file__).resolve().parents[2] / "device"


@pytest.mark.parametrize("backend", ["host_accessible"], indirect=True)
def test_the_device_tests_pass(backend: Path, device_tests: list[str]) -> None:
    ask = "import torch; print(torch.foo.capabilities().has('host_accessible'))"
    assert subprocess.run([backend, "-c", ask], capture_output=True).stdout == b"True\n"
    command = [backend, "-m", "pytest", "-q", "-rfEs", "--disable-warnings"]
    command += ["-p", "no:cacheprovider", "--device", "foo", *device_tests]
    one = {**os.environ, "FOO_SIMULATOR_DEVICES": "1"}
    done = subprocess.run(
        command, cwd=DEVICE_TESTS, env=one, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:]
    passed, *others = re.findall(r"(\d+) (passed|skipped|failed|errors?)", done.stdout)
    assert int(passed[0]) > 300 and {what for _, what in others} == {"skipped"}
    reasons = re.findall(r"^SKIPPED \[\d+\] \S+ (.*)", done.stdout, re.M)
    lacks = ("there is one device", "autocast on the device has no float16")
    assert [why for why in reasons if not any(one in why for one in lacks)] == []
