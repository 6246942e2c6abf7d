# SPDX-License-Identifier: Apache-2.0
"""Builds, installs and tests backends with several releases of PyTorch; `./dev matrix`.

Each release gets environments of its own, one release after another, removed afterwards: one with
PyTorch as pip installs it, with the CUDA packages it asks for (5 to 8 GB); one that sees it and has
BackendKit and the tools; one that sees both and has the starter project's wheel. What was found
goes to results.json beside this file, and docs/compatibility.md is written anew from that.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from page import PAGE, write_page
from results import (
    RELEASES,
    RESULTS,
    ROOT,
    SUITES,
    Row,
    last_line,
    read_report,
    save,
    why_not_built,
    why_not_installed,
)

GIGABYTE = 1 << 30
NEEDED = 10 * GIGABYTE  # PyTorch with CUDA, and pip's copies while it unpacks
PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"
HERE = Path(__file__).resolve().parent

#: The arguments of pytest for the suites that are files of this tree.
EXAMPLES = "tests/package/packaging/test_examples.py"
KERNELS = "tests/runtime/kernels/test_example_kernels.py"
ARGUMENTS = {
    "operators": ["tests/pytorch/operators/test_signatures.py"],
    "device": [
        "tests/device",
        "--ignore=tests/device/test_transformers.py",
        "--ignore=tests/device/test_hugging_face.py",
    ],
    "unchanged": ["tests/pytorch/unchanged"],
    "minimal": [EXAMPLES, "-k", "minimal"],
    "dense": [KERNELS, "-k", "dense and not samples"],
    "strided": [KERNELS, "-k", "strided and not samples"],
    "vendor_library": [EXAMPLES, "-k", "not minimal"],
    "starts": ["tests/package/python/test_process_group.py"],
    "collectives": ["tests/runtime/groups/test_ways.py", "-k", "by_the_driver"],
}


class Failed(Exception):
    """Why a release has no results, in words for the page."""


class Release:
    """One release under one Python, in a folder of its own."""

    def __init__(self, row: Row, folder: Path) -> None:
        self.row = row
        self.folder = folder
        self.torch = folder / "torch" / "bin" / "python"
        self.tools = folder / "tools" / "bin" / "python"
        self.backend = folder / "backend" / "bin" / "python"

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def run(self, log: str, *command: object, cwd: Path = ROOT, **variables: str) -> bool:
        """Runs a command with its output in a log; whether it succeeded."""
        environment = {**os.environ, **variables}
        environment["PATH"] = os.pathsep.join(
            [str(self.tools.parent), str(self.torch.parent), os.environ["PATH"]]
        )
        temporary = self.folder / "temporary"  # pip's copies go with the folder, whatever happens
        temporary.mkdir(exist_ok=True)
        environment |= {
            "TMPDIR": str(temporary),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_CACHE_DIR": "1",  # gigabytes that no other release asks for
        }
        environment.pop("PYTHONPATH", None)
        with open(self.log(log), "w", encoding="utf-8") as file:
            done = subprocess.run(
                [str(word) for word in command],
                cwd=cwd,
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        return done.returncode == 0

    def text(self, log: str) -> str:
        return self.log(log).read_text(encoding="utf-8", errors="replace")

    def shown(self, log: str) -> str:
        """The path of a log, as seen from this tree where it lies in it."""
        path = self.log(log)
        return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)

    def need(self, log: str, *command: object, cwd: Path | None = None) -> None:
        if not self.run(log, *command, cwd=cwd or self.folder):
            text = f"PyTorch {self.row.version}: `{log}` failed: {last_line(self.text(log))}"
            raise Failed(f"{text}\nnote: the log is {self.shown(log)}")

    def derive(self, python: Path, *seen: Path) -> None:
        """Makes the environment of `python`, which also sees, but cannot change, the others."""
        self.need("venv", seen[0], "-m", "venv", "--without-pip", python.parents[1])
        asked = [subprocess.check_output([one, "-c", PURELIB], text=True) for one in seen]
        own = subprocess.check_output([python, "-c", PURELIB], text=True)
        Path(own.strip(), "seen.pth").write_text("".join(asked), encoding="utf-8")

    def suite(self, name: str, python: Path, *arguments: object, cwd: Path = ROOT) -> None:
        report = self.folder / f"{name}.xml"
        report.unlink(missing_ok=True)
        self.run(
            name, python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
            f"--basetemp={self.folder / 'temporary' / name}", *arguments, cwd=cwd,
            PYTHONDONTWRITEBYTECODE="1",
            BACKENDGEN=str(self.tools.parent / "backendgen"),
            BACKENDKIT_TEST_PYTHON=str(self.backend),
            BACKENDKIT_TEST_BASE_PYTHON=str(self.tools),
            BACKENDKIT_TEST_TOOLS_PYTHON=str(self.tools),
        )  # fmt: skip
        suite = read_report(report)
        if suite.problem:
            suite.problem += f": {last_line(self.text(name))}"
        self.row.suites[name] = suite
        print(f"    {name:<16}{suite.cell}", flush=True)

    # --- the steps, in their order ---

    def install(self, python: Path, backendkit: Path, ready: Path | None) -> None:
        """PyTorch with `python`, or as `ready` has it; then the tools and BackendKit."""
        if ready is None:
            self.need("venv", python, "-m", "venv", self.torch.parents[1])
            wanted = f"torch=={self.row.version}"
            if not self.run("install", self.torch, "-m", "pip", "install", wanted):
                text = self.text("install")
                raise Failed(why_not_installed(self.row.version, text, self.shown("install")))
        else:
            self.torch = ready
        self.derive(self.tools, self.torch)
        pip = [self.tools, "-m", "pip", "install"]
        # Whatever a Python that was given has: its programs may be elsewhere, or too old.
        own = ["--ignore-installed", "-r", HERE / "requirements.txt"]
        self.need("requirements", *pip, *own)
        self.need("backendkit", *pip, "--no-deps", backendkit)
        ask = "import torch, sys; print(torch.__version__, *sys.version_info[:2])"
        answer = subprocess.check_output([self.tools, "-c", ask], text=True).split()
        if answer[0].split("+")[0] != self.row.version:
            raise Failed(f"PyTorch {self.row.version}: {self.torch} has {answer[0]}")
        self.row.python = ".".join(answer[1:])
        pins = self.folder / "pins.txt"  # so that pip finds software for this release of PyTorch
        pins.write_text(f"torch=={self.row.version}\n", encoding="utf-8")
        self.need("frameworks", *pip, "-c", pins, "-r", HERE / "frameworks.txt")

    def start_project(self) -> None:
        self.need("new", self.tools.parent / "backendgen", "new", "foo")

    def build(self) -> Path:
        """The wheel of the starter project."""
        started = time.monotonic()
        options = ["--no-build-isolation", "--no-deps", "--wheel-dir", "dist"]
        command = [self.tools, "-m", "pip", "wheel", "-v", *options, "./foo"]
        # As the benchmarks do: the time is of compiling, whatever ccache has.
        if not self.run("wheel", *command, cwd=self.folder, CCACHE_DISABLE="1"):
            text = why_not_built(self.row.version, self.text("wheel"), self.shown("wheel"))
            raise Failed(text)
        self.row.build_seconds = round(time.monotonic() - started)
        (wheel,) = (self.folder / "dist").glob("*.whl")
        print(f"    {'build':<16}{self.row.build_seconds} s", flush=True)
        return wheel

    def install_backend(self, wheel: Path) -> None:
        os.environ["BACKENDKIT_TEST_WHEEL"] = str(wheel)  # for the suites that install it
        self.row.package = " ".join(wheel.name.split("-")[:2])
        self.row.wheel = hashlib.sha256(wheel.read_bytes()).hexdigest()
        self.derive(self.backend, self.tools, self.torch)
        self.need("backend", self.backend, "-m", "pip", "install", "--no-deps", wheel)

    def test(self, suites: list[str]) -> None:
        for name in suites:
            if name == "starter":
                self.suite(name, self.backend, cwd=self.folder / "foo")
            else:
                python = self.backend if name == "device" else self.tools
                self.suite(name, python, *ARGUMENTS[name])

    def clear(self) -> None:
        """Leaves logs, reports and the wheel."""
        for name in ("torch", "tools", "backend", "foo", "temporary"):
            shutil.rmtree(self.folder / name, ignore_errors=True)


def judge(release: Release, options: argparse.Namespace, backendkit: Path) -> None:
    shutil.rmtree(release.folder, ignore_errors=True)
    release.folder.mkdir(parents=True)
    try:
        free = shutil.disk_usage(release.folder).free
        if options.ready is None and free < NEEDED:
            text = f"{free / GIGABYTE:.0f} GB are free, {NEEDED / GIGABYTE:.0f} are needed"
            raise Failed(f"PyTorch {release.row.version}: {text}")
        release.install(options.python, backendkit, options.ready)
        release.start_project()
        release.install_backend(options.wheel or release.build())
        release.test(options.suites)
    except Failed as error:
        release.row.error = str(error)


def first_line(*command: str) -> str:
    return subprocess.check_output(command, text=True, cwd=ROOT).splitlines()[0]


def state_of_the_tree() -> str:
    """The commit, with a + where the tree is not as it is there."""
    commit = first_line("git", "rev-parse", "--short=10", "HEAD")
    ours = [f":(exclude){path.relative_to(ROOT)}" for path in (PAGE, RESULTS)]
    changed = subprocess.check_output(
        ["git", "status", "--porcelain", "--", ".", *ours], text=True, cwd=ROOT
    )
    return commit + ("+" if changed else "")


def compiler() -> str:
    """The compiler that CMake takes, such as "g++ (Debian 12.2.0-14) 12.2.0"."""
    return first_line(os.environ.get("CXX", "c++"), "--version").replace("c++", "g++", 1)


def build_backendkit(folder: Path) -> Path:
    """BackendKit's wheel, which holds nothing of PyTorch and so serves all releases."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


