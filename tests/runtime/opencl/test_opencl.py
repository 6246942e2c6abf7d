# SPDX-License-Identifier: Apache-2.0
"""examples/opencl on PoCL, an OpenCL driver that computes on the CPU."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import EXAMPLE, ROOT, run

#: The device tests of what the runtime itself does; with `--every-test` all of them run.
DEVICE_TESTS = [
    "copies",
    "graphs",
    "memory",
    "pinned",
    "storages",
    "stream_memory",
    "streams",
    "tensors",
]


def says(python: Path, code: str, **environment: str) -> str:
    return run(python, "-c", f"import torch\n{code}", **environment).stdout.strip()


def error(python: Path, code: str, **environment: str) -> str:
    """The last line of the error with which the code ends, after a quiet `import torch`."""
    done = run(python, "-c", f"import torch\n{code}", status=1, **environment)
    assert "Warning" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_its_own_tests_pass(python: Path, memory: str, compiled: Path) -> None:
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLE / "tests"]
    done = run(python, *command, cwd=compiled, OPENCL_MEMORY=memory, OPENCL_CACHE=str(compiled))
    assert re.search(r"^\d+ passed", done.stdout, re.M), done.stdout
    assert "skipped" not in done.stdout


def test_device_tests_pass(
    python: Path,
    memory: str,
    cache: dict[str, str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    every = request.config.getoption("--every-test")
    tests = [] if every else [f"test_{name}.py" for name in DEVICE_TESTS]
    command = ["-m", "backendkit.device_tests", "--device", "ocl", "-q", *tests]
    done = run(python, *command, cwd=tmp_path, OPENCL_MEMORY=memory, **cache)
    assert re.search(r"^\d+ passed", done.stdout, re.M), done.stdout


@pytest.mark.long
def test_the_smoke_tests_of_torchcts_pass(
    python: Path, memory: str, cache: dict[str, str], tmp_path: Path
) -> None:
    torchcts = ["-m", "torchcts"]
    run(python, *torchcts, "init", "--template", "smoke", "--non-interactive", cwd=tmp_path)
    command = [*torchcts, "run", "--device", "ocl", "--level", "1", "--non-interactive"]
    done = run(python, *command, cwd=tmp_path, OPENCL_MEMORY=memory, **cache)
    last = done.stdout.strip().splitlines()[-1]
    assert re.search(r" [1-9]\d* passed", last), last
    assert not re.search(r"failed|error|skipped", last), last


@pytest.mark.parametrize(
    ("file", "calls"),
    [
        ("check_kernels.py", 350),
        ("check_indexing.py", 1000),
        pytest.param("check_layers.py", 200, marks=pytest.mark.long),
        ("check_optimizers.py", 70),
        pytest.param("check_pointwise.py", 600, marks=pytest.mark.long),
        ("check_products.py", 700),
        ("check_refusals.py", 600),
        ("check_random.py", 10),
        pytest.param("check_rows.py", 900, marks=pytest.mark.long),
    ],
)
def test_kernels_compute_what_the_cpu_does(
    python: Path, memory: str, cache: dict[str, str], file: str, calls: int
) -> None:
    check = Path(__file__).with_name(file)
    done = run(python, check, OPENCL_MEMORY=memory, **cache)
    assert int(done.stdout.split()[0]) > calls, done.stdout
    assert done.stdout.endswith(" calls, 0 differ\n"), done.stdout
    assert done.stderr == "", "a driver's compiler warns"


@pytest.mark.long
def test_each_file_includes_what_it_needs(tmp_path: Path) -> None:
    """The precompiled header, which all share, hides an include that is not there."""
    tools = Path(os.environ["BACKENDKIT_TEST_TOOLS_PYTHON"])
    package = run(tools, "-m", "backendkit", "--cmake-dir").stdout.strip()
    options = [f"-DBackendKit_DIR={package}", f"-DPython_EXECUTABLE={tools}"]
    options += ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"]
    run("cmake", "-G", "Ninja", "-S", EXAMPLE, "-B", tmp_path, *options)
    run("cmake", "--build", tmp_path)


def test_copies_are_those_of_the_cpu(python: Path, memory: str, cache: dict[str, str]) -> None:
    check = Path(__file__).with_name("check_copies.py")
    done = run(python, check, OPENCL_MEMORY=memory, **cache)
    assert int(done.stdout.split()[0]) > 800, done.stdout
    assert done.stdout.endswith(" copies, 0 differ\n"), done.stdout


@pytest.mark.parametrize("script", ["train.py --epochs 3", "transformers_models.py"])
def test_networks_train_as_on_the_cpu(
    python: Path, memory: str, cache: dict[str, str], tmp_path: Path, script: str
) -> None:
    file, *options = script.split()
    environment = {"OPENCL_MEMORY": memory, "OMP_NUM_THREADS": "1", **cache}
    done = run(python, EXAMPLE / file, *options, cwd=tmp_path, **environment)
    rows = done.stdout.splitlines()[1:]
    assert len(rows) == 3
    assert [row for row in rows if not row.endswith("  none")] == []


@pytest.fixture(scope="session")
def torchvision(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with torchvision for PyTorch 2.13."""
    folder = tmp_path_factory.mktemp("torchvision")
    base = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
    wanted = ["torchvision==0.28.*", "pillow"]
    run(base, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, *wanted)
    return folder


