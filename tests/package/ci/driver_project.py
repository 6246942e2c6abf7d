# SPDX-License-Identifier: Apache-2.0
"""Makes a project with [wheel.runtime] whose driver `ci/install_driver.sh` builds."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RUNTIME = """
[wheel.runtime]
version = "4.2.0"
libraries = ["driver/lib/libfoo*.so.?"]
"""
INSTALL = """\
# To build, the libraries of this machine's architecture have to lie where `libraries` of
# backend.toml names them. Users, and so the tests, get them with foo-runtime.
set -e
[ "$1" = build ] || exit 0
cd driver
mkdir -p lib
make_library() { gcc -O2 -shared -fPIC -Wl,-soname,"$1" -o "lib/$1" "${@:2}"; }
make_library libfoofirmware.so.2 firmware.c
make_library libfoodriver.so.4 driver.c lib/libfoofirmware.so.2
"""
FIRMWARE = "int foo_devices(void) { return 2; }\n"
DRIVER = "int foo_devices(void);\nint foo_count(void) { return foo_devices(); }\n"


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def make(project: Path) -> None:
    """`examples/minimal`, whose runtime asks the driver how many devices there are."""
    ignore = shutil.ignore_patterns("build", "dist", "__pycache__")
    shutil.copytree(ROOT / "examples" / "minimal", project, ignore=ignore)
    with open(project / "backend.toml", "a", encoding="utf-8") as description:
        description.write(RUNTIME)
    for name, text in {
        "ci/install_driver.sh": INSTALL,
        "driver/firmware.c": FIRMWARE,
        "driver/driver.c": DRIVER,
        "LICENSE.driver": "Ours.\n",
    }.items():
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    lib = "${CMAKE_CURRENT_SOURCE_DIR}/driver/lib"
    libraries = f"LIBRARIES {lib}/libfoodriver.so.4 -Wl,-rpath-link,{lib}"
    replace(project / "CMakeLists.txt", "csrc/runtime.cpp)", f"csrc/runtime.cpp\n  {libraries})")
    runtime = project / "csrc" / "runtime.cpp"
    replace(runtime, "constexpr int kDevices = 2;\n", "")
    replace(runtime, "return kDevices;", "return foo_count();")
    replace(
        runtime, "\nnamespace foo {\n", '\nextern "C" int foo_count(void);\n\nnamespace foo {\n'
    )


def change_driver(project: Path) -> None:
    """A driver with three devices, under the same version."""
    replace(project / "driver" / "firmware.c", "return 2;", "return 3;")
