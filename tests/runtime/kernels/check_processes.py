# SPDX-License-Identifier: Apache-2.0
"""Kernels in a child of a process that used the device, of which the driver knows nothing."""

import os

import torch
import torch_foo  # noqa: F401


def test_a_kernel_does_not_begin():
    tensor = torch.ones(4, device="foo")
    child = os.fork()
    if child == 0:
        try:
            tensor.uniform_()
        except RuntimeError as error:
            os._exit(0 if "in forked subprocess" in str(error) else 1)
        os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
