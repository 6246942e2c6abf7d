# SPDX-License-Identifier: Apache-2.0
"""Programs that use only the CPU see no difference between a broken backend and none."""

import json
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from conftest import Interpreter, Site
from test_failures import SPOILT, Spoil

#: What tests/pytorch/unchanged runs with a backend that is whole.
PROBES = Path(__file__).resolve().parents[2] / "pytorch" / "unchanged"
sys.path.append(str(PROBES))

from differences import plain  # noqa: E402

# What PyTorch decides in C++ from the device's name alone. All but the first raise without the
# backend as well, on a machine without an accelerator.
DIFFERENT = {
    "device_from_index": "an index without a type is one of the device that has a name",
    "to_index": "likewise; using it names the cause",
    "ones_on_index": "likewise; using it names the cause",
    "empty_pinned": "the text: pinned allocation asks the hooks of the device that has a name",
    "tensor_pinned": "likewise",
    "pinned_factory": "likewise",
    "accelerator_graph": "the text: the constructor names the device",
    "record_stream": "the text: PyTorch lists the fallback that names the cause",
}


def probe(base: Interpreter, group: str, output: Path, *sites: Site) -> dict[str, Any]:
    path = [PROBES, *(site.folder for site in sites)]
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(map(str, path))}
    code = "import registry; registry.main()"
    done = base.start(code, arguments=(group, str(output)), environment=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text())["outcomes"]


def same(without: dict[str, Any], broken: dict[str, Any]) -> bool:
    """Whether two outcomes are the same, but for the device's name, which PyTorch knows."""
    renamed = set(plain(without)) == set(plain(broken))
    return without == broken or (renamed and without["warnings"] == broken["warnings"])


@pytest.fixture(scope="module")
def without_backend(
    base: Interpreter, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, Any]]:
    """The outcomes of a group without the backend; each group runs once."""
    folder = tmp_path_factory.mktemp("without")
    return lru_cache(lambda group: probe(base, group, folder / f"{group}.json"))


@pytest.mark.parametrize("group", ["core", "defaults", "distributed", "accelerator"])
@pytest.mark.parametrize("name", ["built for another release", "driver library missing"])
def test_cpu_behaves_as_without_the_backend(
    base: Interpreter,
    without_backend: Callable[[str], dict[str, Any]],
    site: Site,
    tmp_path: Path,
    name: str,
    group: str,
) -> None:
    spoil: Spoil = SPOILT[name][0]
    spoil(site)
    without = without_backend(group)
    broken = probe(base, group, tmp_path / "broken.json", site)
    assert without.keys() == broken.keys()
    different = {key for key in without if not same(without[key], broken[key])}
    assert different - DIFFERENT.keys() == set()
    for key in different - {"device_from_index"}:
        assert "error" in without[key], key
        assert "error" in broken[key], key
