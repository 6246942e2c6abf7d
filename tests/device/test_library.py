# SPDX-License-Identifier: Apache-2.0
"""The backend's library without its Python package, as a program in C++ opens it."""

import ctypes
import os
import shutil
import subprocess
import sys

import pytest
import torch

ONE_BACKEND = "PyTorch supports one PrivateUse1 backend per process, and"

PRELUDE = """
import ctypes, importlib, sys, warnings
import torch
NAME, PACKAGE, *LIBRARIES = sys.argv[1:]

def has_kernels():
    operator = "aten::empty.memory_format"
    return torch._C._dispatch_has_kernel_for_dispatch_key(operator, "PrivateUse1")

def named():
    return torch._C._get_privateuse1_backend_name()

def open_library(path):
    torch.ops.load_library(path)
    ask = getattr(ctypes.CDLL(path), NAME + "_backend_problem")
    ask.restype = ctypes.c_char_p
    return ask()
"""


@pytest.fixture
def library(name):
    """The path of the backend's library."""
    if not hasattr(getattr(torch, name), "capabilities"):
        pytest.skip(f"torch.{name} was not made with BackendKit")
    opened = sorted(torch.ops.loaded_libraries)
    found = [one for one in opened if hasattr(ctypes.CDLL(one), f"{name}_backend_problem")]
    assert len(found) == 1, opened
    return found[0]


@pytest.fixture
def run(name, library, tmp_path):
    """Runs a program in a fresh process that loads no package; its lines, and what it warned of."""
    copy = shutil.copy(library, tmp_path)
    package = getattr(torch, name).__name__.partition(".")[0]

    def start(program):
        command = [sys.executable, "-c", PRELUDE + program, name, package, library, copy]
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines(), done.stderr

    return start


def test_it_gives_the_device_its_name(run, name):
    program = "print(named(), open_library(LIBRARIES[0]), named(), torch.device(NAME))"
    assert run(program) == ([f"privateuseone None {name} {name}"], "")


def test_a_name_that_the_program_gave_before_is_the_same(run, name):
    program = """
torch.utils.rename_privateuse1_backend(NAME)
print(open_library(LIBRARIES[0]), open_library(LIBRARIES[0]), has_kernels())
torch.utils.rename_privateuse1_backend(NAME)
"""
    assert run(program) == (["None None True"], "")


def test_it_leaves_pytorch_to_a_device_of_another_name(run, name):
    program = """
torch.utils.rename_privateuse1_backend("taken")
print(open_library(LIBRARIES[0]).decode())
print(named(), has_kernels())
"""
    why = f"{ONE_BACKEND} device `taken` is already registered"
    lines, warned = run(program)
    assert lines == [why, "taken False"]
    assert f"device `{name}` is not available: {why}" in warned


def test_a_second_copy_registers_nothing(run):
    program = "print(*map(open_library, LIBRARIES), has_kernels(), sep='\\n')"
    lines, warned = run(program)
    why = f"{ONE_BACKEND} another library has already registered"
    assert lines[0] == "None"
    assert why in lines[1]
    assert lines[2] == "True"
    assert why in warned


def test_the_package_takes_the_library_that_is_open(run):
    program = """
print(open_library(LIBRARIES[0]))
print(importlib.import_module(PACKAGE).is_loaded, torch.ones(2, device=NAME).sum().item())
"""
    assert run(program)[0] == ["None", "True 2.0"]


def test_the_package_says_that_another_copy_is_open(run):
    program = """
print(open_library(LIBRARIES[1]))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        print(importlib.import_module(PACKAGE).is_loaded)
        text = str(caught[-1].message)
    except ImportError as error:
        print(False)
        text = str(error)
print(text.partition("is not loaded: ")[2])
"""
    lines, _ = run(program)
    assert lines[:2] == ["None", "False"]
    assert "another library has already registered one" in lines[2]
    assert lines[3].startswith("help: `pip uninstall` the backend that you do not need")
