# SPDX-License-Identifier: Apache-2.0
"""torch.foo by PyTorch's conventions for device modules."""

import json

from conftest import Interpreter, Site

# Each case runs in a process of its own, forked from one that has only imported torch.
RUN_CASES = """
import json, os, sys, torch
for name, code in json.loads(sys.argv[1]).items():
    *statements, last = code.splitlines()
    if os.fork() == 0:
        try:
            scope = {"torch": torch}
            exec("\\n".join(statements), scope)
            outcome = eval(last, scope)
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        print(json.dumps([name, outcome]), flush=True)
        os._exit(0)
    os.wait()
"""


def outcomes(base: Interpreter, site: Site, cases: dict[str, tuple[str, object]]) -> object:
    """What the last expression of each case's code gives, or the exception."""
    codes = json.dumps({name: code for name, (code, _) in cases.items()})
    lines = base.lines(RUN_CASES, site, arguments=(codes,))
    return dict(json.loads(line) for line in lines)


CASES: dict[str, tuple[str, object]] = {
    "available": ("[torch.foo.is_available(), torch.foo.device_count()]", [True, 2]),
    "not initialized by import": ("torch.foo.is_initialized()", False),
    "initialized by use": ("torch.foo.init()\ntorch.foo.is_initialized()", True),
    "current device": ("torch.foo.current_device()", 0),
    "set_device": ("torch.foo.set_device(1)\ntorch.foo.current_device()", 1),
    "set_device by name": ("torch.foo.set_device('foo:1')\ntorch.foo.current_device()", 1),
    "set_device below zero": ("torch.foo.set_device(-1)\ntorch.foo.current_device()", 0),
    "device": (
        "with torch.foo.device(1): inside = torch.foo.current_device()\n"
        "[inside, torch.foo.current_device()]",
        [1, 0],
    ),
    "device entered twice": (
        "one = torch.foo.device(1)\n"
        "with one: pass\n"
        "with one: inside = torch.foo.current_device()\n"
        "[inside, torch.foo.current_device()]",
        [1, 0],
    ),
    "device below zero": (
        "with torch.foo.device(-1): inside = torch.foo.current_device()\ninside",
        0,
    ),
    "device_of what lies on the CPU": (
        "with torch.foo.device_of(torch.ones(1)): inside = torch.foo.current_device()\ninside",
        0,
    ),
    "synchronize": ("[torch.foo.synchronize(), torch.foo.synchronize('foo:1')]", [None, None]),
    "manual_seed": ("torch.foo.manual_seed(7)\ntorch.foo.initial_seed()", 7),
    "manual_seed before use": (
        "torch.foo.manual_seed(7)\nbefore = torch.foo.is_initialized()\n"
        "[before, torch.foo.initial_seed()]",
        [False, 7],
    ),
    "torch.manual_seed": (
        "torch.manual_seed(9)\nbefore = torch.foo.is_initialized()\n"
        "with torch.foo.device(1): seed = torch.foo.initial_seed()\n"
        "[before, seed, torch.foo.initial_seed()]",
        [False, 9, 9],
    ),
    "the last seed counts": (
        "torch.manual_seed(1)\ntorch.foo.manual_seed(2)\ntorch.manual_seed(3)\n"
        "torch.foo.initial_seed()",
        3,
    ),
    "a negative seed": (
        "torch.manual_seed(-5)\n[torch.foo.initial_seed() == 2**64 - 5]",
        [True],
    ),
    "the greatest seed": (
        "torch.manual_seed(2**64 - 1)\n[torch.foo.initial_seed() == 2**64 - 1]",
        [True],
    ),
    "seed": ("seed = torch.foo.seed()\n[seed == torch.foo.initial_seed(), seed >= 0]", [True] * 2),
    "seed_all": (
        "seed = torch.foo.seed_all()\n"
        "with torch.foo.device(1): other = torch.foo.initial_seed()\n"
        "seed == other",
        True,
    ),
    "rng state": (
        "torch.foo.manual_seed(7)\nstate = torch.foo.get_rng_state()\ntorch.foo.manual_seed(8)\n"
        "torch.foo.set_rng_state(state)\n[torch.foo.initial_seed(), state.device.type]",
        [7, "cpu"],
    ),
    "all rng states": (
        "torch.foo.manual_seed_all(7)\nstates = torch.foo.get_rng_state_all()\n"
        "torch.foo.manual_seed_all(8)\ntorch.foo.set_rng_state_all(states)\n"
        "[len(states), torch.foo.initial_seed()]",
        [2, 7],
    ),
    "fork_rng": (
        "torch.foo.manual_seed(7)\n"
        "with torch.random.fork_rng(devices=[0], device_type='foo'): torch.foo.manual_seed(8)\n"
        "torch.foo.initial_seed()",
        7,
    ),
    "found by PyTorch": (
        "[torch.get_device_module('foo') is torch.foo, torch.device('foo:1').index]",
        [True, 1],
    ),
    "amp": ("[str(d) for d in torch.foo.get_amp_supported_dtype()]", ["torch.float16"]),
    "bf16": ("torch.foo.is_bf16_supported()", False),
    "methods of tensors": ("[torch.ones(1).is_foo, callable(torch.ones(1).foo)]", [False, True]),
    "methods of modules and storages": (
        "[callable(torch.nn.Linear(1, 1).foo), torch.ones(1).untyped_storage().is_foo]",
        [True, False],
    ),
    "names": ("sorted(n for n in torch.foo.__all__ if not hasattr(torch.foo, n))", []),
}


