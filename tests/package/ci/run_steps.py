# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of a workflow of `backendgen ci github` in a bare root; `./dev ci-steps`.

The root is a Debian of nothing but a compiler, git, make and Python, so that a package that a step
uses and does not install is missing there, as in the workflow's container. What differs from it:
Debian instead of AlmaLinux, so that `dnf install` is a script that asks apt; one Python at every
place below /opt/python; PyTorch and packages come from where pip is configured to find them here.
Actions that check out, cache, upload and download copy folders. Needs root and mmdebstrap.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

PACKAGES = "ca-certificates,g++,git,make,python3,python3-venv"
PYTHONS = range(10, 15)
BINDS = ["/proc", "/dev", "/sys"]

DNF = """#!/bin/sh
# `dnf install -y NAME`: Debian has ccache under the same name, and no EPEL.
set -e
[ "$1 $2" = "install -y" ] || { echo "dnf: unexpected: $*" >&2; exit 2; }
[ "$3" != epel-release ] || exit 0
apt-get update -q && apt-get install -q -y --no-install-recommends "$3"
"""


class Failed(Exception):
    """What went wrong, for people."""


@dataclass
class Root:
    """A bare Debian; its folder `/github` takes what a runner keeps outside a container."""

    path: Path
    shared: list[Path]  # folders of this machine that it sees, at the same place
    mounted: list[Path] = field(default_factory=list)

    def make(self) -> None:
        if not (self.path / "opt" / "python").is_dir():
            shutil.rmtree(self.path, ignore_errors=True)
            command = ["mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm"]
            subprocess.run([*command, str(self.path)], check=True, stdout=subprocess.DEVNULL)
            for number in PYTHONS:
                bin = self.path / "opt" / "python" / f"cp3{number}-cp3{number}" / "bin"
                bin.mkdir(parents=True)
                (bin / "python").symlink_to("/usr/bin/python3")
            dnf = self.path / "usr" / "bin" / "dnf"
            dnf.write_text(DNF)
            dnf.chmod(0o755)
        shutil.rmtree(self.path / "github", ignore_errors=True)
        for folder in ("workspace", "temp", "files"):
            (self.path / "github" / folder).mkdir(parents=True)
        for name in ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
            if Path(name).is_file():
                shutil.copy(name, self.path / name.lstrip("/"))

    @contextmanager
    def entered(self) -> Iterator[None]:
        try:
            for place in [*map(Path, BINDS), *self.shared]:
                target = self.path / str(place).lstrip("/")
                target.mkdir(parents=True, exist_ok=True)
                subprocess.run(["mount", "--bind", str(place), str(target)], check=True)
                self.mounted.append(target)
            yield
        finally:
            while self.mounted:
                subprocess.run(["umount", str(self.mounted.pop())], check=True)


