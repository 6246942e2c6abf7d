# SPDX-License-Identifier: Apache-2.0
"""Programs that use only the CPU see no difference between a broken backend and none."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Interpreter, Site
from test_failures import SPOILT, Spoil

# What PyTorch decides in C++ from the device's name alone. All but the first raise without the
# backend as well, on a machine without an accelerator.
DIFFERENT = {
    "device_from_index": "an index without a type is one of the device that has a name",
    "to_index": "likewise; using it names the cause",
    "ones_on_index": "likewise; using it names the cause",
    "empty_pinned": "the text: pinned allocation asks the hooks of the device that has a name",
    "tensor_pinned": "likewise",
    "accelerator_graph": "the text: the constructor names the device",
    "record_stream": "the text: PyTorch lists the fallback that names the cause",
}


def probe(base: Interpreter, output: Path, *sites: Site) -> dict[str, Any]:
    script = Path(__file__).with_name("cpu_probes.py")
    code = (
        "import runpy, sys; sys.argv = [{0!r}, {1!r}]; runpy.run_path({0!r}, run_name='__main__')"
    ).format(str(script), str(output))
    environment = {"OMP_NUM_THREADS": "1"}
    done = base.start(code, *sites, environment=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text())


@pytest.mark.parametrize("name", ["built for another release", "driver library missing"])
def test_cpu_behaves_as_without_the_backend(
    base: Interpreter, site: Site, tmp_path: Path, name: str
) -> None:
    spoil: Spoil = SPOILT[name][0]
    spoil(site)
    without = probe(base, tmp_path / "without.json")
    broken = probe(base, tmp_path / "broken.json", site)
    assert without.keys() == broken.keys()
    different = {key for key in without if without[key] != broken[key]}
    assert different - DIFFERENT.keys() == set()
    for key in different - {"device_from_index"}:
        assert "error" in without[key], key
        assert "error" in broken[key], key
