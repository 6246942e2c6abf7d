# SPDX-License-Identifier: Apache-2.0
"""examples/opencl on PoCL, an OpenCL driver that computes on the CPU."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, run

#: The device tests of what the runtime itself does; `./dev opencl` runs all of them.
DEVICE_TESTS = ["copies", "graphs", "memory", "pinned", "storages", "stream_memory", "streams", "tensors"]


def says(python: Path, code: str, **environment: str) -> str:
    return run(python, "-c", f"import torch\n{code}", **environment).stdout.strip()


def error(python: Path, code: str, **environment: str) -> str:
    """The last line of the error with which the code ends, after a quiet `import torch`."""
    done = run(python, "-c", f"import torch\n{code}", status=1, **environment)
    assert "Warning" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_its_own_tests_pass(python: Path, memory: str, compiled: Path) -> None:
    tests = ROOT / "examples" / "opencl" / "tests"
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
    done = run(python, *command, cwd=compiled, OPENCL_MEMORY=memory, OPENCL_CACHE=str(compiled))
    assert re.search(r"^\d+ passed", done.stdout, re.M), done.stdout
    assert "skipped" not in done.stdout


def test_device_tests_pass(python: Path, memory: str, compiled: Path) -> None:
    tests = [f"test_{name}.py" for name in DEVICE_TESTS]
    command = ["-m", "backendkit.device_tests", "--device", "ocl", "-q", *tests]
    done = run(python, *command, cwd=compiled, OPENCL_MEMORY=memory, OPENCL_CACHE=str(compiled))
    assert re.search(r"^\d+ passed", done.stdout, re.M), done.stdout


@pytest.mark.parametrize(("file", "calls"), [("check_kernels.py", 350), ("check_rows.py", 900), ("check_layers.py", 140)])
def test_kernels_compute_what_the_cpu_does(
    python: Path, memory: str, compiled: Path, file: str, calls: int
) -> None:
    check = Path(__file__).with_name(file)
    done = run(python, check, OPENCL_MEMORY=memory, OPENCL_CACHE=str(compiled))
    assert int(done.stdout.split()[0]) > calls, done.stdout
    assert done.stdout.endswith(" calls, 0 differ\n"), done.stdout
    assert done.stderr == "", "a driver's compiler warns"


def test_copies_are_those_of_the_cpu(python: Path, memory: str, compiled: Path) -> None:
    check = Path(__file__).with_name("check_copies.py")
    done = run(python, check, OPENCL_MEMORY=memory, OPENCL_CACHE=str(compiled))
    assert int(done.stdout.split()[0]) > 800, done.stdout
    assert done.stdout.endswith(" copies, 0 differ\n"), done.stdout


def test_memory_of_both_kinds(python: Path) -> None:
    code = """
x = torch.ones(4, device="ocl:1")
print(x.sum().item(), (x.data_ptr() % 4096 == 0), torch.ocl.device_count())
"""
    for memory in ("svm", "buffer"):
        assert says(python, code, OPENCL_MEMORY=memory).split()[::2] == ["4.0", "2"]
    said = error(python, code, OPENCL_MEMORY="magic")
    assert said.endswith("OPENCL_MEMORY=magic: it is `svm` or `buffer`")


def test_devices_are_chosen(python: Path) -> None:
    count = "print(torch.ocl.device_count())"
    for wish, devices in (("1", "1"), ("cpu", "2"), ("1,0,cpu", "2"), ("PTHREAD", "2"), ("", "2")):
        assert says(python, count, OPENCL_DEVICES=wish) == devices
    assert says(python, count, OPENCL_DEVICES="gpu") == "0"
    assert "OPENCL_DEVICES: no device is `gpu`; there are 0 pthread" in error(
        python, "torch.ones(1, device='ocl')", OPENCL_DEVICES="gpu"
    )


def test_counting_starts_no_driver(python: Path) -> None:
    """So a child that is forked afterwards can use the devices."""
    code = """
