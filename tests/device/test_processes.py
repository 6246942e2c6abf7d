# SPDX-License-Identifier: Apache-2.0
"""When a process begins to use the device, and what forked ones may do."""

import os
import subprocess
import sys
import threading
import time

import pytest
import torch
from fresh_process import printed

PRELUDE = """
import os, sys, warnings
import torch
warnings.simplefilter("ignore")
NAME = sys.argv[1]
module = getattr(torch, NAME)

def in_a_child(work):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    print("child", "was killed" if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), flush=True)
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@pytest.fixture
def run(name):
    """Runs a program after the prelude; what it prints, line by line."""
    return lambda program: printed(PRELUDE + program, name)


def refusal(name):
    return (
        f"Cannot re-initialize {name} in forked subprocess. To use {name} with multiprocessing, "
        "you must use the 'spawn' start method"
    )


def test_asking_is_no_use(run):
    assert run("""
print(module.is_available(), module.device_count() > 0, module.is_initialized())
module.manual_seed(1); torch.manual_seed(2); module.empty_cache(); torch.device(NAME, 0)
torch.get_rng_state(); torch.ones(2).share_memory_(); module.synchronize()
module.reset_peak_memory_stats(); module.reset_accumulated_memory_stats()
print(module.memory_allocated(), module.memory_stats(), repr(module.memory_summary()))
print(module.is_initialized())
torch.empty(0, device=NAME)
print(module.is_initialized())
""") == ["True True False", "0 {} ''", "False", "True"]


USES = [
    "torch.ones(1, device=NAME)",
    "torch.ones(1).to(NAME)",
    "torch.device(NAME, 0), torch.empty(0, device=NAME)",
    "module.current_device()",
    "module.set_device(0)",
    "module.get_rng_state()",
    "module.init()",
    "module.memory_snapshot(0)",
    "module.current_stream()",
]


@needs_fork
def test_each_way_to_begin(run):
    lines = run(f"""
for use in {USES!r}:
    in_a_child(lambda: (eval(use), print(module.is_initialized())))
print(module.is_initialized())
""")
    assert lines == ["True", "child 0"] * len(USES) + ["False"]


def test_a_seed_from_before_is_used(run):
    assert run("""
torch.manual_seed(5)
first = torch.randn(3, device=NAME).cpu()
torch.manual_seed(5)
print(torch.equal(first, torch.randn(3, device=NAME).cpu()))
""") == ["True"]


@needs_fork
def test_a_child_of_a_process_that_used_it_is_refused(run, name, display_name):
    lines = run("""
tensor = torch.ones(2, device=NAME)
def use():
    print(module._is_in_bad_fork(), module.is_initialized())
    for work in (lambda: torch.ones(1, device=NAME), lambda: torch.ones(1).to(NAME),
                 lambda: tensor + 1, lambda: tensor.add_(1), lambda: tensor.cpu(),
                 lambda: module.synchronize(), lambda: module.get_rng_state(),
                 lambda: module.set_device(0)):
        try:
            work()
            print("done")
        except RuntimeError as error:
            print(str(error).splitlines()[0])
in_a_child(use)
""")
    assert lines[0] == "True False"
    assert lines[1:-1] == [refusal(display_name)] * 8
    assert lines[-1] == "child 0"


@needs_fork
def test_a_child_gives_nothing_of_its_parent_s_back(run):
    assert run("""
source, target = torch.ones(1 << 20, device=NAME), torch.ones(1 << 20, device=NAME)
torch.empty(1 << 24, device=NAME)
for _ in range(50):
    target.copy_(source)
def empty():
    import signal
    signal.alarm(60)
    module.empty_cache()
    for name in ("empty_cache", "empty_host_cache"):
        getattr(getattr(torch, "accelerator", None), name, int)()
    print(module.memory_allocated(), module.memory_stats())
in_a_child(empty)
print(target.sum().item() == 1 << 20)
""") == ["0 {}", "child 0", "True"]


@needs_fork
def test_a_child_is_refused_while_another_thread_writes(run, name, display_name):
    lines = run("""
import threading
target, ones = torch.zeros(3000, 4, device=NAME), torch.ones(3000)
target[:, 0].copy_(ones)  # what is done once in a process is not under way when it forks
working = True
def write():
    while working:
        target[:, 0].copy_(ones)
thread = threading.Thread(target=write)
thread.start()
def use():
    import signal
    signal.alarm(60)
    try:
        target[:, 1].copy_(ones)
    except RuntimeError as error:
        print(str(error).splitlines()[0])
