# SPDX-License-Identifier: Apache-2.0
"""Backends built once and looked at by many tests.

`./dev test` exports BACKENDKIT_TEST_BASE_PYTHON (a Python with PyTorch, pip, build and pytest, and
no backend) and BACKENDKIT_TEST_TOOLS_PYTHON (one that also has BackendKit, as pip installs it).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "templates" / "tools"))
from backendkit_tools.releases import after  # noqa: E402
from backendkit_tools.wheelfile import Member, read_wheel, wheel_bytes  # noqa: E402

#: The Python modules that every backend has.
GLUE = [
    "__init__",
    "_autograd",
    "_build",
    "_capabilities",
    "_defaults",
    "_device",
    "_distributed",
    "_dlpack",
    "_dynamo",
    "_fallback_page",
    "_fallback_report",
    "_hugging_face",
    "_import_lock",
    "_integrations",
    "_lazy",
    "_lightning",
    "_loader",
    "_memory",
    "_not_loaded",
    "_parallel",
    "_properties",
    "_random",
    "_release",
    "_requirement",
    "_runtime_package",
    "_sharing",
    "_streams",
    "_torchvision",
    "testing",
]
MINOR_OF = "import torch; print('.'.join(torch.__version__.split('.')[:2]))"
GROUPS = """
[entry-points.torch_dynamo_backends]
foo = "torch_foo.extras:device_names"

[entry-points."torchrun.logs_specs"]
foo_logs = "torch_foo.extras:device_names"

[entry-points.console_scripts]
foo-devices = "torch_foo.extras:device_names"
"""


def for_release(path: Path, minor: str, folder: Path) -> Path:
    """A wheel like that in `path`, as if it was built for another release; it cannot be loaded."""
    wheel = read_wheel(path)
    members = {}
    for name, member in wheel.members.items():
        moved = re.sub(r"/lib/\d+\.\d+/", f"/lib/{minor}/", name)
        members[moved] = member if moved == name else Member(f"for {minor}".encode(), member.mode)
    wheel.members = members
    headers = wheel.headers("METADATA")
    del headers["Requires-Dist"]
    headers["Requires-Dist"] = f"torch>={minor},<{after(minor)}"
    wheel.set_headers("METADATA", headers)
    folder.mkdir(parents=True)
    (folder / wheel.filename).write_bytes(wheel_bytes(wheel))
    return folder / wheel.filename


def from_environment(name: str) -> Path:
    value = os.environ.get(name, "")
    if not value:
        raise pytest.UsageError(f"{name} is not set: run these tests with ./dev test")
    return Path(value)


def run(
    *command: str | Path, cwd: Path, status: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program; its stdout and stderr are one text. Fails the test at another status."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout
    return done


class Environment:
    """A virtual environment of its own that sees what other environments have."""

    def __init__(self, folder: Path, *seen: Path) -> None:
        run(seen[0], "-m", "venv", "--without-pip", folder, cwd=folder.parent)
        self.programs = folder / "bin"
        self.python = self.programs / "python"
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.site = Path(run(self.python, "-c", ask, cwd=folder).stdout.strip())
        folders = [run(python, "-c", ask, cwd=folder).stdout.strip() for python in seen]
        # With what those environments see of others, in turn.
        lines = [f"import site; site.addsitedir({folder!r})\n" for folder in folders]
        (self.site / "seen.pth").write_text("".join(lines))

    def pip(self, *arguments: str | Path, cwd: Path, status: int = 0, **environment: str) -> str:
        """pip without a network, dependencies and isolation; what it printed."""
        command, *rest = arguments
        flags = ["--no-deps", "--no-build-isolation"] if command != "uninstall" else []
        flags += ["--no-index"] if command in ("install", "wheel") else []
        words = ["-m", "pip", "--disable-pip-version-check", command, *flags, *rest]
        return run(self.python, *words, cwd=cwd, status=status, **environment).stdout

    def says(self, code: str, cwd: Path, **environment: str) -> str:
        """What a new Python prints."""
        return run(self.python, "-c", code, cwd=cwd, **environment).stdout.strip()


@pytest.fixture(scope="session")
def base() -> Path:
    return from_environment("BACKENDKIT_TEST_BASE_PYTHON")


@pytest.fixture(scope="session")
def tools() -> Path:
    return from_environment("BACKENDKIT_TEST_TOOLS_PYTHON")


@pytest.fixture(scope="session")
def minor(base: Path) -> str:
    """The release of PyTorch that everything is built for, as in "2.13"."""
    return run(base, "-c", MINOR_OF, cwd=base.parent).stdout.strip()


@pytest.fixture(scope="session")
def builder(tools: Path, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Builds wheels; nothing is ever installed into it."""
    return Environment(tmp_path_factory.mktemp("builder") / "environment", base, tools)


@pytest.fixture
def environment(tools: Path, base: Path, tmp_path: Path) -> Environment:
    """A new environment with PyTorch and BackendKit, for a test to install into."""
    return Environment(tmp_path / "environment", base, tools)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scaffolded project with two kernels and with entry points of other groups."""
    folder = tmp_path_factory.mktemp("project") / "minimal"
    ignore = shutil.ignore_patterns("build", "__pycache__")
    shutil.copytree(ROOT / "examples" / "minimal", folder, ignore=ignore)
    with open(folder / "backend.toml", "a", encoding="utf-8") as description:
        description.write(GROUPS)
    return folder


@pytest.fixture(scope="session")
def wheel(project: Path, builder: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built where the project lies."""
    folder = tmp_path_factory.mktemp("wheel")
    builder.pip("wheel", "--wheel-dir", folder, project, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Another project like the one that is built, without any result."""
    folder = tmp_path / "copy"
    ignore = shutil.ignore_patterns("build", "__pycache__")
    shutil.copytree(ROOT / "examples" / "minimal", folder, ignore=ignore)
    return folder