def test_values(base: Interpreter, site: Site) -> None:
    site.set_constant("AMP_DTYPES", ["float16"])
    expected = {name: result for name, (_, result) in CASES.items()}
    assert outcomes(base, site, CASES) == expected


ERRORS: dict[str, tuple[str, object]] = {
    "an index too high": (
        "torch.foo.set_device(7)",
        "ValueError: there is no device `foo:7`: the last one is `foo:1`",
    ),
    "another device": (
        "torch.foo.synchronize('cpu')",
        "ValueError: expected a foo device, got `cpu`",
    ),
    "a seed out of range": (
        "torch.foo.manual_seed(2**64)",
        "RuntimeError: seed 18446744073709551616 is not in "
        "[-0x8000_0000_0000_0000, 0xffff_ffff_ffff_ffff]",
    ),
    "an unknown name": (
        "torch.foo.nothing",
        "AttributeError: module 'torch.foo' has no attribute 'nothing'",
    ),
}


def test_errors(base: Interpreter, site: Site) -> None:
    expected = {name: text for name, (_, text) in ERRORS.items()}
    assert outcomes(base, site, ERRORS) == expected


FORK = """
import os, torch
torch.ones(1, device="foo")
if os.fork() == 0:
    try:
        torch.foo.synchronize()
    except RuntimeError as error:
        print(error, flush=True)
    torch.manual_seed(2)
    print(torch.foo._is_in_bad_fork(), torch.foo.is_initialized(), flush=True)
    os._exit(0)
os.wait()
torch.foo.synchronize()
"""


def test_forked_after_use(base: Interpreter, site: Site) -> None:
    assert base.lines(FORK, site) == [
        "Cannot re-initialize foo in forked subprocess. To use foo with multiprocessing, you must "
        "use the 'spawn' start method",
        "True False",
    ]


def test_forked_before_use(base: Interpreter, site: Site) -> None:
    code = (
        "import os, torch\n"
        "torch.manual_seed(1)\n"
        "if os.fork() == 0:\n"
        "    print(torch.foo.initial_seed(), flush=True); os._exit(0)\n"
        "os.wait(); print(torch.foo.initial_seed())"
    )
    assert base.lines(code, site) == ["1", "1"]
