# SPDX-License-Identifier: Apache-2.0
"""Builds of a scaffolded project: again, elsewhere, from an sdist, beside an older build."""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path

from conftest import GROUPS, ROOT, Environment, run

SOURCES = {
    "CMakeLists.txt",
    "PKG-INFO",
    "README.md",
    "backend.toml",
    "csrc/kernels.cpp",
    "csrc/runtime.cpp",
    "csrc/runtime.h",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tests/manifest.py",
    "tests/test_foo.py",
    "tests/test_kernels.py",
    "torch_foo/extras.py",
}


def objects(project: Path) -> dict[str, int]:
    found = project.glob("build/torch-*/CMakeFiles/foo.dir/**/*.o")
    return {path.name: path.stat().st_mtime_ns for path in found}


def test_from_an_sdist_in_another_folder_the_same_bytes(
    project: Path, wheel: Path, builder: Environment, tmp_path: Path
) -> None:
    (project / "notes.pyc").write_text("a result")
    (project / ".secret").write_text("not for others")
    run(builder.python, "-m", "build", "--no-isolation", "-o", tmp_path, ".", cwd=project)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        files = {m.name.split("/", 1)[1] for m in sdist.getmembers() if m.isfile()}
    assert files == SOURCES
    (again,) = tmp_path.glob("*.whl")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_one_kernel_changed_one_file_compiled(
    project: Path, wheel: Path, builder: Environment, tmp_path: Path
) -> None:
    before = objects(project)
    assert len(before) > 4
    kernels = project / "csrc" / "kernels.cpp"
    text = kernels.read_text()
    kernels.write_text(text + "\n// changed\n")
    builder.pip("wheel", "--wheel-dir", tmp_path, project, cwd=tmp_path)
    kernels.write_text(text)
    after = objects(project)
    assert [name for name in after if after[name] != before[name]] == ["kernels.cpp.o"]
    (again,) = tmp_path.glob("*.whl")
    assert again.read_bytes() == wheel.read_bytes()  # a comment changes no byte


def test_an_older_build_that_is_installed_does_not_leak(
    project: Path, wheel: Path, environment: Environment, tmp_path: Path
) -> None:
    older = environment.site / "torch_foo"
    older.mkdir()
    (older / "__init__.py").write_text("def _autoload():\n    raise SystemExit('the older one')\n")
    (older / "stale.py").write_text("")
    metadata = environment.site / "torch_foo-0.0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch_foo\nVersion: 0.0.1\n")
    (metadata / "entry_points.txt").write_text(
        "[torch.backends]\ntorch_foo = torch_foo:_autoload\n"
    )
    environment.pip("wheel", "--wheel-dir", tmp_path, project, cwd=tmp_path)
    (again,) = tmp_path.glob("*.whl")
    assert again.read_bytes() == wheel.read_bytes()


def test_the_source_folder_claims_no_entry_point(
    project: Path, wheel: Path, builder: Environment
) -> None:
    # Metadata beside setup.py would make `import torch` look for a package that is not there.
    assert list(project.glob("*.egg-info")) == []
    ask = "from importlib.metadata import entry_points as e; print(list(e(group='torch.backends')))"
    assert builder.says(ask, project) == "[]"
    assert builder.says("import torch; print(torch.ones(1).item())", project) == "1.0"


def test_wrong_description(copy: Path, builder: Environment, tmp_path: Path) -> None:
    path = copy / "backend.toml"
    path.write_text(path.read_text().replace("version =", "vresion ="))
    text = builder.pip("wheel", copy, cwd=tmp_path, status=1)
    assert "unknown key `vresion`" in text
    assert "did you mean `version`?" in text
    assert "Traceback" not in text


def test_wrong_kernel(copy: Path, builder: Environment, tmp_path: Path) -> None:
    path = copy / "csrc" / "kernels.cpp"
    path.write_text(
        path.read_text().replace("foo::relu(const at::Tensor& self)", "foo::relu(int self)")
    )
    text = builder.pip("wheel", copy, cwd=tmp_path, status=1, DEBUG="1")
    assert re.search(r"kernels\.cpp:\d+:\d+: error: .*relu", text)
    assert "CMake could not build the backend: see its messages above" in text
    assert "Traceback" not in text


