# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts of a file of `backendgen ci gitlab` in containers of a bare root."""

from __future__ import annotations

import platform
import shutil
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from bare_root import Failed, Root, copy, run_script

PROJECT = "/builds/vendor/foo"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
SCHEDULE = '$CI_PIPELINE_SOURCE == "schedule"'
TAG = "$CI_COMMIT_TAG =~ /^v/"


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """What `extends` makes of a job and what it extends: tables are joined, lists replaced."""
    result = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(below.get(key), dict)
        result[key] = merged(below[key], value) if both else value
    return result


@dataclass
class Pipeline:
    """A pipeline on one machine, started by a push of a branch or of a tag, or by a schedule."""

    file: Path
    project: Path
    root: Root
    store: Path  # caches and artifacts
    variables: dict[str, str]
    tag: str = ""
    schedule: bool = False
    only: tuple[str, ...] = ()  # these jobs, after others ran; empty: all

    def execute(self) -> None:
        """The jobs in the order of the file's stages."""
        content = yaml.safe_load(self.file.read_text(encoding="utf-8"))
        stages = content["stages"]
        jobs = {}
        for name, job in content.items():
            if isinstance(job, dict) and "script" in job and not name.startswith("."):
                jobs[name] = merged(content[job["extends"]], job)
        for name, job in sorted(jobs.items(), key=lambda pair: stages.index(pair[1]["stage"])):
            if not self.wanted(job) or (self.only and name not in self.only):
                continue
            if "id_tokens" in job:
                print(f"note: job {name} is not run: it needs the identity of a repository")
                continue
            shutil.rmtree(self.store / "artifacts" / name, ignore_errors=True)
            for row in rows(job):
                self.run_job(name, job, row)

    def wanted(self, job: dict[str, Any]) -> bool:
        """What the first rule says whose condition is met."""
        known = {SCHEDULE: self.schedule, TAG: self.tag.startswith("v"), "": True}
        for rule in job.get("rules", [{}]):
            condition = rule.get("if", "")
            if condition not in known:
                raise Failed(f"unknown rule: {condition}")
            if known[condition]:
                return rule.get("when", "on_success") != "never"
        return False

    def run_job(self, name: str, job: dict[str, Any], row: dict[str, str]) -> None:
        given = {"CI_PROJECT_DIR": PROJECT, "CI_COMMIT_TAG": self.tag}
        given["CI_PIPELINE_SOURCE"] = "schedule" if self.schedule else "push"
        own = {**job.get("variables", {}), **row}
        environment = {key: filled(value, {**given, **own}) for key, value in own.items()}
        environment = {"PATH": SYSTEM_PATH, **given, **environment, **self.variables}
        print(f"\n==> {name} {row.get('TORCH', '')}", flush=True)
        script = "\n".join([*job.get("before_script", []), *job["script"]])
        with self.root.container() as container:
            workspace = container / PROJECT.lstrip("/")
            copy(self.project, workspace)
            for needed in job.get("needs", []):
                if (self.store / "artifacts" / needed).is_dir():
                    copy(self.store / "artifacts" / needed, workspace)
            cache = job.get("cache", {})
            key = filled(cache.get("key", ""), environment)
            kept = [self.store / "cache" / key / path for path in cache.get("paths", [])]
            for path in kept:
                if path.is_dir():
                    copy(path, workspace / path.name)
            try:
                run_script(container, script, PROJECT, environment)
            except Failed as error:
                raise Failed(f"job {name}: {error}") from None
            for path in kept:
                if (workspace / path.name).is_dir():  # not where CCACHE_DISABLE is set
                    shutil.rmtree(path, ignore_errors=True)
                    copy(workspace / path.name, path)
            self.keep(name, job, workspace)

    def keep(self, name: str, job: dict[str, Any], workspace: Path) -> None:
        """What a job says that others get."""
        for pattern in job.get("artifacts", {}).get("paths", []):
            found = list(workspace.glob(pattern.rstrip("/")))
            if not found:
                raise Failed(f"job {name}: no files at {pattern}")
            for path in found:
                copy(path, self.store / "artifacts" / name / path.relative_to(workspace))


def filled(text: object, variables: dict[str, str]) -> str:
    return string.Template(str(text)).substitute(variables)


def rows(job: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The rows of the matrix for this machine's architecture."""
    for row in job.get("parallel", {}).get("matrix", [{}]):
        if row.get("ARCH", platform.machine()) != platform.machine():
            continue
        releases = row.get("TORCH", [])
        for release in releases:
            yield {**row, "TORCH": release}
        if not releases:
            yield dict(row)
