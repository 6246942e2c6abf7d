# SPDX-License-Identifier: Apache-2.0
"""What the project around a backend may set: generators, configurations, and its own habits.

Where only the build's rules matter, the compiler is replaced by `touch`.
"""

import subprocess
import zipfile
from pathlib import Path

import pytest

TOUCH = """
set(CMAKE_CXX_COMPILE_OBJECT "\\"${CMAKE_COMMAND}\\" -E touch <OBJECT>")
set(CMAKE_CXX_CREATE_SHARED_LIBRARY "\\"${CMAKE_COMMAND}\\" -E touch <TARGET>")
"""


def edit(project, old, new):
    file = project.source / "CMakeLists.txt"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


@pytest.fixture
def touched(cmake, scaffold):
    """A project that is built without a compiler, with lines before find_package()."""

    def make(*lines):
        project = cmake(scaffold())
        text = "\n".join([TOUCH, *lines])
        edit(project, "find_package(BackendKit", f"{text}\nfind_package(BackendKit")
        return project

    return make


def configure(project, *options):
    result = project.configure(*options)
    assert result.returncode == 0, result.stderr
    return result


def make(project, *options):
    result = project.make(*options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def steps(output):
    verbs = ("Generating the glue", "Building CXX")
    return [line.split("] ")[1] for line in output.splitlines() if any(v in line for v in verbs)]


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_a_touched_description_generates_once(touched, generator):
    project = touched()
    configure(project, "-G", generator)
    assert len(steps(make(project))) > 4
    assert steps(make(project)) == []
    description = project.source / "backend.toml"
    description.write_text(description.read_text() + "# A remark.\n")
    assert steps(make(project)) == ["Generating the glue of foo"]
    assert steps(make(project)) == []


def test_a_removed_folder_is_generated_again(touched):
    project = touched()
    configure(project)
    make(project)
    generated = project.build / "foo-generated"
    before = sorted(path.name for path in generated.iterdir())
    subprocess.run(["rm", "-r", str(generated)], check=True)
    make(project)
    assert sorted(path.name for path in generated.iterdir()) == before


def test_several_configurations_in_one_folder(touched):
    project = touched("set(CMAKE_DEBUG_POSTFIX _debug)")
    configure(project, "-G", "Ninja Multi-Config")
    for kind in ("Debug", "Release"):
        make(project, "--config", kind)
        assert (project.build / kind / "libtorch_foo.so").exists()


def test_a_build_without_a_type_has_a_wheel(touched):
    project = touched()
    edit(project, "foo SOURCES", "foo WHEEL SOURCES")
    configure(project, "-DCMAKE_BUILD_TYPE=")
    make(project, "--target", "foo_wheel")
    assert [path.name for path in (project.build / "dist").iterdir()] == [
        "torch_foo-0.1.0-py3-none-linux_x86_64.whl"
    ]


def test_the_wheel_is_the_same_wherever_the_package_is_installed(touched, monkeypatch):
    contents = []
    for place in ("", "PACKAGE_DIRECTORY lib/vendor "):
        project = touched()
        edit(project, "foo SOURCES", f"foo {place}WHEEL SOURCES")
        configure(project)
        # Packagers set it for their own installs.
        monkeypatch.setenv("DESTDIR", str(project.build / "elsewhere"))
        make(project, "--target", "foo_wheel")
        monkeypatch.delenv("DESTDIR")
        (wheel,) = (project.build / "dist").iterdir()
        contents.append(wheel.read_bytes())
        assert not (project.build / "elsewhere").exists()
    assert contents[0] == contents[1]


@pytest.mark.parametrize("named", [(), ("legal/EULA.txt", "NOTICE")], ids=["found", "named"])
def test_the_wheel_holds_the_licence(touched, named):
    project = touched()
    with open(project.source / "CMakeLists.txt", "a") as file:
        files = f" LICENSE_FILES {' '.join(named)}" if named else ""
        file.write(f"backendkit_wheel(foo_wheel BACKEND foo{files})\n")
    (project.source / "legal").mkdir()
    for name in ("LICENSE", "NOTICE", "legal/EULA.txt"):
        (project.source / name).write_text(f"the text of {name}\n")
    configure(project)
    make(project, "--target", "foo_wheel")
    (path,) = (project.build / "dist").iterdir()
    place = "torch_foo-0.1.0.dist-info/licenses/"
    with zipfile.ZipFile(path) as wheel:
        inside = [name for name in wheel.namelist() if name.startswith(place)]
        texts = [wheel.read(name).decode() for name in inside]
        ours = wheel.read("torch_foo/LICENSE.BackendKit")
    assert sorted(texts) == sorted(
        f"the text of {name}\n" for name in named or ("LICENSE", "NOTICE")
    )
    assert ours == (Path(__file__).parents[3] / "LICENSE").read_bytes()


def test_a_licence_that_is_not_there(touched):
    project = touched()
    with open(project.source / "CMakeLists.txt", "a") as file:
        file.write("backendkit_wheel(foo_wheel BACKEND foo LICENSE_FILES EULA.txt)\n")
    result = project.configure()
    assert result.returncode != 0
    words = " ".join(result.stderr.split())
    assert "backendkit_wheel(): LICENSE_FILES names 'EULA.txt', which is not a file." in words


def test_an_old_setuptools_is_named(touched, monkeypatch, tmp_path):
    project = touched()
    edit(project, "foo SOURCES", "foo WHEEL SOURCES")
    configure(project)
    old = tmp_path / "old" / "setuptools-65.5.0.dist-info"
    old.mkdir(parents=True)
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: setuptools\nVersion: 65.5.0\n")
    monkeypatch.setenv("PYTHONPATH", str(old.parent))
    result = project.make("--target", "foo_wheel")
    assert result.returncode != 0
    text = result.stdout + result.stderr
    words = " ".join(text.split())
    wanted = "backendkit_wheel(): needs setuptools 70.1 or newer, found setuptools 65.5.0 in"
    assert f"{wanted} {project.python}. Install it there:" in words
    assert f'{project.python} -m pip install "setuptools>=70.1"' in words
    assert "Traceback" not in text


@pytest.mark.parametrize(
    "missing, said",
    [
        ("pip", "found no pip in {python}. Install it there: {python} -m ensurepip --upgrade"),
        ("setuptools", "newer, found none in {python}. Install it there: {python} -m pip install"),
    ],
)
def test_what_packages_is_missing(touched, tmp_path, missing, said):
    """An environment that has PyTorch and one of the two."""
    project = touched()
    edit(project, "foo SOURCES", "foo WHEEL SOURCES")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    base = project.run(project.python, "-c", ask).stdout.strip()
    bare = tmp_path / "bare"
    project.run(project.python, "-m", "venv", "--without-pip", bare)
    project.python = bare / "bin" / "python"
    site = project.run(project.python, "-c", ask).stdout.strip()
    for name in ("torch", "pip", "setuptools"):
        if name != missing:
            for path in Path(base).glob(f"{name}*"):
                (Path(site) / path.name).symlink_to(path)
    configure(project)
    result = project.make("--target", "foo_wheel")
    assert result.returncode != 0
    text = " ".join((result.stdout + result.stderr).split())
    assert said.format(python=project.python) in text
    assert "Traceback" not in text


def test_a_smoke_test_of_a_package_installed_elsewhere_runs_it(touched):
    """The empty file that stands for the library is found, and refused by the loader."""
    project = touched()
    edit(project, "foo SOURCES", "foo PACKAGE_DIRECTORY lib/vendor SOURCES")
    with open(project.source / "CMakeLists.txt", "a") as file:
        file.write("enable_testing()\nbackendkit_smoke_test(smoke BACKEND foo)\n")
    configure(project)
    make(project)
    result = project.run("ctest", "--test-dir", project.build, "--output-on-failure")
    assert result.returncode != 0
    assert "lib/2." in result.stdout and "libtorch_foo.so" in result.stdout
    assert "No module named" not in result.stdout


def test_what_a_project_sets_for_all_its_libraries_stays_out(built, cmake, scaffold):
    """Settings that are meant for other libraries: the rules for linking are as without them."""
    project = cmake(scaffold())
    lines = [
        "set(CMAKE_INSTALL_RPATH /opt/vendor/lib)",
        "set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)",
        "set(CMAKE_BUILD_WITH_INSTALL_RPATH OFF)",
        "set(CMAKE_CXX_VISIBILITY_PRESET default)",
        "set(CMAKE_RELEASE_POSTFIX _release)",
        "set(CMAKE_CXX_STANDARD 17)",
        "find_package(BackendKit",
    ]
    edit(project, "find_package(BackendKit", "\n".join(lines))
    edit(project, "VERSION 3.22...4.0", "VERSION 3.10...4.0")
    configure(project)
    rules = []
    for one in (built, project):
        text = (one.build / "build.ninja").read_text()
        start = text.index("build libtorch_foo.so: CXX_SHARED_LIBRARY_LINKER")
        rule = text[start : text.index("\n\n", start)]
        rules.append(sorted(line for line in rule.splitlines() if "LINK_" in line))
        assert any("$$ORIGIN" in line for line in rules[-1])
    assert rules[0] == rules[1]


def test_the_active_environment_is_found(cmake, scaffold, tmp_path):
    project = cmake(scaffold())
    environment = {"VIRTUAL_ENV": str(tmp_path / "active")}
    subprocess.run(
        [project.python, "-m", "venv", "--without-pip", str(tmp_path / "active")], check=True
    )
    result = project.run(
        "cmake", "-S", project.source, "-B", project.build, "-G", "Ninja",
        f"-DBackendKit_DIR={project.package}", environment=environment,
    )  # fmt: skip
    assert result.returncode != 0
    assert f"found no PyTorch in {tmp_path}/active/bin/python" in "".join(
        line.strip() + " " for line in result.stderr.splitlines()
    )
