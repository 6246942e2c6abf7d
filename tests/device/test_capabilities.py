# SPDX-License-Identifier: Apache-2.0
"""What the device says of itself is so: what it has works, what it lacks says what to implement."""

import pytest
import torch

USES = {
    "streams": lambda name: torch.Stream(device=f"{name}:0").synchronize(),
    "events": lambda name: torch.Event(device=name).record(),
    "timing": lambda name: elapsed(name),
    "memory_info": lambda name: getattr(torch, name).mem_get_info(),
    "pinned_memory": lambda name: torch.ones(2).pin_memory(name),
}


def elapsed(name):
    start, end = (torch.Event(device=name, enable_timing=True) for _ in range(2))
    for event in (start, end):
        event.record(getattr(torch, name).current_stream())
        event.synchronize()
    return start.elapsed_time(end)


@pytest.mark.filterwarnings("ignore:The argument 'device':DeprecationWarning")
@pytest.mark.parametrize("group", USES)
def test_what_is_there_works_and_what_is_not_says_why(module, name, group):
    module.init()
    known = module.capabilities()
    # Without streams too, work is done when a call returns, and an event has nothing to wait for.
    if known.runtime[group] or (group == "events" and not known.has("streams")):
        USES[group](name)
        return
    with pytest.raises(NotImplementedError, match="this backend has no") as caught:
        USES[group](name)
    functions = [*known.functions[group].split(", "), "create_event", "create_stream"]
    assert any(f"`{function}`" in str(caught.value) for function in functions)


def test_each_group_has_functions(module):
    known = module.capabilities()
    assert list(known.runtime) == list(known.functions)
    assert all(known.functions.values())
    assert {type(there) for there in known.runtime.values()} == {bool}
    assert not known.has("nothing")


def test_what_comes_of_the_description(module, device):
    known = module.capabilities()
    assert known.fallback in ("cpu", "error")
    assert known.amp_dtypes == module.get_amp_supported_dtype()
    for dtype in known.kernel_dtypes or []:
        assert torch.zeros(2, dtype=dtype, device=device).dtype == dtype
