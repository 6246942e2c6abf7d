# SPDX-License-Identifier: Apache-2.0
"""What README.md and docs/ show is true: commands run, descriptions pass, keys are complete.

A page's blocks run in order in one folder, with a Python that has PyTorch and no BackendKit;
`./BackendKit` stands for this repository.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BACKENDGEN = os.environ["BACKENDGEN"]
BASE = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        list(command),
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def new_environment(folder: Path) -> Path:
    """A new virtual environment that sees the base environment; its folder of programs."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    purelib = run(folder / "bin" / "python", "-c", ask, cwd=folder)
    Path(purelib.strip(), "base.pth").write_text(run(BASE, "-c", ask, cwd=folder))
    return folder / "bin"


@pytest.mark.parametrize("page", pages_with("sh"), ids=names(pages_with("sh")))
def test_commands(page: Path, tmp_path: Path) -> None:
    programs = new_environment(tmp_path / "environment")
    path = os.pathsep.join([str(programs), str(Path(BASE).parent), os.environ["PATH"]])
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    here = [line for line in lines if not line.startswith("./dev ")]
    script = tmp_path / "page.sh"
    script.write_text("\n".join(here).replace("./BackendKit", shlex.quote(str(ROOT))) + "\n")
    shown = run("bash", "-e", script, cwd=tmp_path, PATH=path)
    if page.name == "README.md":
        assert shown.splitlines()[-1] == "tensor([2., 2.], device='foo:0')"


def test_dev_commands() -> None:
    lines = [line for page in PAGES for block in blocks(page, "sh") for line in block.splitlines()]
    shown = {line.split("#")[0].strip() for line in lines if line.startswith("./dev ")}
    # `./dev test` is what runs this test.
    assert shown == {"./dev demo", "./dev test"}
    ends = run("./dev", "demo", cwd=ROOT).splitlines()
    assert "torch_foo-0.1.0-py3-none-linux_x86_64.whl" in ends[-1]
    losses = [float(line.split()[3]) for line in ends if line.startswith("  step")]
    assert len(losses) >= 5
    assert losses[-1] < losses[0] / 10


@pytest.mark.parametrize("page", pages_with("toml"), ids=names(pages_with("toml")))
def test_descriptions(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "toml"):
        (tmp_path / "backend.toml").write_text(block)
        torch = run(BASE, "-c", "import torch; print(*torch.__path__)", cwd=tmp_path).strip()
        run(BACKENDGEN, "check", "--torch", torch, cwd=tmp_path)


def test_every_key_of_the_description() -> None:
    schema = json.loads(run(BACKENDGEN, "schema", cwd=ROOT))
    text = (ROOT / "docs" / "description.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## `\[([\w-]+).*?\]`\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    assert list(sections) == list(schema["properties"])
    for table, section in sections.items():
        keys = re.findall(r"^\| `([\w-]+)` \| (.*?) \|", section, re.M)
        properties = schema["properties"][table].get("properties", {})
        assert [key for key, _ in keys] == list(properties)
        for key, default in keys:
            told = properties[key].get("default")
            if key in schema["properties"][table].get("required", []):
                assert default == "required"
            elif told is not None:
                shown = default.strip("`")
                assert shown == (told if isinstance(told, str) else json.dumps(told)), key


def test_links() -> None:
    missing = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert missing == []


def test_readme_is_one_screen() -> None:
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") <= 75