class Job:
    """One job of a workflow for one row of its matrix."""

    def __init__(self, name: str, job: dict[str, Any], row: dict[str, str], run: Run) -> None:
        self.name, self.job, self.row, self.run = name, job, row, run
        self.path: list[str] = []
        self.outcomes: dict[str, str] = {}
        self.env: dict[str, str] = {}

    def value(self, expression: str) -> str:
        """The value of an expression of the kinds that the templates use."""
        kind, _, name = expression.partition(".")
        if kind == "matrix" and name in self.row:
            return self.row[name]
        if kind == "steps" and name.endswith(".outcome"):
            return self.outcomes.get(name.removesuffix(".outcome"), "skipped")
        if kind == "env" and name in self.env:
            return self.env[name]
        if expression == "github.sha":
            return "0" * 40
        raise Failed(f"no value for ${{{{ {expression} }}}}")

    def filled(self, text: object) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: self.value(found[1]), str(text))

    def wanted(self, condition: str | None, failed: bool) -> bool:
        if condition == "always()":
            return True
        known = {None: True, "github.ref_type != 'tag'": not self.run.tag}
        known["github.ref_type == 'tag'"] = bool(self.run.tag)
        if condition not in known:
            raise Failed(f"unknown condition: {condition}")
        return known[condition] and not failed

    def execute(self) -> None:
        workspace = self.run.root.path / "github" / "workspace"
        for folder in (workspace, self.run.root.path / "github" / "temp"):
            shutil.rmtree(folder)
            folder.mkdir()
        levels = (self.run.workflow.get("env", {}), self.job.get("env", {}))
        self.env = {key: self.filled(value) for level in levels for key, value in level.items()}
        failed = ""
        for step in self.job["steps"]:
            title = step.get("name") or step["uses"].partition("@")[0]
            if not self.wanted(step.get("if"), bool(failed)):
                continue
            print(f"{self.name} {' '.join(self.row.values())}: {title}", flush=True)
            try:
                self.script(step) if "run" in step else self.action(step, workspace)
                outcome = "success"
            except (Failed, subprocess.CalledProcessError) as error:
                failed, outcome = failed or f"{title}: {error}", "failure"
            self.outcomes[step.get("id", "")] = outcome
        if failed:
            raise Failed(f"job {self.name}: {failed}")

    def script(self, step: dict[str, Any]) -> None:
        own = {key: self.filled(value) for key, value in step.get("env", {}).items()}
        for key in ("PATH", "SUMMARY"):
            (self.run.root.path / "github" / "files" / key).touch()
        path = ":".join([*reversed(self.path), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"])
        environment = {
            "HOME": "/root",
            "PATH": path,
            "LANG": "C.UTF-8",
            "GITHUB_WORKSPACE": "/github/workspace",
            "RUNNER_TEMP": "/github/temp",
            "GITHUB_PATH": "/github/files/PATH",
            "GITHUB_STEP_SUMMARY": "/github/files/SUMMARY",
            "GITHUB_REF_NAME": self.run.tag,
            **self.env,
            **own,
            **self.run.variables,
        }
        file = self.run.root.path / "github" / "files" / "step.sh"
        file.write_text(step["run"])
        inside = 'cd "$GITHUB_WORKSPACE" && exec bash --noprofile --norc -eo pipefail "$0"'
        command = ["chroot", self.run.root.path, "bash", "-c", inside, "/github/files/step.sh"]
        subprocess.run(command, env=environment, check=True)
        added = self.run.root.path / "github" / "files" / "PATH"
        self.path += added.read_text().split()
        added.write_text("")

    def action(self, step: dict[str, Any], workspace: Path) -> None:
        action = step["uses"].partition("@")[0]
        inputs = {key: self.filled(value) for key, value in step.get("with", {}).items()}
        store = self.run.store
        if action == "actions/checkout":
            shutil.copytree(self.run.project, workspace, dirs_exist_ok=True)
        elif action == "actions/cache/restore":
            found = sorted((store / "cache").glob(inputs["restore-keys"] + "*"))
            if found:
                shutil.copytree(found[-1], workspace / inputs["path"])
        elif action == "actions/cache/save":
            source = workspace / inputs["path"]
            shutil.copytree(source, store / "cache" / inputs["key"], dirs_exist_ok=True)
        elif action == "actions/upload-artifact":
            folder, _, pattern = inputs["path"].rpartition("/")
            files = list((workspace / folder).glob(pattern or "*"))
            if not files:
                raise Failed(f"no files at {inputs['path']}")
            target = store / "artifacts" / inputs["name"]
            target.mkdir(parents=True)
            for one in files:
                shutil.copy(one, target)
        elif action == "actions/download-artifact":
            for one in (store / "artifacts").iterdir():
                if fnmatch.fnmatch(one.name, inputs["pattern"]):
                    shutil.copytree(one, workspace / inputs["path"] / one.name)
        else:
            raise Failed(f"unknown action: {action}")


@dataclass
class Run:
    """A workflow on one machine."""

    workflow: dict[str, Any]
    project: Path
    root: Root
    store: Path
    variables: dict[str, str]
    tag: str = ""

    def rows(self, job: dict[str, Any]) -> Iterator[dict[str, str]]:
        """The rows of the matrix for this machine's architecture."""
        matrix = job.get("strategy", {}).get("matrix", {})
        arch = platform.machine()
        extra = next((one for one in matrix.get("include", []) if one["arch"] == arch), {})
        for release in matrix.get("torch", [None]):
            yield {**extra, **({"torch": release} if release else {})}

    def execute(self) -> None:
        """All jobs but `publish`, in the order of the file, which is that of their needs."""
        with self.root.entered():
            for name, job in self.workflow["jobs"].items():
                if name == "publish":
                    continue
                for row in self.rows(job):
                    Job(name, job, row, self).execute()


def configured(key: str) -> list[str]:
    """The values of a key of pip's configuration on this machine."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(rf"(?m)^(?:global|install|:env:)\.{key}='(.*)'$", listed)
    return list(dict.fromkeys(word for value in found for word in value.split()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("workflow", type=Path)
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="the root and what jobs keep")
    parser.add_argument("--wheels", type=Path, required=True, help="the folder of BackendKit's")
    parser.add_argument("--tag", default="", help="run as for this tag")
    options = parser.parse_args()

    wheels = options.wheels.resolve()
    links = [str(wheels), *configured("find-links")]
    indexes = configured("extra-index-url")
    variables = {
        "PIP_FIND_LINKS": " ".join(links),
        "UV_FIND_LINKS": ",".join(links),
        "UV_EXTRA_INDEX_URL": " ".join(indexes),
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_SYSTEM_CERTS": "1",
        "UV_NATIVE_TLS": "1",
        "UV_TORCH_BACKEND": "",
        "UV_LINK_MODE": "copy",
        "TORCH_INDEX": (indexes or [""])[0],
    }
    variables = {key: value for key, value in variables.items() if value or key[:3] == "UV_"}
    variables |= {key: os.environ[key] for key in ("PIP_CERT",) if key in os.environ}
    folder = options.folder.resolve()
    store = folder / "store"
    shutil.rmtree(store / "artifacts", ignore_errors=True)
    for name in ("artifacts", "cache"):
        (store / name).mkdir(parents=True, exist_ok=True)
    local = [Path(one.removeprefix("file://")) for one in [*links, *indexes]]
    root = Root(folder / "root", [one for one in local if one.is_dir()])
    root.make()
    workflow = yaml.safe_load(options.workflow.read_text(encoding="utf-8"))
    run = Run(workflow, options.project.resolve(), root, store, variables, options.tag)
    try:
        run.execute()
    except Failed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    summary = root.path / "github" / "files" / "SUMMARY"
    if summary.is_file():
        print(summary.read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
