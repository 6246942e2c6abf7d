# SPDX-License-Identifier: Apache-2.0
"""What the steps of `./dev wheels` share: lines for people, and commands with a log."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def say(verb: str, text: str) -> None:
    print(f"{verb:>12} {text}", flush=True)


def run(log: Path, *command: object, cwd: Path = ROOT, **variables: str) -> None:
    """Runs a command with its output in a log. Raises SystemExit with its end if it fails."""
    with open(log, "w", encoding="utf-8") as file:
        words = [str(word) for word in command]
        done = subprocess.run(
            words, cwd=cwd, env={**os.environ, **variables}, stdout=file, stderr=subprocess.STDOUT
        )
    if done.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        shown = "\n".join(f"  {line}" for line in lines)
        raise SystemExit(
            f"error: `{' '.join(words[:6])}` failed with status {done.returncode}\n"
            f"note: the last lines of {log}:\n{shown}"
        )
