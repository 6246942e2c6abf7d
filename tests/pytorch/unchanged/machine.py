# SPDX-License-Identifier: Apache-2.0
"""Processes with a backend and without it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from programs import Program

HERE = Path(__file__).resolve().parent


class Machine:
    """Runs probes and programs, with the backend installed and without it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = folder / "site"
        self.python = os.environ["BACKENDKIT_TEST_BASE_PYTHON"]
        self.kept = folder / "kept"  # by Inductor
        self._results: dict[tuple[Any, Any], Any] = {}
        with zipfile.ZipFile(os.environ["BACKENDKIT_TEST_WHEEL"]) as archive:
            archive.extractall(self.site)

    def run(
        self, arguments: list[str], devices: int | None, limit: float = 900, **more: str
    ) -> Any:
        """A finished process, in `limit` seconds; `devices` is None without the backend."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "TORCH", "FOO_", "BACKENDKIT", "PYTEST"))
            and name != "CI"  # PyTorch's own tests want other packages there
        }
        path = [str(HERE)]
        if devices is not None:
            path.append(str(self.site))
            environment["FOO_SIMULATOR_DEVICES"] = str(devices)
        environment |= {
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(self.kept),
            "PATH": f"{Path(self.python).parent}{os.pathsep}{os.environ['PATH']}",
            **more,
        }
        if self.kept.exists():
            shutil.rmtree(self.kept)
        return subprocess.run(
            [self.python, *arguments],
            env=environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
        )

    def end(self, program: Program, devices: int | None) -> Any:
        """The finished process of a program; each is run once."""
        key = (tuple(program.arguments), devices)
        if key not in self._results:
            self._results[key] = self.run(program.arguments, devices, **program.environment)
        return self._results[key]

    def probe(self, group: str, devices: int | None) -> Any:
        """What came of a group of probes; each is run once."""
        if (group, devices) not in self._results:
            output = self.folder / f"{group}.json"
            code = "import registry; registry.main()"
            done = self.run(["-c", code, group, str(output)], devices)
            assert done.returncode == 0, (group, devices, done.returncode, done.stderr[-4000:])
            self._results[group, devices] = json.loads(output.read_text())
            graphs = sorted(path.name for path in self.kept.glob("fxgraph/*/*"))
            self._results[group, devices]["graphs"] = graphs
        return self._results[group, devices]