_PYTHON = "the Python to make environments with; else the one of ./dev"
_WITH = "a Python that has the release already, in place of one made here; it is not changed"
_NOTE = "for the page: how that Python got the release, if not as pip installs it"
_WHEEL = "a wheel of the starter project to test, such as one built under another Python"


def read_command_line(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev matrix", description=__doc__.splitlines()[0])
    option = parser.add_argument
    option("versions", nargs="*", metavar="VERSION", help="such as 2.6.0; else all")
    option("--folder", type=Path, required=True, help="where environments go")
    option("--python", type=Path, default=sys.executable, metavar="EXE", help=_PYTHON)
    option("--with", type=Path, dest="ready", metavar="EXE", help=_WITH)
    option("--note", default="", metavar="TEXT", help=_NOTE)
    option("--wheel", type=Path, metavar="WHL", help=_WHEEL)
    option("--backendkit", type=Path, metavar="WHL", help="BackendKit; else it is built")
    option("--suites", default=",".join(SUITES), metavar="NAMES", help=f"of {','.join(SUITES)}")
    option("--date", default=datetime.date.today().isoformat(), help="of the run; else today")
    option("--dry", action="store_true", help="write neither results.json nor the page")
    option("--keep", action="store_true", help="leave the environments there")
    options = parser.parse_args(arguments)
    options.versions = options.versions or RELEASES
    odd = [one for one in options.versions if not re.fullmatch(r"\d+\.\d+\.\d+", one)]
    if odd:
        parser.error(f"not a release such as 2.6.0: {', '.join(odd)}")
    if len(options.versions) > 1 and (options.ready or options.wheel):
        parser.error("--with and --wheel are for one release")
    options.suites = options.suites.split(",")
    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    for name in ("python", "ready", "wheel", "backendkit"):
        path = getattr(options, name)
        if path is not None and not path.is_file():
            parser.error(f"no file {path}")
        setattr(options, name, path and path.absolute())
    options.folder = options.folder.absolute()
    return options


def main(arguments: list[str]) -> int:
    options = read_command_line(arguments)
    if "BACKENDKIT_BUILD" not in os.environ:
        sys.exit("error: BACKENDKIT_BUILD is not set: run this as ./dev matrix")
    backendkit = options.backendkit or build_backendkit(options.folder / "backendkit")
    failed = []
    for version in options.versions:
        row = Row(
            version=version,
            python=".".join(map(str, sys.version_info[:2])),
            commit=state_of_the_tree(),
            date=options.date,
            machine=f"{os.cpu_count()} cores, {platform.machine()}, CPU",
            compiler=compiler(),
            note=options.note,
        )
        name = f"{version}-wheel" if options.wheel else version  # not where that wheel lies
        release = Release(row, options.folder / name)
        print(f"PyTorch {version}", flush=True)
        judge(release, options, backendkit)
        if not options.keep:
            release.clear()
        if row.error:
            print(f"error: {row.error}", file=sys.stderr, flush=True)
        if not row.good:
            failed.append(version)
        if not options.dry:
            write_page(save(row))
    if failed:
        print(f"error: failed: {', '.join(failed)}", file=sys.stderr)
        print(f"note: the logs are in {options.folder}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
