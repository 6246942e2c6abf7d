# SPDX-License-Identifier: Apache-2.0
"""Programs in fresh processes."""

import json
import os
import subprocess
import sys
import tempfile


def lines_of(text):
    """A program's lines, without those that Gloo of PyTorch 2.8 to 2.10 prints when it connects."""
    return [line for line in text.splitlines() if not line.startswith("[Gloo]")]


def printed(program, *arguments):
    """Runs a program, which has to succeed; what it prints, line by line, but for Gloo's."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return lines_of(done.stdout)


SERVER = """
import json, os, signal, sys
exec(sys.argv[1])
for request in sys.stdin:
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    signal.alarm(300)
    program, arguments, *files = json.loads(request)
    for file, number in zip(files, (1, 2)):
        os.dup2(os.open(file, os.O_WRONLY), number)
    sys.argv[1:] = arguments
    exec(program)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
"""


class Forks:
    """A process that has run `prelude`, of which each program gets a fork.

    The prelude's imports, which take seconds, are done once. It must not use the device: then a
    fork can do what a fresh process can. A program is over as soon as it has run; test_endings.py
    has those of which the end matters.
    """

    def __init__(self, prelude):
        command = [sys.executable, "-c", SERVER, prelude]
        pipe = subprocess.PIPE
        self._server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def printed(self, program, *arguments):
        """Runs a program, which has to succeed; what it prints, line by line, but for Gloo's."""
        with tempfile.TemporaryDirectory() as folder:
            texts = []
            files = [os.path.join(folder, name) for name in ("stdout", "stderr")]
            for file in files:
                open(file, "w").close()
            print(json.dumps([program, arguments, *files]), file=self._server.stdin, flush=True)
            status = self._server.stdout.readline()
            for file in files:
                with open(file) as text:
                    texts.append(text.read())
        assert status == "0\n", "".join(texts) + status
        return lines_of(texts[0])

    def close(self):
        """Ends the process, which must have run its prelude without an error."""
        self._server.communicate(timeout=60)
        assert self._server.returncode == 0
