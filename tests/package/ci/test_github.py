# SPDX-License-Identifier: Apache-2.0
"""The file of `backendgen ci github`: linters accept it, and its shell steps work."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

BACKENDGEN = os.environ["BACKENDGEN"]
TOOLS = Path(os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"])


def output(*command: str | Path, **options: Any) -> str:
    done = subprocess.run(list(command), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ci") / "foo"
    output(BACKENDGEN, "new", folder)
    return folder


@pytest.fixture(scope="module")
def workflow(project: Path) -> Path:
    file = project / ".github" / "workflows" / "wheel.yml"
    file.parent.mkdir(parents=True)
    file.write_text(output(BACKENDGEN, "ci", "github", cwd=project))
    return file


def steps(workflow: Path) -> list[dict[str, Any]]:
    return yaml.safe_load(workflow.read_text())["jobs"]["wheel"]["steps"]


def tool(name: str) -> Path:
    return Path(sysconfig.get_path("scripts"), name)


def test_names_the_command_that_makes_it(workflow: Path) -> None:
    assert "`backendgen ci github`" in workflow.read_text().splitlines()[0]


def test_schema_of_workflows(workflow: Path) -> None:
    output(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", workflow)


def test_schema_refuses_a_spoilt_one(workflow: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "wheel.yml"
    spoilt.write_text(workflow.read_text().replace("runs-on:", "run-on:"))
    command = [tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", spoilt]
    assert subprocess.run(command, capture_output=True).returncode == 1


def test_linter(workflow: Path) -> None:
    output(tool("zizmor"), "--offline", "--no-config", "--persona", "auditor", workflow)


def test_matrix_is_the_releases_asked_for(project: Path) -> None:
    text = output(BACKENDGEN, "ci", "github", "--torch", "2.12.1,2.13.0", cwd=project)
    matrix = yaml.safe_load(text)["jobs"]["wheel"]["strategy"]["matrix"]
    assert matrix == {"torch": ["2.12.1", "2.13.0"]}


def test_uploads_what_was_audited(workflow: Path) -> None:
    last = steps(workflow)[-1]
    assert last["uses"].startswith("actions/upload-artifact@")
    assert last["with"]["path"] == "audited/*.whl"


def sandbox_python(folder: Path) -> Path:
    """A Python in which everything that the workflow installs from a registry is there."""
    output(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    below = [output(one, "-c", ask) for one in (sys.executable, TOOLS)]
    Path(output(python, "-c", ask).strip(), "below.pth").write_text("".join(below))
    return python


def test_shell_steps(project: Path, workflow: Path, tmp_path: Path) -> None:
    job = yaml.safe_load(workflow.read_text())["jobs"]["wheel"]
    (release,) = job["strategy"]["matrix"]["torch"]
    assert job["env"] == {"TORCH": "${{ matrix.torch }}"}
    folders = [sandbox_python(tmp_path / "sandbox").parent, TOOLS.parent, tool("python").parent]
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "TORCH": release}

    ran = [step["run"] for step in job["steps"] if "run" in step]
    for script in ran:
        assert "${{" not in script
        # As a runner does it: a file, given to `bash -e`.
        file = tmp_path / "step.sh"
        file.write_text(script)
        output("bash", "-e", file, cwd=project, env=environment)

    assert len(ran) == 4
    (wheel,) = (project / "audited").glob("*.whl")
    assert wheel.name.startswith("torch_foo-0.1.0-py3-none-manylinux")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if "libtorch_cpu" in name or "libc10" in name]
    assert [name for name in names if name.endswith("/libtorch_foo.so")]