def test_a_release_that_is_too_new_to_compile_is_named(
    copy: Path, builder: Environment, tmp_path: Path
) -> None:
    # A PyTorch that has lost every header.
    site = tmp_path / "site"
    shutil.copytree(ROOT / "tests" / "generator" / "golden" / "fake_torch", site)
    (site / "torch" / "version.py").write_text("__version__ = '2.99.0'\n")
    (site / "torch" / "__init__.py").write_text("")
    (site / "torch" / "lib").mkdir(exist_ok=True)
    for library in ("libc10.so", "libtorch_cpu.so"):
        (site / "torch" / "lib" / library).write_bytes(b"")
    description = copy / "backend.toml"
    text = description.read_text()
    description.write_text(text[: text.index("[operators.kernels]")])
    text = builder.pip("wheel", copy, cwd=tmp_path, status=1, PYTHONPATH=str(site))
    newest = re.search(
        r"^ *warning: PyTorch 2\.99\.0 is newer than (\d\.\d+), the newest", text, re.M
    )
    assert newest, text
    assert "fatal error:" in text
    end = text[text.index("CMake could not build the backend") :]
    assert f"note: PyTorch 2.99.0 is newer than {newest[1]}, the newest release that" in end
    assert "help: `pip install --upgrade backendkit`" in end
    assert "Traceback" not in text


def test_cmake_error_and_its_arguments(copy: Path, builder: Environment, tmp_path: Path) -> None:
    path = copy / "CMakeLists.txt"
    path.write_text(
        path.read_text() + '\nmessage(FATAL_ERROR "type ${CMAKE_BUILD_TYPE} ${WORD}")\n'
    )
    text = builder.pip(
        "wheel", copy, cwd=tmp_path, status=1, CMAKE_ARGS="-DWORD='two words'", DEBUG="1"
    )
    assert "type Debug two words" in text
    assert "CMake could not configure the backend" in text
    assert "Traceback" not in text


def test_no_pytorch(copy: Path, tools: Path, builder: Environment, tmp_path: Path) -> None:
    # What an isolated build sees: BackendKit and setuptools, and no PyTorch.
    hide = tmp_path / "hide"
    hide.mkdir()
    (hide / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'torch' else find(name, *rest)\n"
    )
    text = builder.pip("wheel", copy, cwd=tmp_path, status=1, PYTHONPATH=str(hide))
    assert f"error: found no PyTorch in {builder.python}" in text
    assert "pip install torch==" in text
    assert "--no-build-isolation" in text
    assert "Traceback" not in text


def test_a_backendkit_whose_program_is_gone(
    copy: Path, builder: Environment, tmp_path: Path
) -> None:
    hide = tmp_path / "hide"
    hide.mkdir()
    (hide / "sitecustomize.py").write_text(
        "import os.path\n"
        "there = os.path.isfile\n"
        "os.path.isfile = lambda path: os.path.basename(path) != 'backendgen' and there(path)\n"
    )
    text = builder.pip("wheel", copy, cwd=tmp_path, status=1, PYTHONPATH=str(hide))
    assert "error: found no backendgen" in text
    assert "help: `python -m pip install --force-reinstall --no-deps backendkit`" in text
    assert "Traceback" not in text


def test_moved_project_builds_again(
    project: Path, wheel: Path, builder: Environment, tmp_path: Path
) -> None:
    # Only CMake's record of where it ran moves along; a whole build is made elsewhere.
    moved = tmp_path / "moved"
    shutil.copytree(project, moved, ignore=shutil.ignore_patterns("CMakeFiles"))
    assert GROUPS in (moved / "backend.toml").read_text()
    stop = 'message(FATAL_ERROR "configured in\\n  ${CMAKE_SOURCE_DIR}")\n'
    (moved / "CMakeLists.txt").write_text((moved / "CMakeLists.txt").read_text() + stop)
    text = builder.pip("wheel", moved, cwd=tmp_path, status=1)
    assert re.search(rf"configured in\s+{re.escape(str(moved))}\s", text)
    assert "CMakeCache.txt directory" not in text
