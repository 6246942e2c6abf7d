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
#: Tests that cannot pass, and why.
DESELECTED = {
    # The second result is a copy of the noise, which nobody wrote: memory of the CPU against
    # memory of the device, both as they were.
    "rng": ["test_dropout_rrelu_variants.py::test_rrelu_train_false_variants"],
}
MANIFEST = """
from torch_foo.testing import torchcts_manifest
manifest = torchcts_manifest({changes})
"""
GIBIBYTE = 1 << 30


def package() -> Path:
    spec = importlib.util.find_spec("torchcts")
    assert spec is not None and spec.origin is not None, "torchcts is not installed"
    return Path(spec.origin).parent


def torchcts(folder: Path, changes: str, *arguments: str) -> str:
    """What `torchcts run` prints, in a process with devices of 1 GiB."""
    (folder / "manifest.py").write_text(MANIFEST.format(changes=changes))
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
    left_out = []
    for suite, tests in DESELECTED.items():
        for test in tests:
            left_out += ["--deselect", os.path.relpath(package() / suite / test, tmp_path)]
    text = torchcts(tmp_path, "", "--level", "8", *folders, *left_out, "-v")
    for suite in SUITES:
        verdicts = re.findall(rf"torchcts/{suite}/\S+\.py::.* (PASSED|FAILED|ERROR|SKIPPED)", text)
        assert verdicts.count("PASSED") > 0, suite
        assert set(verdicts) == {"PASSED"}, (suite, verdicts)
    assert not {"failed", "error", "errors", "skipped"} & set(counts(text))


def test_level_1_of_all_operators(tmp_path: Path) -> None:
    """What torchcts calls smoke: a sample of float32 for every operator."""
    changes = "supported_dtypes={'torch.float32': True}, max_samples=1"
    found = counts(torchcts(tmp_path, changes, "--level", "1", "--adaptive-isolation", "off"))
    assert found["passed"] > 500
    assert not {"failed", "error", "errors"} & set(found)