for _ in range(5):
    in_a_child(use)
working = False
thread.join()
""")
    assert lines == [refusal(display_name), "child 0"] * 5


@needs_fork
@pytest.mark.needs("events")
def test_a_child_may_forget_the_parent_s_tensors(run):
    assert run("""
tensors = [torch.ones(1000, device=NAME) for _ in range(10)]
stream, event = torch.Stream(device=NAME), torch.Event(NAME)
event.record()
def forget():
    global stream, event
    tensors.clear()
    del stream, event
    print(torch.ones(3).sum().item(), torch.randn(2).shape[0])
in_a_child(forget)
print(tensors[0].sum().item())
""") == ["3.0 2", "child 0", "1000.0"]


@needs_fork
def test_a_child_may_use_it_when_the_parent_has_not(run):
    assert run("""
assert module.is_available() and module.device_count() > 0
def use():
    print((torch.ones(2, device=NAME) + 1).cpu().tolist(), module.is_initialized())
in_a_child(use)
in_a_child(use)
print(module.is_initialized(), torch.ones(1, device=NAME).item())
in_a_child(use)
""")[:-2] == ["[2.0, 2.0] True", "child 0", "[2.0, 2.0] True", "child 0", "False 1.0"]


DATA = """
from torch.utils.data import DataLoader, TensorDataset
class Items(torch.utils.data.Dataset):
    def __init__(self, place=None):
        self.place = place
    def __len__(self):
        return 12
    def __getitem__(self, index):
        item = torch.full((4,), float(index))
        return item if self.place is None else (item.to(self.place) + 1).cpu()
def total(loader):
    return sum(batch.to(NAME, non_blocking=True).sum().item() for batch in loader)
"""


@needs_fork
@pytest.mark.parametrize(
    "pin", [False, pytest.param(True, marks=pytest.mark.needs("pinned_memory"))]
)
def test_workers_of_a_loader(run, pin):
    """They make tensors of the CPU; whether the device is in use does not matter to them."""
    assert run(
        DATA
        + f"""
for _ in range(2):
    loader = DataLoader(Items(), 3, num_workers=2, multiprocessing_context="fork", pin_memory={pin})
    print(total(loader))
"""
    ) == ["264.0", "264.0"]


@needs_fork
def test_workers_that_use_the_device(run, name):
    lines = run(
        DATA
        + """
print(module.is_initialized())
made = list(DataLoader(Items(NAME), 4, num_workers=2, multiprocessing_context="fork"))
print(module.is_initialized(), sum(batch.sum().item() for batch in made))
torch.ones(1, device=NAME)
try:
    list(DataLoader(Items(NAME), 4, num_workers=1, multiprocessing_context="fork"))
except RuntimeError as error:
    print("refused" if "Cannot re-initialize " in str(error) else error)
"""
    )
    assert lines == ["False", "False 312.0", "refused"]


def test_a_process_that_is_spawned(run, tmp_path, name):
    script = tmp_path / "spawned.py"
    script.write_text(f"""
import torch

def work(number, results):
    results.put((torch.full((2,), float(number), device="{name}") * 2).cpu().tolist())

if __name__ == "__main__":
    torch.ones(1, device="{name}")
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    processes = [context.Process(target=work, args=(n, results)) for n in (1, 2)]
    for process in processes: process.start()
    for process in processes: process.join()
    print(sorted(results.get() for _ in processes))
""")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[[2.0, 2.0], [4.0, 4.0]]\n", done.stderr


@pytest.mark.needs("streams")
def test_a_process_that_ends_while_the_device_works(run):
    assert run("""
source, target = torch.ones(1 << 20, device=NAME), torch.ones(1 << 20, device=NAME)
stream = torch.Stream(device=NAME)
for _ in range(200):
    target.copy_(source)
print("end")
""") == ["end"]


@pytest.mark.needs("events", "pinned_memory")
def test_tensors_that_live_until_the_end(run):
    assert run("""
class Keeper:
    pass
keeper = Keeper()
keeper.myself = keeper
keeper.tensors = [torch.ones(10, device=NAME), torch.ones(10).pin_memory(NAME)]
keeper.event = torch.Event(NAME)
keeper.event.record()
import atexit
atexit.register(lambda: print((keeper.tensors[0] + 1).sum().item()))
""") == ["20.0"]


def test_threads_that_still_work_at_the_end(run):
    assert run("""
