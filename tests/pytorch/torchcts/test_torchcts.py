# SPDX-License-Identifier: Apache-2.0
"""The outside suite torchcts finds no fault in the starter project's backend.

Runs it by the manifest that the backend's package derives from what the backend can.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path

SUITES = ("device_api", "memory", "rng", "serialization", "multi_device", "errors", "training")
#: A test that compares memory that nobody wrote, of the CPU and of the device: the second result of
#: rrelu_with_noise_functional is a copy of its noise, which is made by `empty_like`.
LEFT_OUT = "test_rrelu_train_false_variants"
MANIFEST = """
from torch_foo.testing import torchcts_manifest
manifest = torchcts_manifest()
"""
GIBIBYTE = 1 << 30


def package() -> Path:
    spec = importlib.util.find_spec("torchcts")
    assert spec is not None and spec.origin is not None, "torchcts is not installed"
    return Path(spec.origin).parent


def torchcts(folder: Path, *arguments: str) -> str:
    """What `torchcts run` prints, in a process with devices of 1 GiB."""
    (folder / "manifest.py").write_text(MANIFEST)
    python = os.environ["BACKENDKIT_TEST_PYTHON"]
    command = [python, "-m", "torchcts", "run", "--device", "foo", "--non-interactive"]
    done = subprocess.run(
        [*command, "--show-traceback", "--tb=short", "-rs", *arguments],
        cwd=folder,
        env={**os.environ, "FOO_SIMULATOR_MEMORY": str(GIBIBYTE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-12000:]
    return done.stdout


def counts(text: str) -> dict[str, int]:
    """The counts of pytest's last line by their words."""
    last = [line for line in text.splitlines() if re.search(r" in [0-9.]+s", line)][-1]
    return {word: int(count) for count, word in re.findall(r"(\d+) (\w+)", last.split(" in ")[0])}


def test_the_suites_of_a_device(tmp_path: Path) -> None:
    """In one process, since PyTorch and the manifest's probes take longer than most suites."""
    folders = [str(package() / suite) for suite in SUITES]
    text = torchcts(tmp_path, "--level", "8", *folders, "-k", f"not {LEFT_OUT}", "-v")
    for suite in SUITES:
        verdicts = re.findall(rf"torchcts/{suite}/\S+\.py::.* (PASSED|FAILED|ERROR|SKIPPED)", text)
        assert verdicts.count("PASSED") > 0, suite
        assert set(verdicts) == {"PASSED"}, (suite, verdicts)
    assert not {"failed", "error", "errors", "skipped"} & set(counts(text))
