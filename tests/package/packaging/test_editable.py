# SPDX-License-Identifier: Apache-2.0
"""`pip install -e .` of a scaffolded project."""

from __future__ import annotations

from pathlib import Path

from conftest import Environment

NAMES = "import torch; print(torch.foo.device_names())"


def test_edits_are_live(
    project: Path, wheel: Path, environment: Environment, minor: str, tmp_path: Path
) -> None:
    environment.pip("install", "-e", project, cwd=tmp_path)
    assert environment.says(NAMES, tmp_path) == "['foo:0', 'foo:1']"
    assert environment.says(NAMES, project) == "['foo:0', 'foo:1']"

    extras = project / "torch_foo" / "extras.py"
    text = extras.read_text()
    extras.write_text(text.replace('f"foo:{index}"', 'f"edited:{index}"'))
    beside = project / "torch_foo" / "fresh.py"
    beside.write_text("ANSWER = 42\n")
    try:
        assert environment.says(NAMES, tmp_path) == "['edited:0', 'edited:1']"
        code = "from torch_foo.fresh import ANSWER; print(ANSWER)"
        assert environment.says(code, tmp_path) == "42"
    finally:
        extras.write_text(text)
        beside.unlink()

    # No file of the vendor's is there twice, so none can be an old copy.
    package = project / "build" / "editable" / minor / "torch_foo"
    assert not (package / "extras.py").exists()
    assert (package / "_editable.py").is_file()
    assert list(environment.site.glob("torch_foo/*")) == []


def test_a_kernel_changes_with_the_next_install(
    project: Path, wheel: Path, environment: Environment, tmp_path: Path
) -> None:
    kernels = project / "csrc" / "kernels.cpp"
    text = kernels.read_text()
    changed = text.replace("? zero : from[i]", "? zero : from[i] + from[i]")
    assert changed != text
    kernels.write_text(changed)
    try:
        environment.pip("install", "-e", project, cwd=tmp_path)
        code = "import torch; print(torch.relu(torch.ones(1, device='foo')).item())"
        assert environment.says(code, tmp_path) == "2.0"
    finally:
        kernels.write_text(text)


def test_uninstalled_leaves_nothing(
    project: Path, wheel: Path, environment: Environment, tmp_path: Path
) -> None:
    before = {path.name for path in environment.site.iterdir()}
    environment.pip("install", "-e", project, cwd=tmp_path)
    environment.pip("uninstall", "-y", "torch_foo", cwd=tmp_path)
    assert {path.name for path in environment.site.iterdir()} - {"__pycache__"} == before
    assert environment.says("import torch; print(torch.ones(1).item())", project) == "1.0"
