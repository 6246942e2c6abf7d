# SPDX-License-Identifier: Apache-2.0
"""Inner projects that use BackendKit as a vendor's CMake project does.

Environment: BACKENDKIT_BUILD, BackendKit's build tree; BACKENDGEN, the program in it;
BACKENDKIT_TEST_BASE_PYTHON, a Python with PyTorch; BACKENDKIT_TEST_TOOLS_PYTHON, one that
BackendKit is installed in with pip.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent

# With the one, ccache makes paths relative before the compiler's -ffile-prefix-map sees them; with
# the other, it does not see the maps.
NOT_HERE = ("CCACHE_BASEDIR", "CCACHE_IGNOREOPTIONS")


def wanted(name):
    value = os.environ.get(name)
    if not value:
        pytest.fail(f"set {name}; ./dev test does")
    return value


class Cmake:
    """Runs CMake on a project in `source`, with a build folder beside it."""

    def __init__(self, source, package=None):
        self.source = pathlib.Path(source)
        self.build = self.source.parent / (self.source.name + "-build")
        self.package = package or wanted("BACKENDKIT_BUILD")
        self.python = wanted("BACKENDKIT_TEST_BASE_PYTHON")

    def run(self, *words, environment=None):
        others = {name: value for name, value in os.environ.items() if name not in NOT_HERE}
        return subprocess.run(
            [*map(str, words)],
            capture_output=True,
            text=True,
            env={**others, "CLICOLOR_FORCE": "0", **(environment or {})},
        )

    def configure(self, *options, environment=None):
        return self.run(
            "cmake", "-S", self.source, "-B", self.build, "-G", "Ninja",
            f"-DBackendKit_DIR={self.package}", f"-DPython_EXECUTABLE={self.python}",
            "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options,
            environment=environment,
        )  # fmt: skip

    def make(self, *options):
        return self.run("cmake", "--build", self.build, *options)


@pytest.fixture
def cmake():
    return Cmake


@pytest.fixture(scope="session")
def scaffold(tmp_path_factory):
    """Makes a project with `backendgen new`."""

    def make(name="foo", *options):
        folder = tmp_path_factory.mktemp("project")
        words = [wanted("BACKENDGEN"), "-C", folder, "new", name, *options]
        subprocess.run([*map(str, words)], check=True, capture_output=True)
        return folder / name

    return make


@pytest.fixture(scope="session")
def built(scaffold):
    """A project that is built, once for all tests that only look at it."""
    project = Cmake(scaffold())
    with open(project.source / "CMakeLists.txt", "a") as file:
        file.write("enable_testing()\nbackendkit_wheel(packed BACKEND foo OUTPUT_DIRECTORY out)\n")
        file.write("backendkit_smoke_test(smoke BACKEND foo)\n")
    configured = project.configure()
    assert configured.returncode == 0, configured.stderr
    project.log = configured.stdout
    made = project.make()
    assert made.returncode == 0, made.stdout
    return project


@pytest.fixture
def fake_python(tmp_path):
    """A Python whose PyTorch is a few files: version.py, an operator list, libraries."""

    def make(
        version,
        symbol="_ZN3c105ErrorC1ENS_14SourceLocationESs",
        standard=None,
        head=b"\x7fELF\0",
        needed=(),
    ):
        site = tmp_path / "site"
        torch = site / "torch"
        shutil.copytree(HERE.parents[1] / "generator" / "golden" / "fake_torch", site)
        (torch / "version.py").write_text(f"__version__ = '{version}'\n")
        (torch / "__init__.py").write_text("raise SystemExit('PyTorch was imported')\n")
        (torch / "lib").mkdir(exist_ok=True)
        for library in ("libc10.so", "libtorch_cpu.so"):
            words = [symbol, *needed]
            strings = b"".join(b"\0" + word.encode() + b"\0" for word in words)
            (torch / "lib" / library).write_bytes(head + strings)
        if standard:
            config = torch / "share" / "cmake" / "Torch" / "TorchConfig.cmake"
            config.parent.mkdir(parents=True)
            config.write_text(f"set_up(torch {standard})\n")
        return {"PYTHONPATH": str(site)}

    return make
