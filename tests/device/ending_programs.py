# SPDX-License-Identifier: Apache-2.0
"""Programs that use a device, and the status that each ends with; endings.py runs them."""

from __future__ import annotations

import signal
from typing import NamedTuple

SIGTERM, SIGINT, SIGABRT = -signal.SIGTERM, -signal.SIGINT, -signal.SIGABRT

PRELUDE = """
import atexit, os, signal, sys, threading, time
import torch

# A shell has processes in the background ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
DEVICE = sys.argv[1]
ON_DEVICE = DEVICE != "cpu"

def network():
    layers = torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
    return torch.nn.Sequential(*layers).to(DEVICE)

def step(net=None):
    net = net or network()
    net(torch.ones(4, 8, device=DEVICE)).sum().backward()
    return net

def leaf():
    return torch.ones(4, 8, device=DEVICE, requires_grad=True)

def ready():
    print("ready", flush=True)

def on_a_stream():
    if ON_DEVICE:
        getattr(torch, DEVICE).set_stream(torch.Stream(device=DEVICE))

def queue_work():
    a = torch.ones(256, 256, device=DEVICE)
    for _ in range(50):
        b = a.clone().copy_(a)
    return b

def for_a_while(work):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        work()
    sys.exit("the signal did not come")

def by_fallback():
    torch.linalg.eigvalsh(torch.ones(200, 200, device=DEVICE))

def copies():
    torch.ones(1 << 20, device=DEVICE).clone()

def in_a_daemon(work):
    begun = threading.Event()
    def run():
        while True:
            work()
            begun.set()
    threading.Thread(target=run, daemon=True).start()
    begun.wait()
"""


class Way(NamedTuple):
    name: str
    program: str  # comes after PRELUDE
    status: int = 0
    signal: int | None = None  # sent after the program has printed "ready"
    needs: tuple[str, ...] = ()  # of the device; see backend.py
    module: str = "torch"  # a module of Python that the program imports
    file: bool = False  # has to be a file, and not text after `-c`
    arguments: tuple[str, ...] = ()  # of Python, before the file


# After work that is done.

AFTER_WORK = [
    Way(
        "after one operator",
        "torch.ones(2, device=DEVICE) + 1",
    ),
    Way(
        "after a copy to the host",
        "torch.ones(2, device=DEVICE).cpu()",
    ),
    Way(
        "after a backward pass",
        "step()",
    ),
    Way(
        "after a backward pass whose graph is kept",
        "x = leaf(); y = x.exp().sum(); y.backward(retain_graph=True)",
    ),
    Way(
        "after a hundred training steps",
        """
net = network(); optimizer = torch.optim.Adam(net.parameters())
for _ in range(100):
    optimizer.zero_grad(); step(net); optimizer.step()
""",
    ),
    Way(
        "after a double backward pass",
        """
x = leaf()
(g,) = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
g.sum().backward()
""",
    ),
    Way(
        "after a backward pass with hooks in Python",
        """
x = leaf(); y = x * 2; y.register_hook(lambda g: g * 2); x.register_hook(lambda g: g + 1)
x.register_post_accumulate_grad_hook(lambda p: None); y.sum().backward()
""",
    ),
    Way(
        "after a backward pass through a Function in Python",
        """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): return g * 2
Double.apply(leaf()).sum().backward()
""",
    ),
    Way(
        "after checkpoints, reentrant and not",
        """
from torch.utils.checkpoint import checkpoint
net = network()
for reentrant in True, False:
    checkpoint(net, leaf(), use_reentrant=reentrant).sum().backward()
""",
    ),
    Way(
        "after a backward pass in anomaly mode",
        "torch.autograd.set_detect_anomaly(True); step()",
    ),
    Way(
        "after functorch's grad",
        """
torch.func.grad(lambda x: (x ** 2).sum())(torch.ones(4, device=DEVICE))
""",
    ),
    Way(
        "after a compiled training step",
        """
net = network()
torch.compile(net, backend="aot_eager")(torch.ones(4, 8, device=DEVICE)).sum().backward()
""",
    ),
    Way(
        "after a backward pass under autocast",
        """
with torch.autocast(DEVICE):
    step()
""",
        needs=("autocast",),
    ),
    Way(
        "after a profiler",
        """
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]): step()
""",
    ),
    Way(
        "while a profiler runs",
        """
profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
profile.start()
step()
""",
    ),
    Way(
        "with graphs in a reference cycle",
        """
x = leaf()
y = x.exp().sum()
y.itself = y
cycle = [y]
cycle.append(cycle)
y.backward(retain_graph=True)
""",
    ),
]


# While the device still works.