import threading
def work():
    for _ in range(50):
        torch.ones(100, device=NAME).sum().item()
for _ in range(4):
    threading.Thread(target=work).start()
print("end")
""") == ["end"]


def test_the_sentence_is_pytorch_s(name):
    """As torch.cuda says it, so that what looks for it finds it."""
    with open(torch.cuda.__file__) as file:
        text = " ".join(file.read().replace('"', " ").split())
    sentence = refusal("CUDA")
    assert sentence.split(". ")[0] in text
    assert "you must use the 'spawn' start method" in text


#: The threads of autograd, and what a backward pass in a forked child gives.
AUTOGRAD = """
import time

def named():
    found = 0
    for one in os.listdir("/proc/self/task"):
        try:
            found += open(f"/proc/self/task/{one}/comm").read().startswith("pt_autograd")
        except (FileNotFoundError, ProcessLookupError):
            pass  # that thread has ended
    return found

# A thread gives itself its name a while after it has begun.

def threads():
    time.sleep(0.5)
    return named()

def all_threads():
    end = time.monotonic() + 60
    while named() != module.device_count() and time.monotonic() < end:
        time.sleep(0.01)
    return named() == module.device_count()

def backward(where):
    x = torch.ones(2, device=where, requires_grad=True)
    x.exp().sum().backward()
    return torch.equal(x.grad.cpu(), torch.ones(2).exp())
"""

needs_proc = pytest.mark.skipif(
    not os.path.isdir("/proc/self/task"), reason="there is no /proc, which tells of threads"
)


@needs_fork
@needs_proc
def test_a_process_that_uses_only_the_cpu_has_no_threads_for_the_device(run):
    assert run(
        AUTOGRAD
        + """
print(backward("cpu"), threads(), module.device_count() > 0)
in_a_child(lambda: print(backward("cpu"), threads()))
in_a_child(lambda: print(backward(NAME), all_threads()))
"""
    ) == ["True 0 True", "True 0", "child 0", "True True", "child 0"]


@needs_proc
def test_the_device_has_its_threads_whenever_it_is_used_first(run):
    assert run(
        AUTOGRAD
        + """
import threading
print(backward("cpu"), threads())
results = []
both = [threading.Thread(target=lambda: results.append(backward(NAME))) for _ in range(8)]
[one.start() for one in both]; [one.join() for one in both]
print(results == [True] * 8, all_threads())
last = module.device_count() - 1
print(backward(f"{NAME}:{last}"), backward("cpu"), all_threads())
"""
    ) == ["True 0", "True True", "True True True"]


@needs_proc
def test_the_device_has_its_threads_when_it_is_used_before_any_backward_pass(run):
    assert run(
        AUTOGRAD
        + """
x = torch.ones(1, device=NAME)
print(threads(), backward("cpu"), all_threads(), backward(NAME))
"""
    ) == ["0 True True True"]


def test_what_autograd_s_threads_hold_is_waited_for(module, device):
    if not hasattr(module, "capabilities"):
        pytest.skip("this backend was not made with BackendKit")
    begun, done = threading.Event(), []

    def slowly(gradient):
        begun.set()
        time.sleep(0.5)
        done.append(True)

    x = torch.ones(2, device=device, requires_grad=True)
    x.register_hook(slowly)
    thread = threading.Thread(target=x.exp().sum().backward)
    thread.start()
    begun.wait()
    drain = module._library().drain_autograd
    assert not drain(1)
    assert drain(60_000) and done
    thread.join()
    assert drain(60_000)


def test_python_waits_for_autograd_s_threads_before_it_finalizes(module, run):
    if not hasattr(module, "capabilities"):
        pytest.skip("this backend was not made with BackendKit")
    # What `atexit` holds is dropped in the order of its registration, so `Last` is dropped after
    # what the backend registered. It joins the thread: a daemon thread that takes the GIL while
    # Python finalizes ends the process, on the CPU too.
    assert run("""
import atexit, threading, time
begun, done = threading.Event(), []

def slowly(gradient):
    begun.set()
    time.sleep(0.5)
    done.append(True)

class Last:
    def __del__(self):
        print("waited" if done else "did not wait", flush=True)
        thread.join()

x = torch.ones(2, device=NAME, requires_grad=True)
x.register_hook(slowly)
thread = threading.Thread(target=x.exp().sum().backward, daemon=True)
atexit.register(id, Last())
thread.start()
begun.wait()
""") == ["waited"]
