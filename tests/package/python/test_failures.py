# SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong with a backend, `import torch` goes on and the cause is named."""

import shutil
from collections.abc import Callable
from typing import Optional

import pytest
from conftest import Interpreter, Site

Spoil = Callable[[Site], None]


def cut_short(size: int) -> Spoil:
    return lambda site: site.library.write_bytes(site.library.read_bytes()[:size])


def undefined_symbol(site: Site) -> None:
    site.patch_library(b"_ZN5torch7Library", b"_ZN5torch7Libxxxx")
    site.pretend_release("1.0")


def future_torch(site: Site) -> None:
    loader = site.package / "_loader.py"
    text = loader.read_text()
    assert "torch.utils.generate_methods_for_privateuse1_backend" in text
    loader.write_text(text.replace("generate_methods_for_privateuse1_backend", "gone"))


SPOILT: dict[str, tuple[Spoil, str]] = {
    "no library": (lambda site: site.library.unlink(), "torch_foo 0.1.0 has no /"),
    "no library folder": (lambda site: shutil.rmtree(site.package / "lib"), "torch_foo 0.1.0 has"),
    "empty library": (cut_short(0), "torch_foo 0.1.0 is damaged: /"),
    "library cut in its head": (cut_short(50), "torch_foo 0.1.0 is damaged: /"),
    "library cut in its first page": (cut_short(4096), "torch_foo 0.1.0 is damaged: /"),
    "library cut in the middle": (cut_short(40000), "torch_foo 0.1.0 is damaged: /"),
    "library cut by a byte": (cut_short(-1), "torch_foo 0.1.0 is damaged: /"),
    "a text as library": (
        lambda site: site.library.write_text("not a library" * 100),
        "torch_foo 0.1.0 is damaged: /",
    ),
    "driver library missing": (
        lambda site: site.patch_library(b"libc10.so\0", b"libdrv.so\0"),
        "torch_foo 0.1.0 cannot be loaded: libdrv.so: cannot open shared object file",
    ),
    "built for another release": (
        lambda site: site.pretend_release("1.0"),
        "torch_foo 0.1.0 was built for PyTorch 1.0, but this is PyTorch 2.",
    ),
    "a future PyTorch": (
        future_torch,
        "torch_foo 0.1.0 cannot be loaded: AttributeError: module 'torch.utils' has no attribute",
    ),
}

USES = {
    "a factory": "torch.ones(2, device='foo')",
    "an operator": "torch.ops.aten.empty.memory_format([2], device=torch.device('foo'))",
    "tensor.to": "torch.ones(2).to('foo')",
    "tensor.to an index": "torch.ones(2).to('foo:1')",
    "module.to": "torch.nn.Linear(1, 1).to('foo')",
    "a module's argument": "torch.nn.Linear(1, 1, device='foo')",
    "a generator": "torch.Generator('foo')",
    "a generator by keyword": "torch.Generator(device=torch.device('foo', 0))",
    "a stream": "torch.Stream(device='foo')",
    "a stream by position": "torch.Stream('foo:0')",
    "an event": "torch.Event(device='foo')",
    "a storage": "torch.UntypedStorage(2, device='foo')",
    "new_ones": "torch.ones(2).new_ones(2, device='foo')",
    "a default device": "default_device()",
    "synchronize": "torch.foo.synchronize()",
    "current_device": "torch.foo.current_device()",
    "set_device": "torch.foo.set_device(0)",
    "device": "torch.foo.device(0).__enter__()",
    "get_rng_state": "torch.foo.get_rng_state()",
    "get_rng_state_all": "torch.foo.get_rng_state_all()",
    "seed": "torch.foo.seed()",
    "torch.foo.Stream": "torch.foo.Stream()",
    "torch.foo.Event": "torch.foo.Event()",
    "current_stream": "torch.foo.current_stream()",
    "default_stream": "torch.foo.default_stream(0)",
    "mem_get_info": "torch.foo.mem_get_info()",
    "set_per_process_memory_fraction": "torch.foo.set_per_process_memory_fraction(0.5)",
    "init": "torch.foo.init()",
}

PROLOGUE = """
import warnings
import torch
warnings.simplefilter("ignore")
def default_device():
    with torch.device("foo"):
        return torch.ones(2)
def outcome(use):
    try:
        return repr(use())
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
"""

