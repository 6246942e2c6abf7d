# SPDX-License-Identifier: Apache-2.0
"""A backend whose kernels draw random numbers, and which keeps something with its tensors."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from conftest import build, run

HERE = Path(__file__).parent
EXAMPLE = '# "add.out" = "foo::add"\n'
SOURCES = ("metadata.cpp", "pinned.cpp", "random.cpp")
COUNT = "  static int device_count();\n"
METADATA = "".join(
    f"  static void {name}(const at::Tensor& tensor, backendkit::TensorMetadata& metadata);\n"
    for name in ("save_metadata", "load_metadata")
)


@pytest.fixture(scope="module")
def state_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package of the backend is."""
    folder = tmp_path_factory.mktemp("state")
    project = folder / "foo"
    done = run(os.environ["BACKENDGEN"], "new", project)
    assert done.returncode == 0, done.stdout
    kernels = (HERE / "state" / "operators.toml").read_text(encoding="utf-8")
    sources = " ".join(f"csrc/{source}" for source in SOURCES)
    for file, old, new in [
        ("backend.toml", EXAMPLE, kernels),
        ("CMakeLists.txt", "SOURCES", f"SOURCES {sources}"),
        ("csrc/runtime.h", COUNT, COUNT + METADATA),
    ]:
        text = (project / file).read_text(encoding="utf-8")
        assert text.count(old) == 1
        (project / file).write_text(text.replace(old, new), encoding="utf-8")
    for source in SOURCES:
        shutil.copy(HERE / "state" / source, project / "csrc")
    return build(project, folder)


@pytest.mark.parametrize("part", ["random", "metadata", "pinned", "processes"])
def test_state(state_site: Path, part: str) -> None:
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / f"check_{part}.py"]
    environment = {"PYTHONPATH": str(state_site), "FOO_SIMULATOR_DELAY": "200"}
    done = run(sys.executable, *command, **environment)
    assert done.returncode == 0, done.stdout[-8000:]
    assert re.search(r"^\d+ passed", done.stdout, re.M), done.stdout
