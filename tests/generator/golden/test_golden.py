# SPDX-License-Identifier: Apache-2.0
"""Runs `backendgen` on every folder of cases/ and compares all of its output. See README.md."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = HERE / "cases"
TORCH = HERE / "fake_torch" / "torch"
PARTS = {"cmd", "in", "out", "stdout", "stderr", "status", "make.py"}


@dataclass
class Command:
    """The file `cmd`: directives, one a line, and the command line as its last line."""

    words: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    file_size: int | None = None
    folder: str = "."
    same_tree: str | None = None

    @classmethod
    def read(cls, path: Path) -> Command:
        lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
        command = cls(shlex.split(lines[-1]))
        assert command.words[0] == "backendgen", f"{path}: the last line starts with `backendgen`"
        for line in lines[:-1]:
            name, _, value = line.partition(" ")
            if name == "env":
                key, _, text = value.partition("=")
                command.environment[key] = text
            elif name == "limit-file-size":
                command.file_size = int(value)
            elif name == "folder":
                command.folder = value
            elif name == "tree-of":
                command.same_tree = value
            else:
                raise AssertionError(f"{path}: unknown directive `{name}`")
        return command


@dataclass
class Result:
    """What a command did. A tree is every file below the folder, with its bytes."""

    status: int
    stdout: bytes
    stderr: bytes
    before: dict[str, bytes]
    after: dict[str, bytes]


def program() -> str:
    path = os.environ.get("BACKENDGEN")
    if not path:
        pytest.fail("set BACKENDGEN to the path of the program backendgen")
    if not os.access(path, os.X_OK):
        pytest.fail(f"BACKENDGEN is {path}, which is not a program")
    return str(Path(path).absolute())


def tree(folder: Path) -> dict[str, bytes]:
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file():
            files[name] = path.read_bytes()
        elif path.is_dir() and not any(path.iterdir()):
            files[name + "/"] = b""
    return files


def limits(command: Command) -> None:
    """In the child: a write beyond the limit fails, as on a full disk, in place of a signal."""
    if command.file_size is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (command.file_size, command.file_size))


def run(case: Path, folder: Path) -> Result:
    if (case / "in").is_dir():
        shutil.copytree(case / "in", folder, dirs_exist_ok=True)
    path = program()
    if (case / "make.py").is_file():
        environment = {**os.environ, "BACKENDGEN": path, "TORCH": str(TORCH)}
        subprocess.run(
            [sys.executable, str(case / "make.py")], cwd=folder, env=environment, check=True
        )
    before = tree(folder)
    command = Command.read(case / "cmd")

    def place(text: str) -> str:
        return text.replace("@TORCH@", str(TORCH)).replace("@FOLDER@", str(folder))

    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    environment.update({name: place(text) for name, text in command.environment.items()})
    done = subprocess.run(
        [path, *(place(word) for word in command.words[1:])],
        cwd=folder / command.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: limits(command),
    )

    def unplace(output: bytes) -> bytes:
        text = output.replace(str(TORCH).encode(), b"@TORCH@")
        return text.replace(str(folder).encode(), b"@FOLDER@")

    return Result(done.returncode, unplace(done.stdout), unplace(done.stderr), before, tree(folder))


def write(path: Path, data: bytes) -> None:
    if data:
        path.write_bytes(data)
    else:
        path.unlink(missing_ok=True)


def update(case: Path, result: Result) -> None:
    write(case / "stdout", result.stdout)
    write(case / "stderr", result.stderr)
    write(case / "status", f"{result.status}\n".encode() if result.status else b"")
    shutil.rmtree(case / "out", ignore_errors=True)
    if result.after == result.before or Command.read(case / "cmd").same_tree:
        return
    for name, data in result.after.items():
        path = case / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def expected(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "backslashreplace") if path.is_file() else ""


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.iterdir()))
def test_case(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    case = CASES / name
    surplus = {path.name for path in case.iterdir()} - PARTS
    assert not surplus, f"{case} has {sorted(surplus)}, which no test reads"
    folder = tmp_path.resolve() / "here"
    folder.mkdir()
    result = run(case, folder)
    if request.config.getoption("--update"):
        update(case, result)
        return
    assert result.stderr.decode("utf-8", "backslashreplace") == expected(case / "stderr")
    assert result.stdout.decode("utf-8", "backslashreplace") == expected(case / "stdout")
    assert result.status == int(expected(case / "status") or "0")
    same = Command.read(case / "cmd").same_tree
    out = CASES / (same or name) / "out"
    wanted = tree(out) if same or out.is_dir() else result.before
    assert sorted(result.after) == sorted(wanted)
    changed = [path for path in wanted if result.after[path] != wanted[path]]
    for path in changed:
        assert result.after[path].decode("utf-8", "backslashreplace") == wanted[path].decode(
            "utf-8", "backslashreplace"
        ), path


@pytest.mark.parametrize(
    "path", sorted(CASES.glob("*/out/**/*.py")), ids=lambda path: str(path.relative_to(CASES))
)
def test_generated_python_compiles(path: Path) -> None:
    compile(path.read_bytes(), str(path), "exec")
