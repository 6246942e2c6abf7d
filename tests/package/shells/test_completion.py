# SPDX-License-Identifier: Apache-2.0
"""The completions that `backendgen completion` prints, in real shells, and the manual page."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

BACKENDGEN = os.environ["BACKENDGEN"]
#: A line up to the cursor, and what is offered for its last word. The folder has the files
#: backend.toml and "b c.toml", and the folder deep.
CASES = {
    "backendgen gen": {"generate"},
    "backendgen --color ": {"auto", "always", "never"},
    "backendgen -C d": {"deep"},
    "backendgen -C deep che": {"check"},
    "backendgen ops --format ": {"text", "json", "html"},
    "backendgen ops --format=js": {"json"},
    "backendgen ops --sch": {"--schema"},
    "backendgen new --layout ": {"package", "submodule"},
    "backendgen new foo --layout sub": {"submodule"},
    "backendgen completion ": {"bash", "zsh", "fish"},
    "backendgen help whe": {"wheel"},
    "backendgen check b": {"backend.toml", "b c.toml"},
    "backendgen generate --out d": {"deep"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("backend.toml", "b c.toml"):
        (tmp_path / name).touch()
    (tmp_path / "deep").mkdir()
    return tmp_path


def printed(shell: str, folder: Path) -> Path:
    """A file with the completions for a shell."""
    path = folder.parent / f"{folder.name}-{shell}"
    path.write_text(
        subprocess.run(
            [BACKENDGEN, "completion", shell], capture_output=True, text=True, check=True
        ).stdout
    )
    return path


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(
        list(command),
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def commands() -> set[str]:
    """The commands that `--help` shows."""
    text = subprocess.run([BACKENDGEN, "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"^  ([a-z]+) ", text.stdout, re.M))


def bash_words(line: str) -> list[str]:
    """The words of a line, as bash splits them for a completion: `=` is one of its own."""
    return [word for word in re.split(r" |(=)", line) if word is not None]


def bash(line: str, folder: Path, split: bool = True) -> set[str]:
    words = bash_words(line) if split else line.split(" ")
    script = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        "_backendgen 2>/dev/null; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    shell = ["bash", "--norc", "-c", script, "bash", printed("bash", folder)]
    return set(run(*shell, *words, folder=folder).splitlines()) - {""}


@pytest.mark.parametrize("line", CASES)
def test_bash(line: str, folder: Path) -> None:
    assert bash(line, folder) == CASES[line]


def test_bash_where_equals_signs_separate_no_words(folder: Path) -> None:
    assert bash("backendgen ops --format=js", folder, split=False) == {"--format=json"}


def test_bash_knows_every_command(folder: Path) -> None:
    assert bash("backendgen ", folder) == commands() | {"help"}
    registered = run(
        "bash", "--norc", "-c", 'source "$1"; complete -p backendgen', "bash",
        printed("bash", folder), folder=folder,
    )  # fmt: skip
    assert registered.split() == ["complete", "-F", "_backendgen", "backendgen"]


def fish(line: str, folder: Path) -> set[str]:
    script = 'source $argv[1]; complete -C"$argv[2]"'
    shell = ["fish", "--no-config", "-c", script, printed("fish", folder), line]
    text = run(*shell, folder=folder)
    return {one.split("\t")[0].rstrip("/").removeprefix("--format=") for one in text.splitlines()}


@pytest.mark.parametrize("line", CASES)
def test_fish(line: str, folder: Path) -> None:
    assert fish(line, folder) == CASES[line]


def test_fish_knows_every_command(folder: Path) -> None:
    assert fish("backendgen ", folder) == commands() | {"help"}


class Zsh:
    """zsh on a terminal of its own, which only there completes."""

    def __init__(self, folder: Path) -> None:
        path = printed("zsh", folder)
        process, self.terminal = pty.fork()
        if process == 0:
            os.chdir(folder)
            os.environ.update(TERM="dumb", HOME=str(folder), COLUMNS="200")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.process = process
        self.type(
            f"PS1='%% '; autoload -U compinit; compinit -u -D; source '{path}'; LISTMAX=0; "
            "setopt no_auto_menu; unset zle_bracketed_paste; bindkey '^X' kill-whole-line; "
            "zstyle ':completion:*' list-packed no; print rea''dy\n"
        )
        self.read("ready")

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def read(self, until: str) -> str:
        """What zsh prints until it has printed a text and nothing more comes."""
        text = ""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            quiet = 0.3 if until in text else 5
            if not select.select([self.terminal], [], [], quiet)[0]:
                if until in text:
                    return text
                continue
            text += os.read(self.terminal, 65536).decode(errors="replace")
        raise AssertionError(f"zsh printed no {until!r}: {text!r}")

    def close(self) -> None:
        os.close(self.terminal)
        os.waitpid(self.process, 0)


def test_zsh(folder: Path) -> None:
    shell = Zsh(folder)
    try:
        for line, offered in CASES.items():
            shell.type(f"{line}\t")
            expected = sorted(word.replace(" ", "\\ ") for word in offered)
            text = shell.read(expected[-1].rpartition(" ")[2])
            for word in expected:
                assert word in text, line
            shell.type("\x18")
    finally:
        shell.close()


def test_zsh_of_a_folder_of_functions(folder: Path) -> None:
    """As a package installs it, zsh reads the file at the first completion, by its first line."""
    functions = folder / "functions"
    functions.mkdir()
    shutil.copy(printed("zsh", folder), functions / "_backendgen")
    script = (
        "fpath=($1 $fpath); autoload -U compinit; compinit -u -D; print $_comps[backendgen]; "
        "autoload +X _backendgen && print read"
    )
    text = run("zsh", "-f", "-c", script, "zsh", functions, folder=folder)
    assert text.split() == ["_backendgen", "read"]


def test_manual_page(folder: Path) -> None:
    page = folder / "backendgen.1"
    page.write_text(run(BACKENDGEN, "man", folder=folder))
    assert run("mandoc", "-T", "lint", "-W", "style", page, folder=folder) == ""
    text = run("mandoc", "-T", "ascii", page, folder=folder)
    text = re.sub(r".\x08", "", text)
    for name in commands():
        manual = run(BACKENDGEN, "help", name, folder=folder)
        assert f"backendgen {name}" in text
        for option in re.findall(r"^  (?:-\w, )?(--?[\w-]+)", manual, re.M):
            assert re.search(rf"^ +(-\w, )?{option}\b", text, re.M), option
