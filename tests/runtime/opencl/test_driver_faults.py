# SPDX-License-Identifier: Apache-2.0
"""torch_opencl on a driver that goes wrong while a program uses it: faulty_driver.c."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import run

HERE = Path(__file__).resolve().parent

LOST = "CL_DEVICE_NOT_AVAILABLE (-2)"
FAILED = "CL_OUT_OF_RESOURCES (-5)"
OUT_OF_MEMORY = "OutOfMemoryError: OpenCL out of memory. Tried to allocate 256.00 MiB."
NOT_COMPILED = "RuntimeError: kernels/elementwise.cl does not compile for "


def failed(function: str, cause: str) -> str:
    return f"RuntimeError: ocl::Runtime::{function} failed on ocl:0: {cause}"


#: What each use says, by fault; what is not here works. The first line of a message has to begin
#: so. The two modes of memory differ in which function of the driver fails first.
EXPECTED = {
    "lost": {
        "add": f"RuntimeError: add: {LOST}",
        "first use of a kernel": f"RuntimeError: exp: {LOST}",
        "synchronize": failed("synchronize", f"clFinish: {LOST}"),
        "to the host": failed("copy", f"copy: {LOST}"),
        "to the device": failed("copy", f"copy: {LOST}"),
        "item": failed("copy", f"copy: {LOST}"),
        "fallback": {
            "svm": failed("synchronize_stream", f"clFinish: {LOST}"),
            "buffer": failed("copy", f"copy: {LOST}"),
        },
        "from another device": failed("record_event", f"clEnqueueMarkerWithWaitList: {LOST}"),
        "record": failed("record_event", f"clEnqueueMarkerWithWaitList: {LOST}"),
        "wait": failed("wait_event", f"wait_event: {LOST}"),
        "event": failed("synchronize_event", f"clWaitForEvents: {LOST}"),
        "stream": failed("synchronize_stream", f"clFinish: {LOST}"),
        "query": failed("query_stream", f"clFlush: {LOST}"),
        "much memory": {
            "svm": failed("synchronize", f"clFinish: {LOST}"),
            "buffer": failed("allocate", f"clCreateBuffer: {LOST}"),
        },
        "pinned memory": failed("synchronize", f"clFinish: {LOST}"),
        "backward": f"RuntimeError: fill_: {LOST}",
        "empty_cache": failed("synchronize", f"clFinish: {LOST}"),
    },
    "memory": {
        "much memory": OUT_OF_MEMORY,
        "pinned memory": "OutOfMemoryError: out of pinned host memory for OpenCL.",
    },
    "later": {
        "synchronize": failed("synchronize", f"`add` failed on the device: {FAILED}"),
    },
    "compiler": {
        "first use of a kernel": NOT_COMPILED,
    },
    "release": {},
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that names the driver, for OCL_ICD_VENDORS."""
    folder = tmp_path_factory.mktemp("driver")
    library = folder / "libfaulty.so"
    compiler = ["gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*compiler, "-o", library, HERE / "faulty_driver.c", "-ldl"], check=True)
    (folder / "faulty.icd").write_text(f"{library}\n")
    return folder


@pytest.mark.parametrize(
    ("fault", "end"), [*((fault, "mended") for fault in EXPECTED), ("lost", "broken")]
)
def test_each_use_says_what_failed(
    python: Path, memory: str, driver: Path, compiled: Path, fault: str, end: str
) -> None:
    """And works afterwards. A process that ends while the fault is there ends as it should."""
    environment = {
        "OCL_ICD_VENDORS": str(driver),
        "OPENCL_CACHE": "off",
        "OPENCL_MEMORY": memory,
        "POCL_CACHE_DIR": str(compiled),
    }
    program = HERE / "uses_of_a_faulty_device.py"
    done = run(python, program, fault, end, **environment)
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    wrong = {}
    for use, text in said.items():
        wanted = EXPECTED[fault].get(use, "worked")
        if isinstance(wanted, dict):
            wanted = wanted[memory]
        if not text.startswith(wanted):
            wrong[use] = text
    assert wrong == {}
    assert set(EXPECTED[fault]) <= set(said)
    leaked = fault == "release" and memory == "buffer"
    assert ("the device memory is leaked" in done.stderr) == leaked, done.stderr
