# SPDX-License-Identifier: Apache-2.0
"""Uses a device; doctor_device.py runs this in a process of its own. Arguments: DEVICE LIMIT."""

import ctypes
import faulthandler
import signal
import sys
import warnings

MARK = "BACKENDKIT-DEVICE"


def say(kind, text=""):
    print(f"\n{MARK} {kind} {' '.join(str(text).split())}", flush=True)


def fail(text, help_=""):
    say("fail", f"{text} ## {help_}" if help_ else text)
    raise SystemExit(1)


def step(name):
    say("step", name)


def expect_close(what, found, wanted):
    import torch

    if not torch.allclose(found, wanted):
        fail(
            f"{what} is wrong: {found.flatten()[:4].tolist()}, expected "
            f"{wanted.flatten()[:4].tolist()}"
        )


def expect(what, found, wanted):
    import torch

    if not torch.equal(found, wanted):
        fail(
            f"{what} is wrong: {found.flatten()[:4].tolist()}, expected "
            f"{wanted.flatten()[:4].tolist()}"
        )


def import_torch(device):
    step("import torch")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import torch
    for warning in caught:
        if "not loaded" in str(warning.message) or "cannot be loaded" in str(warning.message):
            say("warning", warning.message)
    step("device")
    kind = device.split(":")[0]
    try:
        torch.device(device)
    except RuntimeError:
        fail(f"PyTorch does not know `{kind}`", "`backendgen doctor` without `--device` says why")
    module = getattr(torch, kind, None)
    if module is not None and hasattr(module, "device_count"):
        count = module.device_count()
        index = int(device.partition(":")[2] or 0)
        if count <= index:
            fail(
                f"{count} devices are there, and `{device}` is none of them",
                "check the driver with its own tools",
            )
    return torch


def check(torch, device):
    step("tensor")
    ones = torch.ones(3, 4, device=device)
    expect("a tensor of ones", ones.cpu(), torch.ones(3, 4))
    step("kernel")
    left, right = torch.arange(12.0).reshape(3, 4), torch.full((3, 4), 0.5)
    expect("a sum", (left.to(device) + right.to(device)).cpu(), left + right)
    expect_close(
        "a product of matrices", (left.to(device) @ right.t().to(device)).cpu(), left @ right.t()
    )
    step("copy")
    data = torch.arange(100_000, dtype=torch.int64)
    there = data.to(device, non_blocking=True)
    expect("a copy", there.clone().cpu(), data)
    expect("a strided copy", there[::3].cpu(), data[::3])
    check_stream(torch, device, there, data)
    step("autograd")
    weights, inputs = (
        torch.linspace(-1, 1, 20).reshape(4, 5),
        torch.linspace(0, 2, 12).reshape(3, 4),
    )
    gradients = []
    for place in ("cpu", device):
        weight = weights.to(place).detach().requires_grad_()
        (torch.relu(inputs.to(place) @ weight) ** 2).sum().backward()
        gradients.append(weight.grad.cpu())
    expect_close("a gradient", gradients[1], gradients[0])


def check_stream(torch, device, there, data):
    step("stream")
    try:
        stream = torch.Stream(device=device)
    except RuntimeError as error:
        # BackendKit's runtimes may have none, and then say so.
        if "stream" not in str(error).lower():
            raise
        say("skip", "it has no streams")
        return
    with torch.inference_mode():
        doubled = there * 2
    event = stream.record_event()
    event.synchronize()
    stream.synchronize()
    expect("a doubled tensor", doubled.cpu(), data * 2)


def main():
    device, limit = sys.argv[1], int(sys.argv[2])
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    # Should the process that watches this one be gone.
    faulthandler.dump_traceback_later(limit + 30, exit=True)
    if sys.platform == "linux":
        # PR_SET_PTRACER, PR_SET_PTRACER_ANY: a debugger that this process did not start may attach.
        ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
    check(import_torch(device), device)
    say("done")


main()
