# SPDX-License-Identifier: Apache-2.0
"""Programs in fresh processes."""

import subprocess
import sys


def printed(program, *arguments):
    """Runs a program, which has to succeed; what it prints, line by line."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
