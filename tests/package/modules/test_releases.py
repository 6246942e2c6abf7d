# SPDX-License-Identifier: Apache-2.0
"""`_release.py`, with stand-ins for PyTorch's modules as other releases have them."""

from __future__ import annotations

import sys
import types

import pytest
import torch
from package_without_library import Package


def test_functions_that_a_release_has(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._C, "_one", None, raising=False)
    monkeypatch.setattr(torch._C, "_other", None, raising=False)
    assert package.release.known_to_c(["_other", "_of_another_release", "_one"]) == [
        "_other",
        "_one",
    ]


def test_classes_of_an_interface(package: Package) -> None:
    """2.5 has a metaclass that accepts only subclasses of the bases."""
    bases = types.ModuleType("torch._streambase")
    bases._EventBase, bases._StreamBase = type("E", (), {}), type("S", (), {})
    sys.modules["torch._streambase"] = bases
    new, old = types.SimpleNamespace(), types.SimpleNamespace(DeviceInterfaceMeta=type)
    expected = {"Event": torch.Event, "Stream": torch.Stream}
    assert package.release.classes_of_interface(new) == expected
    found = package.release.classes_of_interface(old)
    assert list(found) == ["Event", "Stream"]
    assert issubclass(found["Event"], bases._EventBase)
    assert issubclass(found["Stream"], bases._StreamBase)


GUARDED, FOLDED = {"guarded": None}, {"folded": None}


@pytest.mark.parametrize(
    ("names", "tables"),
    [
        ({}, []),
        ({"constant_fold_functions": FOLDED}, []),
        (
            {"constant_fold_functions": FOLDED, "constant_fold_functions_need_guards": GUARDED},
            [GUARDED, FOLDED],
        ),
        (
            {"constant_fold_functions": ["a list"], "constant_fold_functions_need_guards": GUARDED},
            [GUARDED],
        ),
    ],
)
def test_tables_of_guarded_calls(
    package: Package, names: dict[str, object], tables: list[object]
) -> None:
    for name in ("", ".variables", ".variables.torch"):
        sys.modules[f"a_dynamo{name}"] = types.ModuleType(f"a_dynamo{name}")
    vars(sys.modules["a_dynamo.variables.torch"]).update(names)
    found = package.release.guarded_calls(sys.modules["a_dynamo"])
    assert list(map(id, found)) == list(map(id, tables))


def test_overrides_of_inductor(package: Package) -> None:
    newer = types.SimpleNamespace(_initialize_device_op_overrides=None)
    assert package.release.asks_for_overrides(newer)
    assert not package.release.asks_for_overrides(types.SimpleNamespace())
