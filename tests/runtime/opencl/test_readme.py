# SPDX-License-Identifier: Apache-2.0
"""examples/opencl/README.md is true: its commands print what it shows, its code is in the files."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from conftest import EXAMPLE, run

TEXT = (EXAMPLE / "README.md").read_text(encoding="utf-8")
#: Parts of a line that differ from run to run: measured numbers, the width of columns, and what the
#: page leaves out.
MEASURED = r"\d+\.\d+e[+-]\d\d|\d+\.\d\d+|\d+\.\d(?= (?:s|ms|MiB)\b| %)"
DIFFERS = re.compile(rf"({MEASURED})|( +)|(\.\.\.)")
DIFFERENT = (r"\d+(?:\.\d+(?:e[+-]\d\d)?)?", " +", ".*")


def commands() -> list[tuple[str, list[str]]]:
    """Each command that the page shows with a prompt, and lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(\$ .*?)^```$", TEXT, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def pattern(line: str) -> str:
    parts = []
    end = 0
    for match in DIFFERS.finditer(line):
        assert match.lastindex
        parts += [re.escape(line[end : match.start()]), DIFFERENT[match.lastindex - 1]]
        end = match.end()
    return "".join(parts) + re.escape(line[end:])


@pytest.mark.parametrize(
    ("line", "printed", "same"),
    [
        ("mlp   96.2 %  2.4e-07   0.03 s", "mlp  100.0 %  0.0e+00  12.10 s", True),
        ("... passed in 3.91s", "22 passed in 100.00s", True),
        ("(1.3 MiB) in 9.1 s", "(1.4 MiB) in 10 s", True),
        ("[2.0, 2.0]", "[2.0, 3.0]", False),
        ("aten::mm  3  2.700 ms", "aten::mm  4  2.700 ms", False),
        ("16 MiB in tensors", "0 MiB in tensors", False),
        ("none", "none, softplus", False),
    ],
)
def test_only_what_is_measured_may_differ(line: str, printed: str, same: bool) -> None:
    assert bool(re.fullmatch(pattern(line), printed)) == same


def test_commands_print_what_the_page_shows(python: Path, cache: dict[str, str]) -> None:
    project = python.parents[2] / "torch_opencl"
    pythons = [os.environ[f"BACKENDKIT_TEST_{one}_PYTHON"] for one in ("TOOLS", "BASE")]
    folders = [python.parent, *(Path(one).parent for one in pythons)]
    environment = {
        "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]),
        "OMP_NUM_THREADS": "1",
        "POCL_DEVICES": "pthread",
        **cache,
    }
    assert len(commands()) >= 18
    for command, lines in commands():
        assert lines, f"the page does not say what `{command}` prints"
        done = run("bash", "-euc", command, cwd=project, **environment)
        printed = done.stdout.splitlines() + done.stderr.splitlines()
        missing = [
            line for line in lines if not any(re.fullmatch(pattern(line), one) for one in printed)
        ]
        assert missing == [], "\n".join([command, *printed])


def test_code_is_in_the_files() -> None:
    excerpts = re.findall(r'^```\w+ title="([\w./]+)"\n(.*?)^```$', TEXT, re.M | re.S)
    assert len(excerpts) >= 15
    missing = [
        f"{file}: {part}"
        for file, excerpt in excerpts
        for part in re.split(r"^(?://|#) \.\.\.\n", excerpt, flags=re.M)
        if part not in (EXAMPLE / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_every_block_is_tested() -> None:
    heads = re.findall(r"^```(\w.*)\n(.*)", TEXT, re.M)
    others = [head for head, _ in heads if "title=" not in head and head != "console"]
    assert others == []
    without_prompt = [line for head, line in heads if head == "console" and line[:2] != "$ "]
    assert without_prompt == ["apt-get install opencl-headers ocl-icd-libopencl1"]


def test_links_and_files() -> None:
    links = re.findall(r"\]\((\.\./[^)#]+)\)", TEXT)
    assert len(links) > 5
    assert [link for link in links if not (EXAMPLE / link).exists()] == []
    named = re.findall(r"(?<!\[)`([\w/*]+\.(?:\*|cpp|h|cl|py|toml))`", TEXT)
    assert len(named) > 40
    assert [name for name in named if not any(EXAMPLE.glob(name))] == []
