# SPDX-License-Identifier: Apache-2.0
"""The files of `backendgen ci`: linters accept them, and their shell steps are what they say.

`./dev ci-steps` runs the steps, which takes minutes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

BACKENDGEN = os.environ["BACKENDGEN"]
ROOT = Path(__file__).resolve().parents[3]
FILES = {
    "github": ["github"],
    "github-nightly": ["github", "--nightly"],
    "github-crcr": ["github", "--crcr"],
    "gitlab": ["gitlab"],
    "gitlab-nightly": ["gitlab", "--nightly"],
}
# The same for a project with [wheel.runtime].
FILES |= {f"{name}-runtime": words for name, words in FILES.items()}
RUNTIME = """
[wheel.runtime]
version = "4.2.0"
libraries = ["driver/lib/libfoodriver.so.4"]
"""
GITHUB = [name for name in FILES if name.startswith("github")]


def output(*command: str | Path, **options: Any) -> str:
    done = subprocess.run(list(command), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tool(name: str) -> Path:
    return Path(sysconfig.get_path("scripts"), name)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ci") / "foo"
    output(BACKENDGEN, "new", folder)
    return folder


@pytest.fixture(scope="module")
def files(project: Path) -> dict[str, Path]:
    other = project.parent / "with_runtime"
    shutil.copytree(project, other)
    with open(other / "backend.toml", "a", encoding="utf-8") as description:
        description.write(RUNTIME)
    made = {}
    for name, arguments in FILES.items():
        folder = other if name.endswith("-runtime") else project
        made[name] = folder / ".github" / "workflows" / f"{name}.yml"
        made[name].parent.mkdir(parents=True, exist_ok=True)
        made[name].write_text(output(BACKENDGEN, "ci", *arguments, cwd=folder))
    return made


def read(file: Path) -> dict[str, Any]:
    return yaml.safe_load(file.read_text())


def scripts(content: dict[str, Any]) -> list[str]:
    """What the jobs of a file give to a shell."""
    found = []
    for job in content.get("jobs", content).values():
        if not isinstance(job, dict):
            continue
        found += [step["run"] for step in job.get("steps", []) if "run" in step]
        for key in ("before_script", "script"):
            if key in job:
                found.append("\n".join(job[key]))
    return found


def schema_of(name: str) -> list[str]:
    if name in GITHUB:
        return ["--builtin-schema", "vendor.github-workflows"]
    return ["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"]


@pytest.mark.parametrize("name", FILES)
def test_names_the_command_that_makes_it(files: dict[str, Path], name: str) -> None:
    command = " ".join(["backendgen", "ci", *FILES[name]])
    assert f"`{command}`" in files[name].read_text().splitlines()[0]


@pytest.mark.parametrize("name", FILES)
def test_schema(files: dict[str, Path], name: str) -> None:
    output(tool("check-jsonschema"), *schema_of(name), files[name])


@pytest.mark.parametrize(("name", "word"), [("github", "runs-on:"), ("gitlab", "parallel:")])
def test_schema_refuses_a_spoilt_one(
    files: dict[str, Path], tmp_path: Path, name: str, word: str
) -> None:
    spoilt = tmp_path / "spoilt.yml"
    spoilt.write_text(files[name].read_text().replace(word, f"x{word}"))
    command = [tool("check-jsonschema"), *schema_of(name), spoilt]
    assert subprocess.run(command, capture_output=True).returncode == 1


@pytest.mark.parametrize("name", GITHUB)
def test_linter(files: dict[str, Path], name: str) -> None:
    output(tool("zizmor"), "--offline", "--no-config", "--persona", "auditor", files[name])


def test_linter_finds_an_action_that_can_be_moved(files: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    spoilt = re.sub(r"(actions/checkout@)[0-9a-f]{40}", r"\1v5", files["github"].read_text())
    (folder / "wheels.yml").write_text(spoilt)
    command = [tool("zizmor"), "--offline", "--no-config", folder / "wheels.yml"]
    assert subprocess.run(command, capture_output=True).returncode != 0


@pytest.mark.parametrize("name", FILES)
def test_shell(files: dict[str, Path], name: str) -> None:
    found = scripts(read(files[name]))
    assert len(found) >= 3
    for script in found:
        assert "${{" not in script  # values come by variables, so that no text becomes code
        output("shellcheck", "--shell=bash", "-", input=f"set -e\n{script}\n")


def releases() -> list[str]:
    text = (ROOT / "generator" / "torch" / "releases.cpp").read_text(encoding="utf-8")
    return [".".join(row) for row in re.findall(r"\{\{(\d+), (\d+), (\d+)\}, ", text)]


def matrix(file: Path) -> list[str]:
    return read(file)["jobs"]["build"]["strategy"]["matrix"]["torch"]


def test_matrix_is_every_tested_release(files: dict[str, Path]) -> None:
    assert len(releases()) >= 11
    assert matrix(files["github"]) == releases()
    rows = read(files["gitlab"])["build"]["parallel"]["matrix"]
    assert [row["ARCH"] for row in rows] == ["x86_64", "aarch64"]
    assert [row["TORCH"] for row in rows] == [releases(), releases()]


@pytest.mark.parametrize(
    ("requires", "wanted"),
    [
        (">=2.12,<2.14", ["2.12.1", "2.13.0"]),
        ("==2.12.0", ["2.12.0"]),
        (">=2.5,!=2.12.1,<2.6", ["2.5.1"]),
        (">=2.12,!=2.12.1,<2.13", ["2.12.0"]),
    ],
)
def test_matrix_is_what_the_description_admits(
    project: Path, tmp_path: Path, requires: str, wanted: list[str]
) -> None:
    text = (project / "backend.toml").read_text()
    changed = re.sub(r'(?m)^requires = ".*"', f'requires = "{requires}"', text)
    assert f'requires = "{requires}"' in changed
    (tmp_path / "backend.toml").write_text(changed)
    made = tmp_path / "wheels.yml"
    made.write_text(output(BACKENDGEN, "ci", "github", cwd=tmp_path))
    assert matrix(made) == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("github", ["publish"]), ("github-runtime", ["publish-runtime", "publish"])],
)
def test_only_the_publishing_jobs_have_an_identity(
    files: dict[str, Path], name: str, wanted: list[str]
) -> None:
    content = read(files[name])
    assert content["permissions"] == {}
    jobs = content["jobs"]
    assert [name for name in jobs if "id-token" in jobs[name].get("permissions", {})] == wanted
    environments = [jobs[name]["environment"] for name in wanted]
    assert len({*environments}) == len(wanted)
    for name in wanted:
        assert "refs/tags/v" in jobs[name]["if"]
        assert [step for step in jobs[name]["steps"] if "run" in step] == []


@pytest.mark.parametrize("name", ["github-crcr", "github-crcr-runtime"])
def test_code_of_a_pull_request_runs_without_an_identity(files: dict[str, Path], name: str) -> None:
    jobs = read(files[name])["jobs"]
    assert jobs["test"]["permissions"] == {"contents": "read"}
    for name in ("begin", "end"):
        assert [step for step in jobs[name]["steps"] if "run" in step] == []


def test_what_is_published_was_tested(files: dict[str, Path]) -> None:
    jobs = read(files["github"])["jobs"]
    titles = [step.get("name") or step["uses"] for step in jobs["package"]["steps"]]
    assert titles.index("Test the wheel in fresh environments") < len(titles) - 1
    last = jobs["package"]["steps"][-1]
    assert last["uses"].startswith("actions/upload-artifact@")
    assert last["with"]["path"] == "dist/*.whl"
    assert jobs["publish"]["needs"] == "package"


def test_the_drivers_package_is_tested_and_published_first(files: dict[str, Path]) -> None:
    jobs = read(files["github-runtime"])["jobs"]
    assert jobs["package"]["needs"] == ["build", "runtime"]
    assert jobs["publish-runtime"]["needs"] == ["runtime", "package"]
    assert jobs["publish"]["needs"] == ["package", "publish-runtime"]
    assert jobs["publish-runtime"]["if"].endswith(" && needs.runtime.outputs.new")
    kept, (taken, _) = jobs["runtime"]["steps"][-1], jobs["publish-runtime"]["steps"]
    assert kept["with"]["path"] == taken["with"]["path"] + "/"
    pipeline = read(files["gitlab-runtime"])
    assert pipeline["package"]["needs"] == ["build", "runtime"]
    assert pipeline["publish-runtime"]["needs"] == ["runtime", "package"]
    assert pipeline["publish"]["needs"] == ["package", "publish-runtime"]
    environments = [pipeline[name]["environment"] for name in ("publish", "publish-runtime")]
    assert environments == ["pypi", "pypi-runtime"]
    for name in ("github-runtime", "gitlab-runtime"):
        (tests,) = [text for text in scripts(read(files[name])) if "-m pytest tests" in text]
        assert re.search(r"dist/\*\.whl \\\n +\S*runtime\S*/\*\.whl\n", tests)


@pytest.mark.parametrize("name", FILES)
def test_the_drivers_wheel_is_built_where_it_is_installed(
    files: dict[str, Path], name: str
) -> None:
    text = "\n".join(scripts(read(files[name])))
    assert ("backendgen wheel --runtime" in text) == name.endswith("-runtime")


def make_runtime_wheel(folder: Path, library: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "foo_runtime-4.2.0-py3-none-any.whl"
    info = "foo_runtime-4.2.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("foo_runtime/lib/libfoodriver.so.4", library)
        head = "Metadata-Version: 2.1\nName: foo-runtime\nVersion: 4.2.0\n"
        archive.writestr(f"{info}/METADATA", head)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.mark.parametrize("service", ["github", "gitlab"])
@pytest.mark.parametrize("published", [None, "as here", "another"])
def test_a_published_version_is_tested_and_not_published_again(
    files: dict[str, Path], tmp_path: Path, service: str, published: str | None
) -> None:
    content = read(files[f"{service}-runtime"])
    index, tools = tmp_path / "index", tmp_path / "tools"
    for folder in (index, tools):
        folder.mkdir()
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(tool("python").parent), os.environ["PATH"]]),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "RUNNER_TEMP": str(tools),
        "TOOLS": str(tools),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "CI_COMMIT_TAG": "v0.1.0",
        "ARCH": "x86_64",
    }
    if service == "github":
        steps = content["jobs"]["runtime"]["steps"]
        (script,) = [step["run"] for step in steps if step.get("id") == "index"]
        place = tmp_path / "runtime"
    else:
        script = content["runtime"]["script"][-1]
        place = tmp_path / "runtime" / "x86_64"
    made = make_runtime_wheel(place / "new", "as here")
    there = make_runtime_wheel(index, published) if published else None
    script = f"exec 2>&1\n{script}"
    said = output("bash", "-eo", "pipefail", "-c", script, cwd=tmp_path, env=environment)
    found = sorted(path.relative_to(place) for path in place.glob("*/*"))
    new = (tmp_path / "output").read_text() if (tmp_path / "output").is_file() else ""
    if there is None:
        assert found == [Path("new", made.name)]
        assert "The index has no wheel of foo_runtime 4.2.0 for this machine" in said
        assert new == ("new=true\n" if service == "github" else "")
    else:
        assert found == [Path("published", made.name)]
        assert (place / found[0]).read_bytes() == there.read_bytes()
        assert new == ""
    differs = "foo_runtime 4.2.0 on the index has other libraries than this commit"
    assert (differs in said) == (published == "another")


@pytest.mark.parametrize("end", ["", "-runtime"])
def test_nightly_makes_nothing_red(files: dict[str, Path], end: str) -> None:
    content = read(files[f"github-nightly{end}"])
    assert [job["continue-on-error"] for job in content["jobs"].values()] == [True]
    assert read(files[f"gitlab-nightly{end}"])["nightly"]["allow_failure"] is True
    assert "nightly" not in read(files[f"gitlab{end}"])


def test_commands_of_the_page(project: Path) -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    commands = re.findall(r"(?ms)^```console\n(.*?)^```", page)[0]
    path = os.pathsep.join([str(Path(BACKENDGEN).parent), os.environ["PATH"]])
    output("bash", "-ec", commands, cwd=project, env={**os.environ, "PATH": path})
    for line in commands.splitlines():
        _, _, file = line.partition(" > ")
        assert not file or read(project / file)
