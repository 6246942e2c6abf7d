# SPDX-License-Identifier: Apache-2.0
"""What templates/python/generated/_build.py is for one backend, for checks that build nothing."""

from typing import Optional

DEVICE = "foo"
DISPLAY_NAME = "Foo"
SUMMARY = "The device foo for PyTorch"
PACKAGE = "torch_foo"
MODULE = "torch_foo"
VERSION = "0.1.0"
ON_FAILURE = "warn"
IMPORTS: list[str] = []
HAS_OPS = False
AMP_DTYPES: list[str] = []
FALLBACK = "cpu"
DISTRIBUTED = "fooccl"
KERNEL_DTYPES: Optional[list[str]] = None
KERNELS: list[str] = []
RUNTIME_PACKAGE = ""
RUNTIME_REQUIRES = ""
DRIVER_LIBRARIES: list[str] = []
DEVICE_NODES: list[str] = []
DRIVER_INSTALL = ""