@pytest.mark.long
def test_networks_of_torchvision(
    python: Path, memory: str, cache: dict[str, str], torchvision: Path
) -> None:
    done = run(
        python,
        EXAMPLE / "networks.py",
        PYTHONPATH=str(torchvision),
        OPENCL_MEMORY=memory,
        OMP_NUM_THREADS="1",
        **cache,
    )
    rows = done.stdout.splitlines()[2:]
    assert len(rows) == 18
    assert [row for row in rows if not row.endswith("  none")] == []


WORSE = """
import sys
sys.path.insert(0, {folder!r})
import train

def network():
    return train.nn.Sequential(train.nn.Flatten(), train.nn.Linear(64, 10), train.nn.{last})

train.NETWORKS = {{"one": network}}
train.accuracy = lambda network, data: 80.0 if data.images.is_cpu else {accuracy}
sys.argv = ["train.py", "--epochs", "2"]
sys.exit(train.main())
"""


@pytest.mark.parametrize(
    ("last", "accuracy", "status", "falls_back"),
    [
        ("ReLU()", 79.6, 0, "none"),
        ("ReLU()", 79.4, 1, "none"),
        ("Softplus()", 80.0, 1, "softplus.out, softplus_backward.grad_input"),
    ],
)
def test_training_that_goes_wrong_is_an_error(
    python: Path, cache: dict[str, str], last: str, accuracy: float, status: int, falls_back: str
) -> None:
    code = WORSE.format(folder=str(EXAMPLE), last=last, accuracy=accuracy)
    done = run(python, "-c", code, status=status, **cache)
    assert done.stdout.endswith(f"  {falls_back}\n")
    error = "error: worse than the CPU, or not on the device: one\n"
    assert done.stderr == error * status


def test_its_own_python_is_there(python: Path) -> None:
    assert says(python, "print(torch.ocl.device_names())") == "['ocl:0', 'ocl:1']"


#: The operators whose samples of PyTorch run, in float32; with `--every-test` all, also in int64.
SAMPLES = """
    abs arange clamp gather index_put index_select isneginf mean mm native_batch_norm
    native_group_norm nn.functional.adaptive_avg_pool2d nn.functional.conv2d nn.functional.gelu
    nn.functional.hardswish nn.functional.relu6 scatter scatter_add softmax sum var where
""".split()


def test_samples_of_pytorch(
    python: Path, memory: str, cache: dict[str, str], request: pytest.FixtureRequest
) -> None:
    folder = ROOT / "tests" / "pytorch" / "op_db"
    every = request.config.getoption("--every-test")
    dtypes = "float32,int64" if every else "float32"
    command = [folder / "run_op_db.py", "--device", "ocl", "--dtypes", dtypes]
    for expected in (folder, Path(__file__).parent):
        command += ["--expected", expected / "differences.toml"]
    names = [] if every else SAMPLES
    run(python, *command, *names, OPENCL_MEMORY=memory, **cache)


def test_memory_of_both_kinds(python: Path) -> None:
    code = """
x = torch.ones(4, device="ocl:1")
print(x.sum().item(), (x.data_ptr() % 4096 == 0), torch.ocl.device_count())
"""
    for memory in ("svm", "buffer"):
        assert says(python, code, OPENCL_MEMORY=memory).split()[::2] == ["4.0", "2"]
    said = error(python, code, OPENCL_MEMORY="magic")
    assert said.endswith("OPENCL_MEMORY=magic: it is `svm` or `buffer`")


def test_products_of_both_kinds(python: Path, memory: str, cache: dict[str, str]) -> None:
    """CLBlast computes float32; the rest is computed here. A graph cannot have CLBlast's."""
    code = """
x = torch.arange(12.).view(3, 4)
y = x.t().to("ocl")
for dtype in (torch.float32, torch.int64):
    assert torch.equal((x.to("ocl", dtype) @ y.to(dtype)).cpu(), x.to(dtype) @ x.t().to(dtype))
batch = torch.ones(2, 3, 4)
print(torch.baddbmm(x[0, :3].to("ocl"), batch.to("ocl"), batch.mT.to("ocl"))[1, 1].tolist())
print(any("clblast" in line for line in open("/proc/self/maps")))
"""
    environment = {"OPENCL_MEMORY": memory, **cache}
    for wish, loaded in (("clblast", "True"), ("own", "False"), ("", "False")):
        said = says(python, code, OPENCL_BLAST=wish, **environment)
        assert said.split("\n") == ["[4.0, 5.0, 6.0]", loaded]
    said = error(python, code, OPENCL_BLAST="magic", **environment)
    assert said.endswith("OPENCL_BLAST=magic: it is `clblast` or `own`")


