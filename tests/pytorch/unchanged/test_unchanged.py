# SPDX-License-Identifier: Apache-2.0
"""The wheel changes nothing for programs that do not use its device, but for what is listed.

Each group of probes runs in a fresh process without the backend, with it on a machine that has no
device, and with it on one that has two. Outcomes, warnings, threads, exit status and what the
process holds must be the same; differences.py lists what differs, and to what.
"""

from __future__ import annotations

from collections import Counter

import pytest
from differences import (
    NAMES,
    OTHER_GRAPHS,
    TOLD_ONCE,
    WITH_DEVICES,
    WITH_DEVICES_ELSEWHERE,
    WITHOUT_DEVICES,
    WITHOUT_DEVICES_ELSEWHERE,
)
from machine import Machine
from programs import PROGRAMS

GROUPS = ("core", "defaults", "distributed", "processes", "compiled", "accelerator")
#: How many devices there are, and what differs then.
MACHINES = {
    "no device": (0, WITHOUT_DEVICES, WITHOUT_DEVICES_ELSEWHERE),
    "devices": (2, WITH_DEVICES, WITH_DEVICES_ELSEWHERE),
}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("unchanged"))


@pytest.fixture(scope="module")
def tells(machine: Machine) -> bool:
    """Whether this is the PyTorch that differences.py tells of: 2.13 without CUDA."""
    ask = "import torch; print(torch.__version__.startswith('2.13.') and not torch.version.cuda)"
    return machine.run(["-c", ask], None).stdout == "True\n"


def more_of(these: list[str], than: list[str]) -> list[str]:
    return sorted((Counter(these) - Counter(than)).elements())


pytestmark = pytest.mark.parametrize("having", MACHINES)


@pytest.mark.parametrize("group", GROUPS)
def test_outcomes(machine: Machine, tells: bool, group: str, having: str) -> None:
    devices, all_expected, elsewhere = MACHINES[having]
    expected = all_expected.get(group, {})
    either = [expected] if tells else [expected, elsewhere.get(group, {})]
    before = machine.probe(group, None)["outcomes"]
    found = machine.probe(group, devices)["outcomes"]
    assert before.keys() == found.keys()
    if not tells:
        for one in (*before.values(), *found.values()):
            one["warnings"] = [text for text in one["warnings"] if TOLD_ONCE not in text]
    wrong = [
        f"{name}\n  without: {before[name]}\n  with:    {found[name]}"
        for name in found
        if found[name] != before[name]
        and not any(name in one and one[name].fits(found[name], before[name]) for one in either)
    ]
    assert not wrong, "\n".join(wrong)
    if having == "devices" and tells:
        same = {name for name in expected if found[name] == before[name]}
        assert same <= {"processes_per_machine_by_default"}, "differences.py lists what is the same"


@pytest.mark.parametrize("group", GROUPS)
def test_threads(machine: Machine, group: str, having: str) -> None:
    """Autograd's threads of the devices start at the first use, which only one group has."""
    devices = MACHINES[having][0]
    before = machine.probe(group, None)["threads"]
    found = machine.probe(group, devices)["threads"]
    assert found["import"] == before["import"]
    if group != "accelerator":
        assert found == before
        return
    named = sorted(f"pt_autograd_{index}" for index in range(devices))
    allowed = ([], named, found["import"][:1] * devices)  # PyTorch 2.5 names no thread
    for point in found:
        assert more_of(before[point], found[point]) == [], point
        # It starts the simulator's threads too.
        more = [name for name in more_of(found[point], before[point]) if name in named]
        assert more in allowed, point


@pytest.mark.parametrize("group", GROUPS)
def test_driver_is_not_started(machine: Machine, group: str, having: str) -> None:
    started = machine.probe(group, MACHINES[having][0])["driver"]
    if group != "accelerator" or having == "no device":
        assert started == ""


@pytest.mark.parametrize("moment", ["begin", "end"])
@pytest.mark.parametrize("group", GROUPS)
def test_what_a_process_holds(
    machine: Machine, tells: bool, group: str, moment: str, having: str
) -> None:
    before = machine.probe(group, None)[moment]
    found = machine.probe(group, MACHINES[having][0])[moment]
    for kind, names in NAMES.items():
        assert more_of(found["names"][kind], before["names"][kind]) == names
        found["names"][kind] = before["names"][kind]
    assert more_of(found["finders"], before["finders"]) == ["_Finder"]
    found["finders"] = before["finders"]
    if group == "accelerator":  # a call of the library's own operators imports it
        found["modules"] = [one for one in found["modules"] if "schema_check_mode" not in one]
        before["modules"] = [one for one in before["modules"] if "schema_check_mode" not in one]
        if not tells:  # where batches are pinned, PyTorch's loader keeps a worker until the exit
            more = more_of(found["files"], before["files"])
            assert set(more) <= {"pipe:[N]"} and more_of(before["files"], found["files"]) == []
            found["files"] = before["files"]
    assert found == before


def test_inductor_would_find_what_it_kept(machine: Machine, tells: bool, having: str) -> None:
    """The keys of compiled graphs are the same, but for those of OTHER_GRAPHS."""
    kept = machine.probe("compiled", None)["graphs"]
    found = machine.probe("compiled", MACHINES[having][0])["graphs"]
    assert len(found) == len(kept) > OTHER_GRAPHS[having]
    others = len(more_of(found, kept))
    assert others == OTHER_GRAPHS[having] or (not tells and others == 0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(machine: Machine, name: str, having: str) -> None:
    """A whole program: what it writes, and how it ends."""
    program = PROGRAMS[name]
    before, found = (machine.end(program, devices) for devices in (None, MACHINES[having][0]))
    for text in (before, found):
        assert text.returncode == program.status, text.stderr
    assert program.plain(found.stdout) == program.plain(before.stdout)
    assert program.plain(found.stderr) == program.plain(before.stderr)
