# SPDX-License-Identifier: Apache-2.0
"""The glue, generated once before."""

import os
import subprocess

subprocess.run(
    [os.environ["BACKENDGEN"], "generate", "--out", "glue", "--torch", os.environ["TORCH"]],
    check=True,
    capture_output=True,
)