IN_FLIGHT = [
    Way(
        "while a stream works",
        "on_a_stream(); kept = queue_work()",
        needs=("streams",),
    ),
    Way(
        "while a stream works whose tensors are gone",
        "on_a_stream(); queue_work(); None",
        needs=("streams",),
    ),
    Way(
        "while a stream runs a backward pass",
        "on_a_stream(); queue_work(); step()",
        needs=("streams",),
    ),
    Way(
        "while a copy from pinned memory is under way",
        """
host = torch.ones(1 << 22); host = host.pin_memory() if ON_DEVICE else host
there = host.to(DEVICE, non_blocking=True)
""",
        needs=("pinned_memory",),
    ),
    Way(
        "with an event that nobody waits for",
        """
if ON_DEVICE:
    on_a_stream(); queue_work(); event = torch.Event(device=DEVICE); event.record()
""",
        needs=("streams", "events"),
    ),
]


# By what the program does.

EXITS = [
    Way(
        "sys.exit",
        "step(); sys.exit(3)",
        3,
    ),
    Way(
        "sys.exit while a stream works",
        "on_a_stream(); queue_work(); sys.exit(3)",
        3,
        needs=("streams",),
    ),
    Way(
        "sys.exit in a hook of a tensor",
        """
x = leaf()
x.register_hook(lambda g: sys.exit(5))
x.sum().backward()
""",
        5,
    ),
    Way(
        "sys.exit in a Function's backward",
        """
class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): sys.exit(6)
Leave.apply(leaf()).sum().backward()
""",
        6,
    ),
    Way(
        "sys.exit in a hook of a module",
        """
net = network()
net.register_full_backward_hook(lambda *_: sys.exit(5))
step(net)
""",
        5,
    ),
    Way(
        "an exception that nobody catches",
        "step(); raise ValueError('wrong')",
        1,
    ),
    Way(
        "an exception in a hook of a tensor",
        "x = leaf(); x.register_hook(lambda g: 1 / 0); x.sum().backward()",
        1,
    ),
    Way(
        "an error of an operator",
        "step(); torch.ones(2, device=DEVICE) + torch.ones(3, device=DEVICE)",
        1,
    ),
    Way(
        "an error of an operator in a backward pass",
        """
x = leaf()
y = x.exp()
z = y.sum()
y.detach().mul_(2)
y.data.resize_(1)
torch.autograd.grad(z, y, torch.ones(3))
""",
        1,
    ),
    Way(
        "out of memory",
        "step(); torch.empty(1 << 50, dtype=torch.uint8, device=DEVICE)",
        1,
    ),
    Way(
        "an assertion in a thread",
        """
def wrong(): step(); assert False
thread = threading.Thread(target=wrong); thread.start(); thread.join()
""",
    ),
    Way(
        "os._exit while a stream works",
        "on_a_stream(); step(); queue_work(); os._exit(4)",
        4,
        needs=("streams",),
    ),
    Way(
        "os.abort",
        "step(); os.abort()",
        SIGABRT,
    ),
    Way(
        "another program in its place",
        """
step()
os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(9)'])
""",
        9,
    ),
    Way(
        "functions of atexit that train",
        "atexit.register(step); step(); atexit.register(step)",
    ),
    Way(
        "a function of atexit, registered before torch was imported, that trains",
        """
subprocess = __import__("subprocess")
sys.exit(subprocess.call([sys.executable, "-c", '''
import atexit, sys
def last():
    x = torch.ones(4, device=sys.argv[1], requires_grad=True); x.exp().sum().backward()
atexit.register(last)
import torch
last()
''', DEVICE]))
""",
    ),
    Way(
        "a function of atexit that raises",
        "atexit.register(lambda: 1 / 0); step()",
    ),
    Way(
        "tensors that are freed while Python ends",
        """
class Late:
    def __init__(self):
        self.tensors = [torch.ones(1 << 10, device=DEVICE) for _ in range(10)]
        self.net = step()
    def __del__(self): self.tensors.clear()
sys.late = Late(); threading.late = Late(); late = Late()
""",
    ),
]


# With threads of Python.

THREADS = [
    Way(
        "while a thread trains that is waited for",
        """
def train():
    net = network()
    for _ in range(20): step(net)
threading.Thread(target=train).start()
""",
    ),
    Way(
        "after eight threads trained",
        """
threads = [threading.Thread(target=step) for _ in range(8)]
[one.start() for one in threads]; [one.join() for one in threads]
""",
    ),
    Way(
        "while a daemon thread trains",
        "net = network(); in_a_daemon(lambda: step(net)); time.sleep(0.05)",
    ),
    Way(
        "while a daemon thread computes",
        "a = leaf().detach(); in_a_daemon(lambda: a.exp()); time.sleep(0.05)",
    ),
    Way(
        "while a daemon thread copies",
        "in_a_daemon(copies); time.sleep(0.05)",
    ),
    Way(
        "while a daemon thread waits for the device",
        """
in_a_daemon(getattr(torch, DEVICE).synchronize if ON_DEVICE else leaf)
step()
""",
    ),
    Way(
        "after a pool of threads trained",
        """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    list(pool.map(lambda _: step(), range(8)))
""",
    ),
    Way(
        "while a pool of threads trains",
        """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2); [pool.submit(step) for _ in range(8)]
""",
    ),
    Way(
        "after asyncio trained in a thread",
        """
import asyncio
asyncio.run(asyncio.to_thread(step))
""",
    ),
]


