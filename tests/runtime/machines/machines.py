# SPDX-License-Identifier: Apache-2.0
"""Machines: network namespaces that a bridge connects, with torchrun on each. Needs root."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

PORT = 29500
#: Reserved for documentation, so no machine has it.
NETWORK = "192.0.2"
NUMBERS = itertools.count()
#: Bytes that a machine with a limited rate may send at once.
BURST = 64 << 10


class Machines:
    """Some machines with the addresses 192.0.2.1 and on, at interfaces `eth0`.

    They share files, processors and the host's name with this one; nothing leads from them to other
    networks. Leaving the context ends what runs there.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._prefix = f"backendkit{os.getpid()}-{next(NUMBERS)}-"
        self._running: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Machines:
        try:
            self._connect()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for process in self._running:
            self.kill(process)
        self._remove()

    def address(self, machine: int) -> str:
        return f"{NETWORK}.{machine + 1}"

    def start(
        self, machine: int, command: list[str], folder: Path, **environment: str
    ) -> subprocess.Popen[str]:
        """Starts a program there; what it writes goes to one pipe."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", self._name(machine), *command],
            cwd=folder,
            env={**os.environ, "GLOO_SOCKET_IFNAME": "eth0", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._running.append(process)
        return process

    def torchrun(
        self,
        machine: int,
        nodes: str,
        program: list[str],
        folder: Path,
        *,
        processes: int = 1,
        restarts: int = 0,
    ) -> subprocess.Popen[str]:
        """torchrun as docs/distributed.md shows it; the first machine is the meeting point."""
        python = os.environ["BACKENDKIT_TEST_PYTHON"]
        command = [python, "-m", "torch.distributed.run", f"--nnodes={nodes}"]
        command += [f"--nproc-per-node={processes}", f"--max-restarts={restarts}"]
        command += ["--rdzv-backend=c10d"]
        command += [f"--rdzv-endpoint={self.address(0)}:{PORT}", "--rdzv-id=machines"]
        # All have the name of this machine, by which they would know where the meeting point is.
        waits = "last_call_timeout=3,keep_alive_interval=1,keep_alive_max_attempt=3"
        command += [f"--rdzv-conf=is_host={int(machine == 0)},{waits}"]
        command += [f"--local-addr={self.address(machine)}", *program]
        # With it, PyTorch 2.13 restarts on the port of the workers that have just ended.
        more = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
        return self.start(machine, command, folder, **more)

    def kill(self, process: subprocess.Popen[str]) -> None:
        """Ends a program and all that it started, as when a machine loses its power."""
        if process.poll() is None:
            for pid in _descendants(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.wait()

    def limit(self, machine: int, rate: int, wait: str = "400ms") -> None:
        """From now on, the machine sends no more than `rate` bits a second. What would have to wait
        for longer than `wait` is lost. (Few virtual machines have netem, which also delays.)"""
        queue = ["tc", "qdisc", "replace", "dev", "eth0", "root", "tbf"]
        self._in(machine, *queue, "rate", f"{rate}bit", "burst", str(BURST), "latency", wait)

    def lost(self, machine: int) -> int:
        """How many packets of the machine were lost at its limit."""
        told = self._in(machine, "tc", "-s", "-j", "qdisc", "show", "dev", "eth0")
        return json.loads(told)[0]["drops"]

    def disconnect(self, machine: int) -> None:
        """Nothing comes to the machine or from it any more; no connection is closed."""
        self._in(machine, "ip", "link", "set", "eth0", "down")

    def _name(self, machine: int | str) -> str:
        return f"{self._prefix}{machine}"

    def _in(self, machine: int | str, *command: str) -> str:
        return _run("ip", "netns", "exec", self._name(machine), *command)

    def _connect(self) -> None:
        _run("ip", "netns", "add", self._name("hub"))
        self._in("hub", "ip", "link", "add", "bridge", "type", "bridge")
        self._in("hub", "ip", "link", "set", "bridge", "up")
        for machine in range(self.count):
            name, port = self._name(machine), f"port{machine}"
            _run("ip", "netns", "add", name)
            peer = ["peer", "name", "eth0", "netns", name]
            self._in("hub", "ip", "link", "add", port, "type", "veth", *peer)
            self._in("hub", "ip", "link", "set", port, "master", "bridge", "up")
            for one in ("lo", "eth0"):
                self._in(machine, "ip", "link", "set", one, "up")
            address = f"{self.address(machine)}/24"
            self._in(machine, "ip", "address", "add", address, "dev", "eth0")

    def _remove(self) -> None:
        there = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
        for line in there.stdout.splitlines():
            if line.startswith(self._prefix):
                _run("ip", "netns", "delete", line.split()[0])


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: `{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout


def _descendants(pid: int) -> list[int]:
    """A process and those that it started, also those that lead sessions of their own."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, left = [], [pid]
    while left:
        one = left.pop()
        found.append(one)
        left += children.get(one, [])
    return found