QUIET = """
print(torch.device("foo"), torch.foo.is_available(), torch.foo.device_count())
print(torch.foo.is_initialized(), torch.foo._is_in_bad_fork(), torch.accelerator.is_available()
      if hasattr(torch, "accelerator") else False)
torch.manual_seed(1); torch.foo.manual_seed_all(1)
with torch.foo.device(-1): print(torch.foo.get_amp_supported_dtype() is not None)
torch.foo.empty_cache(); torch.foo.reset_peak_memory_stats()
torch.foo.memory._record_memory_history()
torch.foo.set_stream(None)
with torch.foo.stream(None): pass
print(torch.foo.memory_allocated(), torch.foo.memory_stats(), torch.foo.memory_snapshot(),
      repr(torch.foo.memory_summary()), torch.foo.memory._snapshot()["device_traces"])
import torch_foo
print(torch_foo.is_loaded, (torch.ones(2) + 1).tolist())
"""
QUIET_LINES = [
    "foo False 0",
    "False False False",
    "True",
    "0 {} [] '' []",
    "False [2.0, 2.0]",
]


@pytest.mark.parametrize("name", SPOILT)
def test_torch_goes_on_and_the_cause_is_named(base: Interpreter, site: Site, name: str) -> None:
    spoil, cause = SPOILT[name]
    spoil(site)
    code = PROLOGUE + "print(outcome(lambda: torch.ones(2, device='foo')))" + QUIET
    lines, warning = base.warning(code, site)
    assert warning.startswith(cause)
    first, *rest = lines
    assert first == f"RuntimeError: device `foo` is not available: {warning.splitlines()[0]}"
    assert rest == QUIET_LINES


def test_each_first_use_names_the_cause(base: Interpreter, site: Site) -> None:
    site.pretend_release("1.0")
    uses = [f"print(outcome(lambda: {use}))" for use in USES.values()]
    lines, _ = base.warning("\n".join([PROLOGUE, *uses]), site)
    why = "torch_foo 0.1.0 was built for PyTorch 1.0, but this is PyTorch 2."
    cause = f"device `foo` is not available: {why}"
    named = [line.startswith(f"RuntimeError: {cause}") for line in lines]
    assert dict(zip(USES, named)) == dict.fromkeys(USES, True)


def test_handshake_says_what_helps(base: Interpreter, site: Site) -> None:
    site.pretend_release("1.0")
    lines, warning = base.warning("import torch; print(torch.__version__.split('+')[0])", site)
    minor = ".".join(lines[0].split(".")[:2])
    assert warning.splitlines() == [
        f"torch_foo 0.1.0 was built for PyTorch 1.0, but this is PyTorch {lines[0]}",
        'help: `pip install "torch==1.0.*"`, or `pip install --upgrade torch_foo` '
        f"for a build for PyTorch {minor}",
    ]


def test_a_library_for_each_of_several_releases(base: Interpreter, site: Site) -> None:
    shutil.copytree(site.library.parent, site.package / "lib" / "1.0")
    shutil.copytree(site.package / "lib" / "1.0", site.package / "lib" / "10.0")
    assert base.lines("import torch; print(torch.foo.is_available())", site) == ["True"]


def test_undefined_symbol_with_the_handshake_off(base: Interpreter, site: Site) -> None:
    undefined_symbol(site)
    off = {"BACKENDKIT_SKIP_HANDSHAKE": "1"}
    code = PROLOGUE + "print(outcome(lambda: torch.ones(2).to('foo')))"
    lines, warning = base.warning(code, site, environment=off)
    assert "undefined symbol: _ZN5torch7Libxxxx" in warning
    assert "undefined symbol: _ZN5torch7Libxxxx" in lines[0]
    assert warning.splitlines()[-1] == (
        "note: BACKENDKIT_SKIP_HANDSHAKE=1 turned off the check of PyTorch's release"
    )


def test_handshake_off_opens_the_newest_library(base: Interpreter, site: Site) -> None:
    site.pretend_release("1.0")
    off = {"BACKENDKIT_SKIP_HANDSHAKE": "1"}
    code = "import torch; print(torch.foo.is_available())"
    assert base.lines(code, site, environment=off) == ["True"]


def test_a_warning_that_is_an_error_does_not_stop_torch(base: Interpreter, site: Site) -> None:
    site.library.unlink()
    code = "import torch, torch_foo; print(torch_foo.is_loaded)"
    done = base.start(code, site, flags=("-W", "error"))
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    assert done.stderr.startswith("torch_foo: warning: torch_foo 0.1.0 has no /")


