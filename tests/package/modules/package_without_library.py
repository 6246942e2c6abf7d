# SPDX-License-Identifier: Apache-2.0
"""The modules of templates/python/common as a package, with a stand-in for the built library."""

import importlib
import itertools
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[3]
COMMON = ROOT / "templates" / "python" / "common"
BUILD = ROOT / "tests" / "package" / "python" / "_build.py"

#: What the tests call the modules: `package.import_lock`.
MODULES = {
    "not_loaded": "_not_loaded",
    "autograd": "_autograd",
    "capabilities": "_capabilities",
    "defaults": "_defaults",
    "device": "_device",
    "distributed": "_distributed",
    "dlpack": "_dlpack",
    "dynamo": "_dynamo",
    "fallback_page": "_fallback_page",
    "fallback_report": "_fallback_report",
    "import_lock": "_import_lock",
    "hugging_face": "_hugging_face",
    "integrations": "_integrations",
    "lazy": "_lazy",
    "lightning": "_lightning",
    "loader": "_loader",
    "memory": "_memory",
    "parallel": "_parallel",
    "properties": "_properties",
    "random": "_random",
    "release": "_release",
    "sharing": "_sharing",
    "streams": "_streams",
    "testing": "testing",
    "torchvision": "_torchvision",
}


_NUMBERS = itertools.count()


class Library:
    """Stands for the library's operators: keeps the calls, and returns what a test has set.

    It has two devices, with a current stream each.
    """

    def __init__(self) -> None:
        self.name = f"_stand_in_{next(_NUMBERS)}"  # the namespace of operators
        self.calls: list[tuple[Any, ...]] = []
        #: What other operators return, by their names; a function is called. The default is None.
        self.answers: dict[str, Any] = {"device_count": 2, "is_in_bad_fork": False}
        self.current = 0
        self.streams = [0, 0]

    def current_device(self) -> int:
        return self.current

    def exchange_device(self, index: int) -> int:
        before, self.current = self.current, index
        return before

    def current_stream(self, index: int) -> int:
        return self.streams[index]

    def exchange_stream(self, index: int, stream: int) -> int:
        before, self.streams[index] = self.streams[index], stream
        return before

    def __getattr__(self, name: str) -> Any:
        def operator(*arguments: Any) -> Any:
            self.calls.append((name, *arguments))
            answer = self.answers.get(name)
            return answer(*arguments) if callable(answer) else answer

        return operator

    def called(self, name: str) -> int:
        """How often an operator was called."""
        return sum(call[0] == name for call in self.calls)


class Package:
    """The package `torch_foo`; its modules are attributes, imported when a test first uses them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "torch_foo"
        self.library = Library()
        self.folder.mkdir()
        for path in [*COMMON.glob("*.py"), BUILD]:
            shutil.copy(path, self.folder)
        (self.folder / "__init__.py").write_text("")

    def set_constants(self, **constants: object) -> None:
        """Sets what backend.toml says; before the modules are imported."""
        with open(self.folder / "_build.py", "a", encoding="utf-8") as file:
            file.writelines(f"{name} = {value!r}\n" for name, value in constants.items())

    def __getattr__(self, name: str) -> types.ModuleType:
        if name not in MODULES:
            raise AttributeError(name)
        if str(self.folder.parent) not in sys.path:
            sys.path.insert(0, str(self.folder.parent))
        device: Any = importlib.import_module(f"torch_foo.{MODULES['device']}")
        device._ops = self.library
        return importlib.import_module(f"torch_foo.{MODULES[name]}")

    def name_device(self) -> None:
        """Makes PyTorch accept `torch.device("foo")`, and take it for the accelerator."""
        torch.utils.rename_privateuse1_backend("foo")
        torch._register_device_module("foo", self.device)
