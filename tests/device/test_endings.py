# SPDX-License-Identifier: Apache-2.0
"""Programs that use the device end with the status that they end with on the CPU."""

import pytest
from backend import lacking
from endings import WAYS, has, run


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_program_ends_as_on_the_cpu(way, name, request):
    if not has(way.module):
        pytest.skip(f"there is no {way.module} here: pip install {way.module}")
    for need in way.needs:
        reason = lacking(name, need)
        if reason:
            pytest.skip(reason)
    ends = run(way, name, request.config.getoption("--endings"))
    wrong = [(status, errors) for status, errors in ends if status != way.status]
    if wrong:
        # PyTorch itself ends some programs in another way than they ask for.
        own = {status for status, _ in run(way, "cpu", 2 * len(ends))}
        wrong = [(status, errors) for status, errors in wrong if status not in own]
    assert not wrong, f"expected {way.status}"


def test_programs_that_end_right_after_a_backward_pass(name):
    """Without the wait at the end about two in three of them are ended by a signal."""
    way = next(way for way in WAYS if way.name == "after a backward pass")
    assert {status for status, _ in run(way, name, 10)} == {0}