@pytest.mark.parametrize("order", ["import torch", "import torch_foo"])
def test_errors_for_those_who_want_them(base: Interpreter, site: Site, order: str) -> None:
    site.library.unlink()
    site.set_constant("ON_FAILURE", "error")
    done = base.start(order, site)
    assert done.returncode == 1
    assert "BackendError: torch_foo 0.1.0 has no /" in done.stderr
    assert "RuntimeError: Failed to load the backend extension: torch_foo" in done.stderr


def test_errors_stay_the_same_when_tried_again(base: Interpreter, site: Site) -> None:
    site.library.unlink()
    site.set_constant("ON_FAILURE", "error")
    code = (
        "import torch\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        import torch_foo\n"
        "    except ImportError as error:\n"
        "        print(str(error).startswith('torch_foo 0.1.0 has no /'))\n"
        "print((torch.ones(2) + 1).tolist(), torch.ones(1).is_pinned())"
    )
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    assert base.lines(code, site, environment=off) == ["True", "True", "[2.0, 2.0] False"]


OTHER = """
import torch
def _autoload():
    torch.utils.rename_privateuse1_backend("zoo")
    module = type(torch)("torch_zoo")
    module.is_available = lambda: True
    torch._register_device_module("zoo", module)
"""


def test_another_backend_was_first(base: Interpreter, site: Site) -> None:
    (site.folder / "torch_zoo").mkdir()
    (site.folder / "torch_zoo" / "__init__.py").write_text(OTHER)
    code = "import torch_zoo; torch_zoo._autoload(); import torch, torch_foo; print(torch.device("
    code += "'zoo'), torch.foo.is_available(), torch_foo.is_loaded, (torch.ones(2) + 1).tolist())"
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    lines, warning = base.warning(code, site, environment=off)
    assert lines == ["zoo False False [2.0, 2.0]"]
    assert warning.splitlines() == [
        "torch_foo 0.1.0 is not loaded: PyTorch supports one PrivateUse1 backend per process, and "
        "device `zoo` (torch_zoo) is already registered",
        "help: `pip uninstall` the backend that you do not need, or set "
        "TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import only torch_foo",
    ]


#: Uses of the device that PyTorch passes on to nobody: it does not know the name.
PYTORCH_REFUSES = [
    "a factory", "an operator", "tensor.to", "tensor.to an index", "module.to",
    "a module's argument", "a generator", "a generator by keyword", "a stream",
    "a stream by position", "an event", "a storage", "new_ones", "a default device",
]  # fmt: skip


@pytest.mark.parametrize(
    "order",
    ["import torch_foo", "import torch_foo.extras", "from torch_foo import is_loaded"],
)
def test_where_another_backend_was_first_the_first_use_names_the_cause(
    base: Interpreter, site: Site, order: str
) -> None:
    (site.folder / "torch_zoo").mkdir()
    (site.folder / "torch_zoo" / "__init__.py").write_text(OTHER)
    before = "import torch_zoo; torch_zoo._autoload()\n"
    uses = {name: use for name, use in USES.items() if name not in PYTORCH_REFUSES}
    uses["tensor.foo"] = "torch.ones(2).foo()"
    uses["module.foo"] = "torch.nn.Linear(1, 1).foo(device=0)"
    lines = [f"print(outcome(lambda: {use}))" for use in uses.values()]
    lines += [f"print(outcome(lambda: {USES[name]}))" for name in PYTORCH_REFUSES]
    quiet = (
        "from torch.foo.random import seed; print(torch.foo.device_count(), torch.device('zoo'))"
    )
    code = "\n".join([before, order, PROLOGUE, *lines, quiet])
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    said, _ = base.warning(code, site, environment=off)
    why = "torch_foo 0.1.0 is not loaded: PyTorch supports "
    cause = f"RuntimeError: device `foo` is not available: {why}"
    named = [line.startswith(cause) for line in said[: len(uses)]]
    assert dict(zip(uses, named)) == dict.fromkeys(uses, True)
    others = said[len(uses) : -1]
    assert len(others) == len(PYTORCH_REFUSES)
    assert [line for line in others if "device string: foo" not in line] == []
    assert said[-1] == "0 zoo"


def test_names_that_the_other_backend_has_stay_its_own(base: Interpreter, site: Site) -> None:
    (site.folder / "torch_zoo").mkdir()
    mine = (
        "    torch.foo = 'mine'\n    torch.Tensor.foo = torch.nn.Module.foo = lambda self: 'mine'\n"
    )
    (site.folder / "torch_zoo" / "__init__.py").write_text(OTHER + mine)
    code = "import torch_zoo; torch_zoo._autoload(); import torch, torch_foo; "
    code += "print(torch.foo, torch.ones(1).foo(), torch.nn.Identity().foo())"
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    lines, _ = base.warning(code, site, environment=off)
    assert lines == ["mine mine mine"]