# By signals.

SIGNALS = [
    Way(
        "SIGTERM in the middle of copies",
        "ready(); for_a_while(copies)",
        SIGTERM,
        signal=signal.SIGTERM,
    ),
    Way(
        "SIGTERM in the middle of the fallback",
        "ready(); for_a_while(by_fallback)",
        SIGTERM,
        signal=signal.SIGTERM,
    ),
    Way(
        "SIGTERM in the middle of training",
        "net = step(); ready(); for_a_while(lambda: step(net))",
        SIGTERM,
        signal=signal.SIGTERM,
    ),
    Way(
        "Ctrl-C in the middle of copies",
        "ready(); for_a_while(copies)",
        SIGINT,
        signal=signal.SIGINT,
    ),
    Way(
        "Ctrl-C in the middle of the fallback",
        "ready(); for_a_while(by_fallback)",
        SIGINT,
        signal=signal.SIGINT,
    ),
    Way(
        "Ctrl-C in the middle of training",
        "net = step(); ready(); for_a_while(lambda: step(net))",
        SIGINT,
        signal=signal.SIGINT,
    ),
    Way(
        "SIGTERM with a handler that leaves",
        """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
net = step()
ready()
for_a_while(lambda: step(net))
""",
        7,
        signal=signal.SIGTERM,
    ),
    Way(
        "Ctrl-C that is caught, and a last step",
        """
net = step(); ready()
try:
    for_a_while(lambda: step(net))
except KeyboardInterrupt:
    step(net)
""",
        signal=signal.SIGINT,
    ),
]


# With other processes, and under other programs.

PROCESSES = [
    Way(
        "after a forked child used the CPU",
        """
net = step(); child = os.fork()
if child == 0:
    torch.ones(2) + 1; sys.exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
    ),
    Way(
        "in a forked child, by os._exit",
        """
net = step(); child = os.fork()
if child == 0:
    os._exit(8)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
        8,
    ),
    Way(
        "in a forked child that trained, of a process that did not",
        """
child = os.fork()
if child == 0:
    step(); sys.exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
    ),
    Way(
        "after a DataLoader with workers",
        """
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.ones(16, 8)); net = network()
for (batch,) in DataLoader(data, batch_size=4, num_workers=2):
    net(batch.to(DEVICE)).sum().backward()
""",
    ),
    Way(
        "after a spawned process trained",
        """
import torch.multiprocessing as mp
def child(index, device):
    sys.argv[1:] = [device]; step()
if __name__ == "__main__":
    step(); mp.spawn(child, (DEVICE,), nprocs=1)
""",
        file=True,
    ),
    Way(
        "after a spawned process was ended by SIGTERM",
        """
import torch.multiprocessing as mp
def child(device, queue):
    net = step(); queue.put(None)
    while True: step(net)
if __name__ == "__main__":
    context = mp.get_context("spawn"); queue = context.Queue()
    one = context.Process(target=child, args=(DEVICE, queue)); one.start(); queue.get()
    one.terminate(); one.join(); step(); sys.exit(-one.exitcode)
""",
        signal.SIGTERM,
        file=True,
    ),
    Way(
        "under pytest",
        "def test_training(): step()",
        module="pytest",
        file=True,
        arguments=("-m", "pytest", "-q", "-p", "no:cacheprovider"),
    ),
    Way(
        "in Jupyter's kernel",
        """
import os, tempfile
from jupyter_client.manager import KernelManager
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)  # a socket's path has to be short
    # Not by ports of TCP, which another kernel may take between their choice and their use.
    manager = KernelManager(transport="ipc", ip="kernel")
    manager.start_kernel()
    kernel = manager.provisioner.process
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=200)
    text = f"import sys; sys.argv = ['', {DEVICE!r}]" + CELL
    reply = client.execute_interactive(text, output_hook=lambda _: None, timeout=200)["content"]
    client.shutdown()
    sys.exit(kernel.wait(200) or reply["status"] != "ok")
""",
        module="ipykernel",
    ),
]

WAYS = AFTER_WORK + IN_FLIGHT + EXITS + THREADS + SIGNALS + PROCESSES
