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
from typing import Any

import pytest
import tomllib

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BACKENDGEN = os.environ["BACKENDGEN"]
BASE = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def script_of(page: Path) -> list[str]:
    """A page as a shell script: its commands, and its files, which are blocks with a title."""
    lines: list[str] = []
    text = page.read_text(encoding="utf-8")
    for head, block in re.findall(r"^```(\w[^\n]*)\n(.*?)^```$", text, flags=re.M | re.S):
        if head == "sh":
            lines += block.splitlines()
        elif file := re.fullmatch(r'\w+ title="([\w./]+)"', head):
            lines += [f"cat >{file[1]} <<'END OF FILE'", *block.splitlines(), "END OF FILE"]
    return lines


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


def purelib(python: str | Path) -> str:
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return run(python, "-c", ask, cwd=ROOT).strip()


def new_environment(folder: Path) -> Path:
    """A new virtual environment that sees the base environment; its folder of programs."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    Path(purelib(folder / "bin" / "python"), "base.pth").write_text(purelib(BASE))
    return folder / "bin"


#: That of the page on several machines runs in test_distributed_page.py.
COMMANDS = [page for page in pages_with("sh") if page.name != "distributed.md"]


@pytest.mark.parametrize("page", COMMANDS, ids=names(COMMANDS))
def test_commands(page: Path, tmp_path: Path) -> None:
    # A page that makes an environment of this name finds PyTorch in it.
    programs = new_environment(tmp_path / "environment")
    path = os.pathsep.join([str(programs), str(Path(BASE).parent), os.environ["PATH"]])
    lines = script_of(page)
    here = [line for line in lines if not line.startswith("./dev ")]
    script = tmp_path / "page.sh"
    script.write_text("\n".join(here).replace("./BackendKit", shlex.quote(str(ROOT))) + "\n")
    shown = run("bash", "-e", script, cwd=tmp_path, PATH=path)
    if page.name == "README.md":
        assert shown.splitlines()[-1] == "tensor([2., 2.], device='foo:0')"
    if page.name == "start.md":
        (printed,) = blocks(page, "text")
        assert printed in shown
        assert re.search(r"add", shown.partition(printed)[2]), "no row of the fallback report"
    if page.name == "tutorial.md":
        for row in ("'streams': False", "tensor([0., 2.], device='foo:0')", " ms\n"):
            assert row in shown


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
def test_descriptions(page: Path, tmp_path: Path, torch_folder: Path) -> None:
    for block in blocks(page, "toml"):
        (tmp_path / "backend.toml").write_text(block)
        runtime = tomllib.loads(block).get("wheel", {}).get("runtime", {})
        files = [*runtime.get("libraries", []), *runtime.get("license_files", [])]
        for file in files:  # those that the page speaks of
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).touch()
        run(BACKENDGEN, "check", "--torch", torch_folder, cwd=tmp_path)


def keys_table(keys: dict[str, dict[str, Any]], required: list[str]) -> str:
    """Keys as a table of a page has them: what the JSON Schema says of each."""

    def default(name: str, key: dict[str, Any]) -> str:
        if name in required:
            return "required"
        if "default" in key:
            value = key["default"]
            return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"
        text = str(key["$comment"]).removeprefix("default: ")
        return f"`{text}`" if "<name>" in text else text

    lines = ["| key | default | meaning |", "|---|---|---|"]
    for name, key in keys.items():
        meaning = re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", key["description"])
        lines.append(f"| `{name}` | {default(name, key)} | {meaning} |")
    return "\n".join(lines) + "\n"


def test_tables_of_keys(request: pytest.FixtureRequest) -> None:
    """The pages have what the program knows of each key; `--update` writes it there."""
    schema = json.loads(run(BACKENDGEN, "schema", cwd=ROOT))
    update = request.config.getoption("--update")
    custom = schema["$defs"]["custom"]["items"]
    places = [
        *(
            ("description.md", f"## `[{name}]`", table)
            for name, table in schema["properties"].items()
        ),
        ("custom-operators.md", "Each operator has one table:", custom),
        ("description.md", "## `[wheel.runtime]`", schema["$defs"]["runtime"]),
    ]
    for name, heading, table in places:
        if "additionalProperties" in table and table["additionalProperties"] is not False:
            continue  # the keys of [entry-points] are the vendor's
        page = ROOT / "docs" / name
        text = page.read_text(encoding="utf-8")
        before, found, rest = text.partition(heading + "\n")
        assert found, f"{name} has no {heading}"
        wanted = keys_table(table["properties"], table.get("required", []))
        there = re.search(r"^\| key \|.*?\n(?=\n|\Z)", rest, re.M | re.S)
        assert there, f"{name} has no table below {heading}"
        if update:
            page.write_text(
                before + found + rest[: there.start()] + wanted + rest[there.end() :],
                encoding="utf-8",
            )
        else:
            assert there[0] == wanted, f"{name}: {heading}"


def test_manuals_of_the_cmake_functions(request: pytest.FixtureRequest) -> None:
    """docs/cmake.md has the manual above each function; `--update` writes it there."""
    page = ROOT / "docs" / "cmake.md"
    modules = (ROOT / "cmake-modules").glob("[!_]*.cmake")
    manuals = {
        module.stem: manual[1]
        for module in modules
        if (manual := re.search(r"^#\[\[\.md:\n(.*?)^#\]\]", module.read_text(), re.M | re.S))
    }
    assert len(manuals) >= 5
    for name, manual in manuals.items():
        assert manual.startswith(f"## {name}\n"), name
        text = page.read_text(encoding="utf-8")
        section = re.search(rf"^## {name}\n.*?(?=^## )", text, re.M | re.S)
        assert section, f"docs/cmake.md has no section {name}"
        if request.config.getoption("--update"):
            whole = text[: section.start()] + manual + "\n" + text[section.end() :]
            page.write_text(whole, encoding="utf-8")
        else:
            assert section[0].rstrip() == manual.rstrip(), name


def test_the_tutorial_shows_what_the_project_has() -> None:
    """Its C++ without a title is the starter project's, where PyTorch's user finds it."""
    template = ROOT / "templates" / "project" / "csrc" / "runtime.cpp"
    source = template.read_text(encoding="utf-8")
    shown = blocks(ROOT / "docs" / "tutorial.md", "cpp")
    functions = [part.strip() for block in shown for part in block.split("\n\n")]
    assert len(functions) == 3
    assert [one for one in functions if one not in source] == []


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
