# SPDX-License-Identifier: Apache-2.0
"""docs/faults.md: what comes of each fault of a Runtime's functions."""

from __future__ import annotations

#: The faults of csrc/faulty.cpp, by the heads of their columns.
COLUMNS = {
    "std": "throws a `std::exception`",
    "c10": "throws a `c10::Error`",
    "other": "throws anything else",
    "null": "returns null or 0",
    "garbage": "returns an invalid value",
    "slow": "is slow",
    "late": "throws after its work has started",
}
#: The functions that may return what a result must not be.
_MAY_RETURN = {
    "null": {
        "device_count",
        "allocate",
        "create_stream",
        "create_event",
        "allocate_host",
        "end_capture",
        "communicator_id",
        "create_communicator",
        "all_reduce",
        "reduce_scatter",
    },
    "garbage": {
        "device_count",
        "current_device",
        "allocate",
        "elapsed_ms",
        "memory_info",
        "allocate_host",
        "properties",
        "save_metadata",
        "communicator_id",
    },
}

_HEAD = """\
# Faults of a runtime

What happens when a function of your [runtime](runtime.md) fails. Where a cell has two results, the
first is for the first use of the device and the second for a device already in use. Measured under
AddressSanitizer; `./dev test tests/runtime/faults --update` writes this page.

"""

_TAIL = """
- **error**: a Python exception whose text names the function, the device and what was thrown or
  returned, such as `foo::Runtime::copy failed on foo:0: ...`. It is a `RuntimeError`; a
  `c10::Error` keeps its own type.
- **warning**: the same text as a warning, where nothing can be thrown: memory or an event is being
  freed.
- **no device**: the first use of the device raises a `RuntimeError` that says there is none, and
  `torch.foo.device_count()` is 0.
- **out of memory**: `torch.OutOfMemoryError`, after cached memory has been returned to the driver.
- **waits**: the call takes as long as the function; nothing else changes.
- **right**: the fault has no effect, because the program does not call the function at that point.

No fault ends the process, and once the function works again, so does the device. The one exception
is a failed `device_count`, which is not called again in the process. Faults that BackendKit cannot
detect are not in the table: a driver that reports work as completed too early, or copies the wrong
bytes.
"""


def applies(function: str, fault: str) -> bool:
    """Whether a function can have a fault."""
    return function in _MAY_RETURN[fault] if fault in _MAY_RETURN else True


def page(functions: list[str], outcomes: dict[tuple[str, str, bool], str]) -> str:
    """The page, of the outcomes by function, fault and whether the device was in use."""

    def cell(function: str, fault: str) -> str:
        if not applies(function, fault):
            return ""
        first, later = (outcomes[function, fault, used] for used in (False, True))
        return first if first == later else f"{first} / {later}"

    heads = ["function", *COLUMNS.values()]
    rows = [heads, ["---"] * len(heads)]
    rows += [[f"`{one}`", *(cell(one, fault) for fault in COLUMNS)] for one in functions]
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows) + _TAIL
