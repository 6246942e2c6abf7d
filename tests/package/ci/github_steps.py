# SPDX-License-Identifier: Apache-2.0
"""Runs the `run:` steps of a workflow of `backendgen ci github` in containers of a bare root."""

from __future__ import annotations

import fnmatch
import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from bare_root import Failed, Root, copy, run_script

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
TAGGED = {None: True, "github.ref_type != 'tag'": False, "github.ref_type == 'tag'": True}


@dataclass
class Run:
    """A workflow on one machine, started by a push of a branch or of a tag."""

    file: Path
    project: Path
    root: Root
    store: Path  # what actions keep
    variables: dict[str, str]
    tag: str = ""
    only: tuple[str, ...] = ()  # these jobs, after others ran; empty: all
    instead: dict[str, str] = field(default_factory=dict)  # scripts for steps with these names

    def execute(self) -> None:
        """The jobs in the order of the file, which is that of their needs."""
        workflow = yaml.safe_load(self.file.read_text(encoding="utf-8"))
        for name, job in workflow["jobs"].items():
            if self.only and name not in self.only:
                continue
            if not any("run" in step for step in job["steps"]):
                print(f"note: job {name} is not run: it needs the identity of a repository")
                continue
            for row in rows(job):
                Job(name, job, row, self, workflow.get("env", {})).execute()


def rows(job: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The rows of the matrix for this machine's architecture."""
    matrix = job.get("strategy", {}).get("matrix", {})
    arch = platform.machine()
    extra = next((one for one in matrix.get("include", []) if one["arch"] == arch), {})
    for release in matrix.get("torch", [None]):
        yield {**extra, **({"torch": release} if release else {})}


class Job:
    """One job of a workflow for one row of its matrix."""

    def __init__(
        self, name: str, job: dict[str, Any], row: dict[str, str], run: Run, env: dict[str, str]
    ) -> None:
        self.name, self.job, self.row, self.run = name, job, row, run
        self.path: list[str] = []
        self.outcomes: dict[str, str] = {}
        self.outputs: dict[str, str] = {}
        self.env: dict[str, str] = {}
        levels = (env, job.get("env", {}))
        self.env = {key: self.filled(value) for level in levels for key, value in level.items()}

    def value(self, expression: str) -> str:
        """The value of an expression of the kinds that the templates use."""
        kind, _, name = expression.partition(".")
        if kind == "matrix" and name in self.row:
            return self.row[name]
        if kind == "steps" and name.endswith(".outcome"):
            return self.outcomes.get(name.removesuffix(".outcome"), "skipped")
        if kind == "steps" and ".outputs." in name:
            return self.outputs.get(name, "")
        if kind == "env" and name in self.env:
            return self.env[name]
        if expression == "github.sha" or expression.startswith("github.event.client_payload."):
            return "0" * 40
        raise Failed(f"no value for ${{{{ {expression} }}}}")

    def filled(self, text: object) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: self.value(found[1]), str(text))

    def wanted(self, condition: str | None, failed: bool) -> bool:
        if condition == "always()":
            return True
        if condition not in TAGGED:
            raise Failed(f"unknown condition: {condition}")
        return not failed and (condition is None or TAGGED[condition] == bool(self.run.tag))

    def execute(self) -> None:
        with self.run.root.container() as container:
            self.steps(container)
        for key, value in self.job.get("outputs", {}).items():
            print(f"{self.name}: output {key} is {self.filled(value)!r}", flush=True)

    def steps(self, container: Path) -> None:
        for folder in ("workspace", "temp", "files"):
            (container / "github" / folder).mkdir(parents=True)
        failed = ""
        for step in self.job["steps"]:
            title = step.get("name") or step["uses"].partition("@")[0]
            if not self.wanted(step.get("if"), bool(failed)):
                continue
            print(f"\n==> {self.name} {self.row.get('torch', '')}: {title}", flush=True)
            try:
                if "run" in step:
                    self.script(step, container)
                else:
                    self.action(step, container / "github" / "workspace")
                outcome = "success"
            except Failed as error:
                failed, outcome = failed or f"{title}: {error}", "failure"
            self.outcomes[step.get("id", "")] = outcome
        if failed:
            raise Failed(f"job {self.name}: {failed}")

    def script(self, step: dict[str, Any], container: Path) -> None:
        files = container / "github" / "files"
        for key in ("PATH", "STEP_SUMMARY", "OUTPUT"):
            (files / key).write_text("")
        environment = {
            "PATH": ":".join([*reversed(self.path), SYSTEM_PATH]),
            "GITHUB_WORKSPACE": "/github/workspace",
            "RUNNER_TEMP": "/github/temp",
            "GITHUB_REF_NAME": self.run.tag or "main",
            **{f"GITHUB_{path.name}": f"/github/files/{path.name}" for path in files.iterdir()},
            **self.env,
            **{key: self.filled(value) for key, value in step.get("env", {}).items()},
            **self.run.variables,
        }
        try:
            script = self.run.instead.get(step.get("name", ""), step["run"])
            run_script(container, script, "/github/workspace", environment)
        finally:
            self.path += (files / "PATH").read_text().split()
            for line in (files / "OUTPUT").read_text().splitlines():
                key, _, value = line.partition("=")
                self.outputs[f"{step['id']}.outputs.{key}"] = value
            if summary := (files / "STEP_SUMMARY").read_text():
                print(f"the summary of the run:\n{summary}", flush=True)

    def action(self, step: dict[str, Any], workspace: Path) -> None:
        action = step["uses"].partition("@")[0]
        inputs = {key: self.filled(value) for key, value in step.get("with", {}).items()}
        cache, artifacts = self.run.store / "cache", self.run.store / "artifacts"
        if action == "actions/checkout" and "repository" in inputs:
            print(f"note: not checked out: {inputs['repository']}")
        elif action == "actions/checkout":
            copy(self.run.project, workspace)
        elif action in ("actions/cache", "actions/cache/restore"):
            found = sorted(cache.glob(inputs["restore-keys"] + "*"))
            if found:
                copy(found[-1], workspace / inputs["path"])
        elif action == "actions/cache/save":
            copy(workspace / inputs["path"], cache / inputs["key"])
        elif action == "actions/upload-artifact":
            folder, _, pattern = inputs["path"].rpartition("/")
            files = list((workspace / folder).glob(pattern or "*"))
            if not files:
                raise Failed(f"no files at {inputs['path']}")
            shutil.rmtree(artifacts / inputs["name"], ignore_errors=True)
            for one in files:
                copy(one, artifacts / inputs["name"] / one.name)
        elif action == "actions/download-artifact":
            place = workspace / inputs["path"]
            if "name" in inputs:
                copy(artifacts / inputs["name"], place)
            else:
                names = [path.name for path in artifacts.iterdir()]
                for name in fnmatch.filter(names, inputs["pattern"]):
                    copy(artifacts / name, place / name)
        else:
            raise Failed(f"unknown action: {action}")
