# SPDX-License-Identifier: Apache-2.0
"""docs/testing.md: what it shows runs on the starter project's backend, as installed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
PYTHON = os.environ["BACKENDKIT_TEST_PYTHON"]
TOOLS = os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"]
#: What PyTorch's repository has in files such as test_torch.py.
GENERIC = """
import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase, run_tests

class TestSome(TestCase):
    def test_device(self, device):
        assert torch.ones(2, device=device).device == torch.device("foo:0")

    @ops([op for op in op_db if op.name in ("add", "mm")], allowed_dtypes=(torch.float32,))
    def test_operator(self, device, dtype, op):
        sample = next(iter(op.sample_inputs(device, dtype)))
        there = op(sample.input, *sample.args, **sample.kwargs)
        here = sample.transform(lambda x: x.cpu() if isinstance(x, torch.Tensor) else x)
        self.assertEqual(there.cpu(), op(here.input, *here.args, **here.kwargs))

{more}
instantiate_device_type_tests(TestSome, globals(), only_for=("foo",))
"""
EXCLUDED = """
    def test_without(self, device):
        raise AssertionError("this test is excluded")
"""
CONFTEST = """
from torch_foo.testing import configure_pytorch_tests

configure_pytorch_tests(test_exclusions={"TestSome": ["test_without"]})
"""


def purelib(python: str) -> str:
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return subprocess.check_output([python, "-c", ask], text=True).strip()


def run(command: str, cwd: Path, status: int = 0) -> str:
    """A command of the page, in the Python that has the backend, and BackendKit beside it."""
    words = shlex.split(command)
    variables = {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    assert words[0] == "python"
    environment = {**os.environ, **variables, "PYTHONPATH": purelib(TOOLS)}
    done = subprocess.run(
        [PYTHON, *words[1:]],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def command(beginning: str) -> str:
    (found,) = re.findall(rf"^{re.escape(beginning)}.*$", TEXT, re.M)
    return found


def test_capabilities(tmp_path: Path) -> None:
    shown = re.findall(r"^>>> (.*)\n(.*)$", TEXT, re.M)
    assert len(shown) == 2
    for expression, result in shown:
        code = f"import torch; print(repr({expression}))"
        assert run(f"python -c {shlex.quote(code)}", tmp_path).splitlines()[-1] == result
    (groups,) = re.findall(r"whether this one has it: (.*?) \|", TEXT)
    code = "import torch; print(*torch.foo.capabilities().runtime)"
    told = run(f"python -c {shlex.quote(code)}", tmp_path).split()
    assert re.findall(r"`(\w+)`", groups) == told


def test_the_device_tests(tmp_path: Path) -> None:
    text = run(command("python -m backendkit.device_tests --device foo test_memory.py"), tmp_path)
    assert re.search(r"^\d+ passed, \d+ deselected", text.splitlines()[-1].strip("= "))
    assert list(tmp_path.iterdir()) == []


def test_all_device_tests_are_there(tmp_path: Path) -> None:
    told = run("python -m backendkit.device_tests --device foo --collect-only -q", tmp_path)
    (count,) = re.findall(r"^(\d+) tests collected", told, re.M)
    (most,) = re.findall(r"more than ([\d,]+), of tensors", TEXT)
    assert int(count) > int(most.replace(",", "")) >= 400
    assert f"more than {most} tests of a device" in (ROOT / "README.md").read_text()


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    text = run("python -m backendkit.device_tests --device bar", tmp_path, status=4)
    assert "there is no torch.bar: is its backend installed?" in text


def test_pytorch_s_own_tests(tmp_path: Path) -> None:
    asked = command("PYTORCH_TESTING_DEVICE_ONLY_FOR=foo python")
    (tmp_path / "test_torch.py").write_text(GENERIC.replace("{more}", ""))
    assert "3 passed" in run(asked, tmp_path).splitlines()[-1]
    (tmp_path / "test_torch.py").write_text(GENERIC.replace("{more}", EXCLUDED))
    (tmp_path / "conftest.py").write_text(CONFTEST)
    text = run(asked.replace("-p torch_foo.testing", ""), tmp_path)
    assert "3 passed" in text.splitlines()[-1]
    assert "failed" not in text
