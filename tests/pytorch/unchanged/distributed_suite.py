# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed, those that its wheel has, for the CPU.

`python -m distributed_suite OUTPUT [TEST...]` runs these tests, or all, and writes how each of them
ended as JSON: "passed", "skipped: why", or the last line of what went wrong. The processes of a
test are forked from one that has imported PyTorch; with `spawn` all of it takes hours.
"""

import json
import multiprocessing
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

if "TEMP_DIR" not in os.environ:  # else this is a process of a test
    folder = tempfile.mkdtemp()
    for name in ("barrier", "test_dir", "init_dir"):
        Path(folder, name).mkdir()
    os.environ.update(
        BACKEND="gloo",
        GLOO_SOCKET_IFNAME="lo",
        INIT_METHOD=f"file://{folder}/init",
        TEMP_DIR=folder,
        WORLD_SIZE="2",
    )

import torch.distributed
from registry import let_gloo_finish
from torch.testing._internal import common_distributed
from torch.testing._internal.distributed import distributed_test, rpc_utils
from torch.testing._internal.distributed.rpc import (
    tensorpipe_rpc_agent_test_fixture as tensorpipe,
)


def run(environment: dict[str, str], target: Any, arguments: Any, options: Any) -> None:
    os.environ.update(environment)
    target(*arguments, **options)


def process(target: Any, name: str, args: Any, kwargs: Any) -> Any:
    context = multiprocessing.get_context("forkserver")
    return context.Process(target=run, name=name, args=(dict(os.environ), target, args, kwargs))


def start_by_fork(self: Any) -> None:
    self._start_processes(process)


common_distributed.MultiProcessTestCase._spawn_processes = start_by_fork


destroy = torch.distributed.destroy_process_group


def destroy_process_group(*groups: Any) -> None:
    let_gloo_finish()
    destroy(*groups)


torch.distributed.destroy_process_group = destroy_process_group


class Gloo(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self) -> None:
        super().setUp()
        self._spawn_processes()


globals().update(
    rpc_utils.generate_tests(
        "",
        tensorpipe.TensorPipeRpcAgentTestFixture,
        rpc_utils.GENERIC_TESTS + rpc_utils.TENSORPIPE_TESTS,
        __name__,
    )
)


class Outcomes(unittest.TestResult):
    """How each test ended, by its class and name."""

    def __init__(self) -> None:
        super().__init__()
        self.all: dict[str, str] = {}

    def note(self, test: unittest.TestCase, outcome: str) -> None:
        name = ".".join(test.id().split(".")[-2:])
        self.all[name] = outcome
        print(name, outcome, file=sys.stderr, flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.note(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.note(test, f"skipped: {reason}")

    def addFailure(self, test: unittest.TestCase, error: Any) -> None:
        self.note(test, self._exc_info_to_string(error, test).strip().splitlines()[-1])

    def addError(self, test: unittest.TestCase, error: Any) -> None:
        self.addFailure(test, error)


def main(output: str, tests: list[str]) -> None:
    multiprocessing.set_forkserver_preload([Path(__file__).stem])
    this = sys.modules[__name__]
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(tests, this) if tests else loader.loadTestsFromModule(this)
    outcomes = Outcomes()
    suite.run(outcomes)
    Path(output).write_text(json.dumps(outcomes.all))


if __name__ == "__main__":
    sys.modules[Path(__file__).stem] = sys.modules["__main__"]
    main(sys.argv[1], sys.argv[2:])