def test_a_library_that_is_not_there(python: Path, tmp_path: Path) -> None:
    (tmp_path / "libclblast.so.1").write_text("")
    environment = {"LD_LIBRARY_PATH": str(tmp_path), "OPENCL_BLAST": "clblast"}
    said = error(python, "torch.ones(1, device='ocl')", **environment)
    assert said.endswith("OPENCL_BLAST=clblast: there is no libclblast.so.1")


INDEXES = {
    "index": "x[wrong]",
    "index_put": "x.clone().index_put_((wrong,), x[0])",
    "index_select": "x.index_select(0, wrong)",
    "gather": "x.gather(0, wrong)",
    "scatter": "x.scatter(0, wrong, x[:2])",
    "scatter_add": "x.scatter_add(0, wrong, x[:2])",
    "embedding_dense_backward": (
        "torch.ops.aten.embedding_dense_backward(x[:2, None], wrong, 5, -1, False)"
    ),
}


def test_an_index_out_of_range_is_an_error_at_the_next_wait(
    python: Path, memory: str, cache: dict[str, str]
) -> None:
    code = f"""
x, wrong = torch.arange(5.0, device="ocl"), torch.tensor([1, 7], device="ocl")
event, stream = torch.ocl.Event(), torch.ocl.Stream()
for name, call in {INDEXES!r}.items():
    for wait in (torch.ocl.synchronize, event.synchronize, stream.synchronize, x.cpu):
        with torch.ocl.stream(stream if wait == stream.synchronize else torch.ocl.current_stream()):
            result = eval(call)
            event.record()
        try:
            wait()
        except RuntimeError as error:
            assert f"{{name}}: index 7 is out of bounds for dimension 0 with size 5" in str(error)
        else:
            raise SystemExit(name)
    torch.ocl.synchronize()
print(x.cpu()[wrong.cpu()[0]].item(), x[wrong[:1]].item())
"""
    said = says(python, code, OPENCL_MEMORY=memory, **cache)
    assert said == "1.0 1.0"


TWO_THREADS = """
import threading
x = torch.arange(8.0, device="ocl")
torch.ocl.synchronize()
wrong = []

def use(place, expected):
    index = torch.tensor([place], device="ocl")
    with torch.ocl.stream(torch.ocl.Stream()):
        for _ in range(200):
            try:
                found = x[index].item()
            except RuntimeError:
                found = "an error"
            if found != expected:
                wrong.append((place, found))

torch.ocl.synchronize()
threads = [threading.Thread(target=use, args=one) for one in ((99, "an error"), (1, 1.0))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(wrong), wrong[:3])
"""


def test_an_index_out_of_range_is_an_error_of_its_own_stream(
    python: Path, memory: str, cache: dict[str, str]
) -> None:
    assert says(python, TWO_THREADS, OPENCL_MEMORY=memory, **cache) == "0 []"


ANOTHER_WAITS = """
import threading, time
x, wrong = torch.arange(5.0, device="ocl"), torch.tensor([7], device="ocl")
errors, over = [], threading.Event()

def wait():
    try:
        torch.ocl.synchronize()
    except RuntimeError:
        errors.append(1)

def wait_again():
    while not over.is_set():
        wait()

other = threading.Thread(target=wait_again)
other.start()
lost = 0
for _ in range(2000):
    before, end = len(errors), time.monotonic() + 1
    found = x[wrong]
    wait()
    while len(errors) == before and time.monotonic() < end:
        time.sleep(0.001)
    lost += len(errors) == before
over.set()
other.join()
print(lost)
"""


def test_an_index_out_of_range_is_an_error_though_another_thread_waits(
    python: Path, memory: str, cache: dict[str, str]
) -> None:
    assert says(python, ANOTHER_WAITS, OPENCL_MEMORY=memory, **cache) == "0"


GRAPH_FAULT = """
x, place = torch.arange(8.0, device="ocl"), torch.tensor([1], device="ocl")
graph, stream, other = torch.accelerator.Graph(), torch.Stream("ocl"), torch.ocl.Stream()
torch.ocl.synchronize()
with stream, graph:
    found = x[place] + 1
place.fill_(50)
torch.ocl.synchronize()
for where in (stream, other):
    with where:
        graph.replay()
    torch.ocl.default_stream().synchronize()
    try:
        where.synchronize()
    except RuntimeError as error:
        print("index 50 is out of bounds" in str(error))
place.fill_(2)
torch.ocl.synchronize()
with other:
    graph.replay()
other.synchronize()
print(found.item())
"""


