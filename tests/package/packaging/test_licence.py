# SPDX-License-Identifier: Apache-2.0
"""The licences in a wheel: the vendor's in its metadata, BackendKit's in the package."""

from __future__ import annotations

import email
import shutil
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, Environment

TOUCH = """
set(CMAKE_CXX_COMPILE_OBJECT "\\"${CMAKE_COMMAND}\\" -E touch <OBJECT>")
set(CMAKE_CXX_CREATE_SHARED_LIBRARY "\\"${CMAKE_COMMAND}\\" -E touch <TARGET>")
"""
INFO = "torch_foo-0.1.0.dist-info"


@pytest.mark.parametrize("said", [False, True], ids=["found", "named"])
def test_a_wheel_holds_the_licences(builder: Environment, tmp_path: Path, said: bool) -> None:
    folder = tmp_path / "copy"
    ignore = shutil.ignore_patterns("build", "__pycache__")
    shutil.copytree(ROOT / "examples" / "minimal", folder, ignore=ignore)
    wanted = {"EULA.txt"} if said else {"LICENSE", "NOTICE.txt", "COPYING.LESSER", "AUTHORS"}
    for name in wanted | {"LICENSE"}:
        (folder / name).write_text(f"the text of {name}\n")
    if said:
        setup = folder / "setup.py"
        arguments = 'license_expression="LicenseRef-Vendor", license_files=["EULA.txt"],'
        text = setup.read_text()
        assert text.count("setup_backend(\n") == 1
        setup.write_text(text.replace("setup_backend(\n", f"setup_backend(\n    {arguments}\n"))
    (tmp_path / "touch.cmake").write_text(TOUCH)
    arguments = f"-DCMAKE_PROJECT_INCLUDE={tmp_path}/touch.cmake"
    builder.pip("wheel", "--wheel-dir", tmp_path, folder, cwd=tmp_path, CMAKE_ARGS=arguments)
    (path,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        own = {n.rpartition("/")[2] for n in wheel.namelist() if n.startswith(f"{INFO}/licenses/")}
        ours = wheel.read("torch_foo/LICENSE.BackendKit")
        texts = {name: wheel.read(f"{INFO}/licenses/{name}").decode() for name in own}
        metadata = email.message_from_bytes(wheel.read(f"{INFO}/METADATA"))
    assert own == wanted
    assert texts == {name: f"the text of {name}\n" for name in wanted}
    assert set(metadata.get_all("License-File")) == wanted
    assert metadata["License-Expression"] == ("LicenseRef-Vendor" if said else None)
    assert ours == (ROOT / "LICENSE").read_bytes()
