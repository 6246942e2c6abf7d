# SPDX-License-Identifier: Apache-2.0
"""What the backend under test has, and what one without it has to implement."""

import functools

import torch

#: The release of PyTorch, as (2, 13).
RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])


@functools.cache
def lacking(name, need):
    """Why a backend has not what a test needs; None where it has."""
    module = getattr(torch, name)
    if need == "devices":
        count = module.device_count()
        return None if count > 1 else f"there is one device: Runtime's `device_count` says {count}"
    if need == "distributed":
        return _without_a_group(name, module)
    if need.startswith("autocast of "):
        return lacking(name, "autocast") or _casting(module, need.split()[2])
    if not hasattr(module, "capabilities"):
        return _probe(name, need)
    known = module.capabilities()
    if need == "autocast":
        return None if known.amp_dtypes else "there is no autocast: `[amp] dtypes` is empty"
    if need == "fallback":
        return None if known.fallback == "cpu" else 'there is no fallback: `fallback = "error"`'
    if need.startswith("fallback of "):
        return lacking(name, "fallback") or _computing(module, need.split()[2:])
    if known.has(need):
        return None
    if need not in known.functions:
        raise KeyError(f"no backend has `{need}`; those of Runtime are {sorted(known.runtime)}")
    return f"this backend has no {need}: its Runtime does not implement `{known.functions[need]}`"


def _without_a_group(name, module):
    """Why a backend has no process group; None if it has."""
    dist = torch.distributed
    if not dist.is_available():
        return "this PyTorch was built without torch.distributed"
    if name not in dist.Backend.default_device_backend_map:
        known = getattr(getattr(module, "_build", None), "DISTRIBUTED", None)
        if known == "":
            return "there is no process group: `[distributed] enabled = false`"
        return f"no process group is registered for {name}"
    return None


def _casting(module, dtype):
    """Why autocast does not use a dtype; None if it does."""
    uses = getattr(torch, dtype) in module.get_amp_supported_dtype()
    return None if uses else f"autocast on the device has no {dtype}: `[amp] dtypes`"


def _computing(module, operators):
    """Why a backend does not leave operators to the fallback; None if it does."""
    kernels = {one.split(".")[0] for one in module._build.KERNELS}
    found = kernels.intersection(operators)
    return f"this backend has a kernel for `{min(found)}`" if found else None


def _probe(name, need):
    """The same of a backend that was not made with BackendKit, which tells nothing of itself."""
    uses = {
        "streams": lambda: torch.Stream(device=f"{name}:0").query(),
        "events": lambda: torch.Event(device=name).query(),
        "timing": lambda: torch.Event(device=name, enable_timing=True),
        "memory_info": lambda: getattr(torch, name).mem_get_info(),
        "pinned_memory": lambda: torch.empty(1).pin_memory(name),
        "autocast": lambda: torch.autocast(name).__enter__().__exit__(None, None, None),
        "fallback": lambda: None,
    }
    if need not in uses:
        return f"torch.{name} has no `capabilities` that would tell of `{need}`"
    try:
        uses[need]()
    except (AttributeError, NotImplementedError, RuntimeError) as error:
        return f"torch.{name} has no {need}: {error}"
    return None