def test_a_graph_with_an_index_out_of_range(
    python: Path, memory: str, cache: dict[str, str]
) -> None:
    said = says(python, GRAPH_FAULT, OPENCL_MEMORY=memory, **cache)
    assert said.split() == ["True", "True", "3.0"]


def test_the_least_index_is_out_of_range(python: Path, cache: dict[str, str]) -> None:
    code = "torch.arange(5.0, device='ocl')[torch.tensor([-2**31], device='ocl')].cpu()"
    assert "index -2147483648 is out of bounds" in error(python, code, **cache)


def test_a_loss_in_a_graph(python: Path, memory: str, cache: dict[str, str]) -> None:
    code = """
scores, target = torch.eye(3, device="ocl"), torch.tensor([0, 1, 2], device="ocl")
graph, stream, two = torch.accelerator.Graph(), torch.Stream("ocl"), scores.sum() - 1
expected = torch.nn.functional.cross_entropy(scores, target)
torch.ocl.synchronize()
with stream, graph:
    loss = torch.nn.functional.cross_entropy(scores, target)
    scores[0] = two
with stream:
    graph.replay()
stream.synchronize()
print(loss.item() == expected.item(), scores[0].tolist())
"""
    said = says(python, code, OPENCL_MEMORY=memory, **cache)
    assert said == "True [2.0, 2.0, 2.0]"


def test_a_launch_that_fails_in_a_graph(python: Path, memory: str, cache: dict[str, str]) -> None:
    code = """
x = torch.ones(3, device="ocl")
graph, stream = torch.accelerator.Graph(), torch.Stream("ocl")
torch.ocl.synchronize()
with stream, graph:
    try:
        x.add(x, alpha=1e300)
    except RuntimeError as error:
        print(error)
    y = x + 1
x.fill_(5)
torch.ocl.synchronize()
with stream:
    graph.replay()
stream.synchronize()
print(y.tolist())
"""
    said = says(python, code, OPENCL_MEMORY=memory, **cache)
    expected = "value cannot be converted to type float without overflow"
    assert said.splitlines() == [expected, "[6.0, 6.0, 6.0]"]


def test_pinning_waits_for_no_stream(python: Path, memory: str, cache: dict[str, str]) -> None:
    """Neither the thread that pins memory nor those that queue work meanwhile."""
    code = """
a = torch.rand(1200, 1200).to("ocl")
(a @ a) + 1
torch.ocl.synchronize()
event = torch.ocl.Event()
for _ in range(200):
    a = a @ a * 1e-3
event.record()
pinned = torch.empty(9_000_000, pin_memory=True)
b = torch.ones(3, device="ocl") + 1
print(event.query(), pinned.is_pinned(), b.tolist())
"""
    said = says(python, code, OPENCL_MEMORY=memory, **cache)
    assert said == "False True [2.0, 2.0, 2.0]"


def test_more_memory_than_the_driver_allocates_at_once(python: Path, memory: str) -> None:
    most = int(says(python, "print(torch.ocl.mem_get_info()[1])"))
    code = f"torch.empty({most - 1}, dtype=torch.uint8, device='ocl')"
    said = error(python, code, OPENCL_MEMORY=memory)
    assert "out of memory" in said and "The driver allocates at most " in said


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


def test_a_driver_that_hangs_once(python: Path, tmp_path: Path) -> None:
    """As it may in the child that is asked for the devices: another child is asked."""
    source = tmp_path / "driver.c"
    source.write_text(
        "#include <fcntl.h>\n"
        "#include <unistd.h>\n"
        "int clIcdGetPlatformIDsKHR(void) {\n"
        f'  if (open("{tmp_path}/hung", O_CREAT | O_EXCL, 0600) >= 0) pause();\n'
        "  return -1001;\n"  # there is no platform
        "}\n"
        "void* clGetExtensionFunctionAddress(void) { return (void*)clIcdGetPlatformIDsKHR; }\n"
    )
    library = tmp_path / "libhang.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    (tmp_path / "hang.icd").write_text(f"{library}\n")
    assert says(python, NO_DEVICE, OCL_ICD_VENDORS=str(tmp_path)) == "0 False 2.0"
    assert (tmp_path / "hung").exists()


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
    for damage in (b"", b"nonsense", None, "cut", "folder"):
        for path, whole in files.items():
            if damage == "folder":
                path.unlink()
                path.mkdir()
                continue
            wrong = bytes([*whole[:-1], whole[-1] ^ 1]) if damage is None else damage
            path.write_bytes(whole[: len(whole) // 2] if wrong == "cut" else wrong)
        assert first_operators()[1] == value
        assert set(folder.iterdir()) == files.keys()
        assert damage == "folder" or all(len(path.read_bytes()) > 1000 for path in files)


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
