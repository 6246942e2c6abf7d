# SPDX-License-Identifier: Apache-2.0
"""Builds and tests for other compilers and machines: `./dev platforms`.

clang: the generator with its unit tests, and the starter project's wheel with the device suite.
aarch64: the starter project's wheel by a cross compiler; the suite's core part under qemu-user.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from aarch64 import run_aarch64

ROOT = Path(__file__).resolve().parents[3]


def run(*command: object, folder: Path, **more: str) -> None:
    words = [str(word) for word in command]
    subprocess.run(words, cwd=folder, env={**os.environ, **more}, check=True)


def run_clang(folder: Path, tools: Path) -> None:
    """Raises CalledProcessError if something does not build or pass."""
    tree = folder / "generator"
    settings = ["-DBACKENDKIT_BUILD_TESTING=ON", "-DCMAKE_CXX_COMPILER=clang++"]
    settings += [f"-DPython_EXECUTABLE={sys.executable}"]
    run("cmake", "--preset", "release", "-B", tree, *settings, folder=ROOT)
    run("cmake", "--build", tree, folder=ROOT)
    run("ctest", "--test-dir", tree, "--output-on-failure", folder=ROOT)

    run(tree / "generator" / "backendgen", "new", "foo", folder=folder)
    wheel = [tools, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", "."]
    run(*wheel, "./foo", folder=folder, CC="clang", CXX="clang++")
    environment = folder / "environment"
    run(tools, "-m", "venv", "--without-pip", environment, folder=folder)
    python = environment / "bin" / "python"
    purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"

    def ask(program: Path) -> str:
        return subprocess.check_output([program, "-c", purelib], encoding="utf-8").strip()

    # As in `environment` of ./dev: PyTorch and the tools are those of the base environment.
    (Path(ask(python)) / "base.pth").write_text(ask(Path(sys.executable)) + "\n")
    (made,) = folder.glob("torch_foo-*.whl")
    run(python, "-m", "pip", "install", "--no-index", "--no-deps", made, folder=folder)
    suite = [python, "-m", "pytest", "-n", str(os.cpu_count()), "--dist", "loadfile"]
    run(*suite, "tests/device", folder=ROOT)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev platforms", description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="*", metavar="PLATFORM", help="clang, aarch64")
    parser.add_argument("--folder", type=Path, required=True, help="where builds go")
    parser.add_argument("--tools", type=Path, required=True, help="a Python that has backendkit")
    options = parser.parse_args()
    which = options.which or ["clang", "aarch64"]
    unknown = sorted(set(which) - {"clang", "aarch64"})
    if unknown:
        parser.error(f"unknown platform `{unknown[0]}`: name `clang` or `aarch64`")
    status = 0
    for name in which:
        folder = options.folder.absolute() / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print(f"== {name}", flush=True)
        if name == "clang":
            run_clang(folder, options.tools.absolute())
        else:
            build = Path(os.environ["BACKENDKIT_BUILD"])
            backendgen = Path(os.environ["BACKENDGEN"])
            status |= run_aarch64(folder, backendgen, build, ROOT / "tests" / "device")
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: `{error.cmd[0]}` failed with status {error.returncode}")
