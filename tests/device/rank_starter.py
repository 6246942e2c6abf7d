# SPDX-License-Identifier: Apache-2.0
"""What starts ranks that end: processes of a group of their own, for each program anew."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

#: Seconds that a program may take until it counts as one that hangs.
LIMIT = 30
#: What a process writes that does not end as it should.
CRASHES = re.compile(
    r"terminate called|Fatal Python error: (?!Aborted by)|Segmentation fault|pure virtual method"
    r"|Exception ignored|double free|core dumped"
)


class Starter:
    """A process that has PyTorch imported, and forks those of the ranks."""

    def __init__(self, device, size, folder):
        self.size, self.folder, self.number = size, folder, 0
        script = Path(__file__).with_name("group_end_programs.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _ask(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the process that starts ranks ended with {self.process.wait()}"
        return json.loads(answer)

    def __call__(self, program, *arguments, size=None, limit=LIMIT):
        """Runs a program on every rank; the statuses, and what each wrote."""
        self.number += 1
        size = size or self.size
        logs = [self.folder / f"{self.number}-{rank}.log" for rank in range(size)]
        children = [
            self._ask(
                module=program.__module__,
                program=program.__name__,
                arguments=arguments,
                rank=rank,
                size=size,
                store=str(self.folder / f"{self.number}.store"),
                log=str(log),
            )
            for rank, log in enumerate(logs)
        ]
        statuses = self._ask(wait=children, limit=limit)
        texts = [log.read_text(errors="replace") for log in logs]
        shown = "\n".join(f"-- rank {rank}\n{text}" for rank, text in enumerate(texts))
        assert None not in statuses, f"{program.__name__} hangs; statuses {statuses}\n{shown}"
        crashed = [text for text in texts if CRASHES.search(text)]
        assert not crashed, f"statuses {statuses}\n{shown}"
        return statuses, shown

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
