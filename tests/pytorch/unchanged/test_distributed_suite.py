# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed end as without the wheel; see distributed_suite.py.

Some of them here; `./dev test tests/pytorch/unchanged/test_distributed_suite.py --every-test` runs
all 720, three times, in hours.
"""

from __future__ import annotations

import json

import pytest
from machine import Machine
from test_unchanged import MACHINES

SOME = """
Gloo.test_all_gather_object_default_pg
Gloo.test_all_reduce_sum
Gloo.test_barrier
Gloo.test_broadcast_object_list
Gloo.test_ddp_grad_div_uneven_inputs
Gloo.test_ddp_profiling_autograd_profiler
Gloo.test_gather
Gloo.test_new_subgroups
Gloo.test_post_localSGD_optimizer_parity
Gloo.test_send_recv
DistAutogradTest.test_backward_simple
RpcTest.test_py_tensors
""".split()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("unchanged"))


@pytest.mark.parametrize("having", MACHINES)
def test_they_end_as_without(machine: Machine, having: str, request: pytest.FixtureRequest) -> None:
    tests = [] if request.config.getoption("--every-test") else SOME

    def outcomes(devices: int | None) -> dict[str, str]:
        output = machine.folder / f"distributed-{devices}.json"
        if not output.exists():
            limit = 900 if tests else 4 * 3600
            suite = ["-m", "distributed_suite", str(output), *tests]
            done = machine.run(suite, devices, limit=limit, TMPDIR=str(machine.folder))
            assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(output.read_text())

    before, found = outcomes(None), outcomes(MACHINES[having][0])
    assert sum(end == "passed" for end in before.values()) > len(tests) // 2
    assert before.keys() == found.keys()
    different = {
        name: (before[name], end)
        for name, end in found.items()
        # A test that wants devices of any kind gets those that there are.
        if before[name] != end and not before[name].startswith("skipped: Need at least")
    }
    assert different == {}
