# SPDX-License-Identifier: Apache-2.0
"""What one run of a command cannot show: output that nobody takes, and several runs at once."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_golden import TORCH, program, tree

DESCRIPTION = '[backend]\nname = "kite"\nversion = "0.1.0"\n[operators.kernels]\n'
KERNELS = '"add.out" = "kite::add"\n"mm.out" = "kite::mm"\n'

# Every command that writes to stdout.
PRINTS = [
    ["--version"],
    ["--help"],
    ["help", "generate"],
    ["ops", "--help"],
    ["schema"],
    ["ci", "github"],
    ["ops", "--torch", str(TORCH)],
    ["ops", "--format", "html", "--torch", str(TORCH)],
    ["ops", "--format", "json", "--torch", str(TORCH)],
    ["ops", "--stub", "add.out", "--torch", str(TORCH)],
    ["check", "--format", "json", "--torch", str(TORCH)],
    ["generate", "--out", "glue", "--list", "--torch", str(TORCH)],
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "backend.toml").write_text(DESCRIPTION + KERNELS, "utf-8")
    (tmp_path / "runtime.h").write_text("// The runtime.\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize("words", PRINTS, ids=" ".join)
def test_a_full_disk(words: list[str], project: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [program(), *words], cwd=project, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert done.stderr == b"error: cannot write to stdout: No space left on device\n"


@pytest.mark.parametrize("words", PRINTS, ids=" ".join)
def test_a_closed_stdout(words: list[str], project: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", program(), *words],
        cwd=project,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == b"error: cannot write to stdout: Bad file descriptor\n"


def test_closed_streams(project: Path) -> None:
    """Neither files nor the pipes to Python, which is asked for PyTorch, take their numbers."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    command = [program(), "generate", "--out", "open"]
    subprocess.run(command, cwd=project, env=environment, check=True)
    for number, closed in enumerate(["<&- >&- 2>&-", "<&-", "<&- >&-", "2>&-"]):
        words = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *command[:3], str(number)]
        done = subprocess.run(words, cwd=project, env=environment, check=False)
        assert done.returncode == 0
        assert tree(project / str(number)) == tree(project / "open")


def test_a_reader_that_leaves(project: Path) -> None:
    """As other programs: quietly, or with an error where the signal is ignored."""
    for disposition, status, message in [
        (signal.SIG_DFL, -signal.SIGPIPE, b""),
        (signal.SIG_IGN, 1, b"error: cannot write to stdout: Broken pipe\n"),
    ]:
        end, start = os.pipe()
        os.close(end)
        done = subprocess.run(
            [program(), "ops", "--torch", str(TORCH)],
            cwd=project,
            stdout=start,
            stderr=subprocess.PIPE,
            restore_signals=False,
            preexec_fn=lambda how=disposition: signal.signal(signal.SIGPIPE, how),
            check=False,
        )
        os.close(start)
        assert (done.returncode, done.stderr) == (status, message)


def at_once(count: int, project: Path, out: str) -> list[str]:
    """Runs `generate` several times at once; the errors of those that fail."""
    command = [program(), "generate", "--out", out, "--torch", str(TORCH)]
    running = [
        subprocess.Popen(
            command, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for _ in range(count)
    ]
    ends = [(one.communicate()[1], one.returncode) for one in running]
    return [errors for errors, status in ends if status != 0]


def test_several_runs_at_once(project: Path) -> None:
    """Into a new folder, into one of the same description, and of one that has changed."""
    assert at_once(1, project, "one") == []
    small = tree(project / "one")
    for number in range(10):
        assert at_once(6, project, f"many{number}") == []
        assert tree(project / f"many{number}") == small
    assert at_once(6, project, "many0") == []
    for kernels in [KERNELS + '"empty.memory_format" = "kite::empty"\n', KERNELS] * 5:
        (project / "backend.toml").write_text(DESCRIPTION + kernels, "utf-8")
        assert at_once(6, project, "many0") == []
    assert tree(project / "many0") == small


def test_a_run_waits_for_another(project: Path) -> None:
    """While somebody holds the lock of the project's folder, nothing is compared or written."""
    held = os.open(project, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        command = [program(), "generate", "--out", "glue", "--torch", str(TORCH)]
        running = subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(timeout=1)
        assert not (project / "glue").exists()
        fcntl.flock(held, fcntl.LOCK_UN)
        assert running.wait(timeout=60) == 0
        assert (project / "glue" / ".backendgen").is_file()
    finally:
        os.close(held)