@pytest.mark.parametrize("name", SPOILT)
def test_the_cause_is_named_with_autoload_off(base: Interpreter, site: Site, name: str) -> None:
    spoil, cause = SPOILT[name]
    spoil(site)
    code = PROLOGUE + "import torch_foo\nprint(outcome(lambda: torch.ones(2, device='foo')))"
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    lines, warning = base.warning(
        code.replace('warnings.simplefilter("ignore")', ""), site, environment=off
    )
    assert warning.startswith(cause)
    assert lines == [f"RuntimeError: device `foo` is not available: {warning.splitlines()[0]}"]


def test_two_backends_of_this_kind(base: Interpreter, site: Site, new_site) -> None:
    other = new_site()
    for path in list(other.folder.rglob("*")):
        if path.suffix in (".py", ".txt") or path.name == "METADATA":
            path.write_text(path.read_text().replace("foo", "bar"))
    other.package.rename(other.folder / "torch_bar")
    for path in other.folder.glob("*.dist-info"):
        path.rename(other.folder / path.name.replace("foo", "bar"))
    code = "import torch; print(torch.foo.is_available(), torch.bar.is_available())"
    lines, warning = base.warning(code, site, other)
    assert lines == ["True False"]
    assert warning.startswith("torch_bar 0.1.0 is not loaded: PyTorch supports one PrivateUse1")
    assert "device `foo` (torch_foo._device) is already registered" in warning


def test_no_device(base: Interpreter, site: Site) -> None:
    code = PROLOGUE + (
        "class NoDriver:\n"
        "    device_count = staticmethod(lambda: 0)\n"
        "    device_failure = staticmethod(lambda: '')\n"
        "    is_in_bad_fork = staticmethod(lambda: False)\n"
        "torch.foo._library = NoDriver\n"
        "torch.manual_seed(1)\n"
        "print(torch.foo.is_available(), outcome(lambda: torch.ones(2, device='foo')))\n"
    )
    assert base.lines(code, site) == [
        "False RuntimeError: device `foo` is not available: its driver finds no device"
    ]


VENDOR: dict[str, tuple[str, Optional[str]]] = {
    "good": ("__all__ = ['answer']\nanswer = 42\n", None),
    "raising": ("1 / 0\n", "ZeroDivisionError: division by zero"),
    "syntax error": ("def\n", "SyntaxError: invalid syntax"),
    "name of the device module": (
        "__all__ = ['answer', 'synchronize']\nanswer = 42\ndef synchronize(): pass\n",
        "ImportError: torch.foo already has `synchronize`, which is in its `__all__`",
    ),
    "name that is not there": (
        "__all__ = ['nothing']\n",
        "AttributeError: module 'torch_foo.mine' has no attribute 'nothing'",
    ),
}


@pytest.mark.parametrize("name", VENDOR)
def test_vendors_module(base: Interpreter, site: Site, name: str) -> None:
    text, wrong = VENDOR[name]
    site.set_constant("IMPORTS", ["torch_foo.mine"])
    site.write("mine.py", text)
    code = "import torch; print(torch.foo.is_available(), getattr(torch.foo, 'answer', None))"
    if wrong is None:
        assert base.lines(code, site) == ["True 42"]
        return
    lines, warning = base.warning(code, site)
    assert lines == ["True None"]
    assert warning.startswith(f"torch_foo 0.1.0 cannot import torch_foo.mine: {wrong}")


def test_vendors_module_as_error(base: Interpreter, site: Site) -> None:
    site.set_constant("IMPORTS", ["torch_foo.mine"])
    site.set_constant("ON_FAILURE", "error")
    site.write("mine.py", "1 / 0\n")
    done = base.start("import torch", site)
    assert done.returncode == 1
    assert "BackendError: torch_foo 0.1.0 cannot import torch_foo.mine: ZeroDiv" in done.stderr


@pytest.mark.parametrize(("interrupt", "status"), [("KeyboardInterrupt", -2), ("SystemExit(3)", 3)])
def test_interrupts_pass(base: Interpreter, site: Site, interrupt: str, status: int) -> None:
    site.set_constant("IMPORTS", ["torch_foo.mine"])
    site.write("mine.py", f"raise {interrupt}\n")
    assert base.start("import torch", site).returncode == status
