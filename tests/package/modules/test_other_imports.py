# SPDX-License-Identifier: Apache-2.0
"""What the package does while it is imported, and when a program imports other modules."""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from package_without_library import Package


class Spec:
    """A module's state while it is being imported."""

    _initializing = True


@pytest.fixture
def spec(monkeypatch: pytest.MonkeyPatch) -> Spec:
    module: Any = type(sys)("half_imported")
    module.__spec__ = Spec()
    monkeypatch.setitem(sys.modules, "half_imported", module)
    monkeypatch.delenv("TORCH_DEVICE_BACKEND_AUTOLOAD", raising=False)
    return module.__spec__


def test_the_package_is_open_to_others_for_a_while(package: Package, spec: Spec) -> None:
    with package.import_lock.without_import_lock("half_imported"):
        assert not spec._initializing
    assert spec._initializing


def test_the_package_is_closed_after_an_error(package: Package, spec: Spec) -> None:
    with pytest.raises(ZeroDivisionError), package.import_lock.without_import_lock("half_imported"):
        1 / 0  # noqa: B018
    assert spec._initializing


def test_the_package_stays_closed_if_pytorch_loads_no_backends(
    package: Package, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    with package.import_lock.without_import_lock("half_imported"):
        assert spec._initializing


HALF = """
import threading
from torch_foo.{gate} import without_import_lock
early = "early"
inside, go_on = threading.Event(), threading.Event()
with without_import_lock(__name__):
    inside.set()
    assert go_on.wait(60)
late = "late"
"""


def test_another_thread_gets_the_incomplete_module(package: Package, tmp_path: Path) -> None:
    gate = package.import_lock.__name__.rpartition(".")[2]
    (tmp_path / "half.py").write_text(HALF.format(gate=gate))
    first = threading.Thread(target=importlib.import_module, args=("half",))
    first.start()
    while not hasattr(sys.modules.get("half"), "inside"):
        pass
    assert sys.modules["half"].inside.wait(60)
    seen: list[bool] = []

    def work() -> None:
        half = importlib.import_module("half")
        seen.append(half.early == "early" and not hasattr(half, "late"))

    second = threading.Thread(target=work, daemon=True)
    second.start()
    second.join(10)
    sys.modules["half"].go_on.set()
    first.join()
    assert seen == [True]
    assert importlib.import_module("half").late == "late"


def write(package: Package, text: str = "value = 1\n") -> None:
    """A module `other`, which a program may import."""
    (package.folder.parent / "other.py").write_text(text)


def test_a_call_at_an_import(package: Package) -> None:
    """It is made once, and before the import returns; the finder is gone after it."""
    write(package)
    finders = list(sys.meta_path)
    calls: list[tuple[str, int]] = []
    package.lazy.when_imported("other", lambda module: calls.append(("first", module.value)))
    package.lazy.when_imported("other", lambda module: calls.append(("second", module.value)))
    assert importlib.import_module("json").dumps(1) == "1"
    assert (calls, sys.meta_path == finders) == ([], False)
    other = importlib.import_module("other")
    assert calls == [("first", 1), ("second", 1)]
    assert sys.meta_path == finders
    importlib.reload(other)
    assert len(calls) == 2


def test_a_call_for_a_module_that_is_there(package: Package) -> None:
    calls: list[object] = []
    finders = list(sys.meta_path)
    package.lazy.when_imported("json", calls.append)
    assert calls == [sys.modules["json"]]
    assert sys.meta_path == finders


def test_the_module_sees_its_own_loader(package: Package) -> None:
    write(package, "loader = type(__loader__).__name__, type(__spec__.loader).__name__\n")
    package.lazy.when_imported("other", lambda module: None)
    other = importlib.import_module("other")
    assert other.loader == ("SourceFileLoader", "SourceFileLoader")
    assert inspect.getsource(other).startswith("loader = ")


def test_an_import_that_fails_is_not_the_one(package: Package) -> None:
    write(package, "1 / 0\n")
    calls: list[object] = []
    package.lazy.when_imported("other", calls.append)
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("other")
    assert calls == []
    write(package, "value = 'longer, so that Python compiles it again'\n")
    importlib.invalidate_caches()
    assert calls == [importlib.import_module("other")]


def wait_inside(package: Package, rest: str) -> list[str]:
    """Writes a module that makes the package wait for it, as by importing torch; the calls."""
    calls: list[str] = []
    lazy, package_module = package.lazy, importlib.import_module("torch_foo")
    package_module.load = lambda: lazy.when_imported("other", lambda one: calls.append(one.late))
    write(package, f"import torch_foo\ntorch_foo.load()\n{rest}")
    return calls


def test_a_call_for_the_module_that_first_imports_torch(package: Package) -> None:
    """The backend is loaded in the midst of its import, so that it is found incomplete."""
    finders = list(sys.meta_path)
    calls = wait_inside(package, "late = 'late'\n")
    importlib.import_module("other")
    assert calls == ["late"]
    assert sys.meta_path == finders
    package.lazy.when_imported("other", lambda module: calls.append("now"))
    assert calls == ["late", "now"]


def test_a_call_for_a_module_whose_first_import_fails(package: Package) -> None:
    calls = wait_inside(package, "1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("other")
    assert calls == []
    write(package, "late = 'at the second import, of a longer module'\n")
    importlib.invalidate_caches()
    assert calls == [importlib.import_module("other").late]


def refuse(module: object) -> None:
    raise LookupError("no such list")


def test_a_call_that_fails_is_a_warning(package: Package) -> None:
    write(package)
    calls: list[object] = []
    package.lazy.when_imported("other", refuse)
    package.lazy.when_imported("other", calls.append)
    with pytest.warns(RuntimeWarning) as caught:
        other = importlib.import_module("other")
    (text,) = [str(one.message) for one in caught]
    assert text.startswith("torch_foo ")
    assert " other: LookupError: no such list" in text
    assert calls == [other]


def test_a_warning_that_is_an_error_is_printed(
    package: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    write(package)
    package.lazy.when_imported("other", refuse)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert importlib.import_module("other").value == 1
    assert "other: LookupError: no such list" in capsys.readouterr().err


def test_every_promised_function_is_there(package: Package) -> None:
    """Otherwise a program that imports the other package would only get a warning."""
    integrations: Any = package.integrations
    promised: list[Any] = []
    integrations.when_imported = lambda name, call: promised.append((name, *call))
    integrations._deferred = lambda module, function: (module, function)
    integrations.register()
    assert len(promised) > 20
    missing = [
        (name, module, function)
        for name, module, function in promised
        if not callable(getattr(importlib.import_module(f"torch_foo.{module}"), function, None))
    ]
    assert missing == []
    assert len(set(promised)) == len(promised)


def test_a_vendors_module_that_is_half_imported(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its names are added at the first use of one after its import."""
    with pytest.warns(RuntimeWarning, match="torch_foo 0.1.0"):
        loader = package.loader
    vendor: Any = type(sys)("vendor")
    vendor.__spec__ = Spec()
    monkeypatch.setitem(sys.modules, "vendor", vendor)
    loader.publish("vendor")
    with pytest.raises(AttributeError, match="answer"):
        _ = package.device.answer
    vendor.__all__, vendor.answer = ["answer"], 42
    vendor.__spec__._initializing = False
    assert package.device.answer == 42
    assert package.device._unpublished == set()