import os
assert torch.ocl.device_count() == 2
assert not any("pocl" in line for line in open("/proc/self/maps"))
if os.fork() == 0:
    print((torch.ones(2, device="ocl") + 1).tolist(), flush=True)
    os._exit(0)
print(os.wait()[1])
"""
    assert says(python, code).split("\n") == ["[2.0, 2.0]", "0"]


NO_DEVICE = "print(torch.ocl.device_count(), torch.ocl.is_available(), torch.ones(2).sum().item())"


def test_no_platform(python: Path, tmp_path: Path) -> None:
    environment = {"OCL_ICD_VENDORS": str(tmp_path)}
    assert says(python, NO_DEVICE, **environment) == "0 False 2.0"
    assert "ocl" in error(python, "torch.ones(1, device='ocl')", **environment)


def test_no_loader(python: Path, tmp_path: Path) -> None:
    (tmp_path / "libOpenCL.so.1").write_text("")
    environment = {"LD_LIBRARY_PATH": str(tmp_path)}
    assert says(python, NO_DEVICE, **environment) == "0 False 2.0"


def test_a_driver_that_crashes(python: Path, tmp_path: Path) -> None:
    """In the first call that a loader makes, clIcdGetPlatformIDsKHR."""
    source = tmp_path / "driver.c"
    source.write_text(
        "int clIcdGetPlatformIDsKHR(void) { *(volatile int*)0 = 1; return 0; }\n"
        "void* clGetExtensionFunctionAddress(void) { return (void*)clIcdGetPlatformIDsKHR; }\n"
    )
    library = tmp_path / "libcrash.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    (tmp_path / "crash.icd").write_text(f"{library}\n")
    environment = {"OCL_ICD_VENDORS": str(tmp_path)}
    assert says(python, NO_DEVICE, **environment) == "0 False 2.0"
    said = error(python, "torch.ones(1, device='ocl')", **environment)
    assert "an OpenCL driver crashes when it is asked for its devices (Segmentation fault)" in said


COMPILES = """
import time
x = torch.ones(16, device="ocl:0")
torch.ocl.synchronize()
start = time.perf_counter()
y = x.exp() + x
torch.ocl.synchronize()
print(time.perf_counter() - start, y[0].item())
"""


def test_compiled_kernels_are_kept(python: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    environment = {"OPENCL_CACHE": str(folder), "POCL_KERNEL_CACHE": "0"}

    def first_operators() -> tuple[float, str]:
        seconds, value = says(python, COMPILES, **environment).split()
        return float(seconds), value

    _, value = first_operators()
    files = {path: path.read_bytes() for path in folder.iterdir()}
    assert len(files) >= 2
    for damage in (b"", b"nonsense", None, "cut"):
        for path, whole in files.items():
            wrong = bytes([*whole[:-1], whole[-1] ^ 1]) if damage is None else damage
            path.write_bytes(whole[: len(whole) // 2] if wrong == "cut" else wrong)
        assert first_operators()[1] == value
        assert {path: path.read_bytes() for path in folder.iterdir()}.keys() == files.keys()
        assert all(len(path.read_bytes()) > 1000 for path in files)


def test_a_cache_that_is_off_or_cannot_be_written(python: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environment = {"HOME": str(home), "XDG_CACHE_HOME": ""}
    environment["POCL_CACHE_DIR"] = str(tmp_path / "pocl")
    assert says(python, COMPILES, OPENCL_CACHE="off", **environment)
    assert list(home.iterdir()) == []
    (tmp_path / "file").write_text("")
    assert says(python, COMPILES, OPENCL_CACHE=str(tmp_path / "file" / "below"), **environment)
    assert says(python, COMPILES, OPENCL_CACHE="", **environment)
    assert any((home / ".cache" / "torch_opencl").iterdir())


def test_processes_share_the_cache(python: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "OPENCL_CACHE": str(tmp_path), "POCL_KERNEL_CACHE": "0"}
    command = [python, "-c", f"import torch\n{COMPILES}"]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    values = {process.communicate()[0].split()[1] for process in both}
    assert len(values) == 1
    assert all("." not in path.name for path in tmp_path.iterdir()), "a file beside is left"
