# SPDX-License-Identifier: Apache-2.0
"""What a caller can see of a result, on the device and on the CPU."""

import warnings

import torch


def seen(value):
    """The value with all but its device: numbers, dtype, sizes, strides, bits, layout."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            return seen([value.layout, value.to_dense()])
        return {
            "dtype": value.dtype,
            "size": tuple(value.shape),
            "stride": value.stride(),
            "offset": value.storage_offset(),
            "conj": value.is_conj(),
            "neg": value.is_neg(),
            "needs gradient": value.requires_grad,
            "value": value.detach().cpu().resolve_conj().resolve_neg().contiguous(),
        }
    if isinstance(value, (list, tuple)):
        return [seen(one) for one in value]
    return value


def outcome(compute, device):
    """What comes of `compute(device)`: a result or an error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = seen(compute(device))
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            result = [type(error).__name__, str(error).splitlines()[0]]
    return result, [(one.category.__name__, str(one.message)[:80]) for one in caught]


def differences(found, expected, where=""):
    """What is not the same, a line each."""
    if isinstance(found, dict) and isinstance(expected, dict):
        pairs = [(f"{where}.{key}", found.get(key), expected[key]) for key in expected]
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = [(f"{where}[{i}]", *pair) for i, pair in enumerate(zip(found, expected))]
    elif isinstance(found, torch.Tensor) and isinstance(expected, torch.Tensor):
        same = found.dtype == expected.dtype and found.shape == expected.shape
        tolerance = {"atol": 1e-5} if found.dtype.itemsize > 2 else {"rtol": 1e-3, "atol": 1e-3}
        if same and torch.allclose(found, expected, equal_nan=True, **tolerance):
            return []
        return [f"{where}: {found}, not {expected}"]
    else:
        same = type(found) is type(expected) and found == expected
        return [] if same else [f"{where}: {found}, not {expected}"]
    return [line for name, a, b in pairs for line in differences(a, b, name)]


def assert_alike(compute, device):
    """The same comes of it on the device as on the CPU."""
    outcome(compute, "cpu")  # PyTorch gives some warnings once in a process
    expected = outcome(compute, "cpu")
    found = outcome(compute, str(device))
    different = [
        line
        for name, a, b in zip(("result", "warnings"), found, expected)
        for line in differences(a, b, name)
    ]
    assert not different, "\n".join(different)
