# SPDX-License-Identifier: Apache-2.0
"""Copies in every direction, of every layout, against the CPU's."""

import pytest
import torch
from stream_tools import in_threads, on

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.complex128,
]

# How a view is made of a 4 x 6 tensor.
VIEWS = {
    "whole": lambda t: t,
    "transposed": lambda t: t.t(),
    "rows": lambda t: t[1:3],
    "columns": lambda t: t[:, 2:5],
    "every second": lambda t: t[::2, ::3],
    "diagonal": lambda t: t.diagonal(),
    "expanded": lambda t: t[:, :1].expand(4, 6),
    "one": lambda t: t[2, 3],
    "none": lambda t: t[:0],
    "extra axes": lambda t: t[None, :, None],
}
WRITABLE = [name for name in VIEWS if name != "expanded"]


def base(dtype):
    values = torch.arange(24).reshape(4, 6) % 7
    if dtype.is_complex:
        return torch.complex(values.double(), values.flip(0).double()).to(dtype)
    return values.to(dtype)


def numbered(like):
    """A contiguous tensor of that shape, of other values than there are in it."""
    return 50 + torch.arange(float(like.numel())).reshape(like.shape)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_to_the_device_and_back(device, dtype, view):
    here = VIEWS[view](base(dtype))
    there = here.to(device)
    assert there.device == device
    assert torch.equal(there.cpu(), here)
    assert torch.equal(VIEWS[view](base(dtype).to(device)).cpu(), here)


@pytest.mark.parametrize("view", VIEWS)
def test_between_devices(device, other, view):
    there = VIEWS[view](base(torch.float32).to(device)).to(other)
    assert there.device == other
    assert torch.equal(there.cpu(), VIEWS[view](base(torch.float32)))


@pytest.mark.parametrize("source", ["cpu", "device", "other"])
@pytest.mark.parametrize("view", WRITABLE)
def test_into_a_view_leaves_the_rest_alone(device, other, view, source):
    place = {"cpu": torch.device("cpu"), "device": device, "other": other}[source]
    expected = base(torch.float32)
    actual = expected.to(device)
    values = numbered(VIEWS[view](expected))
    VIEWS[view](expected).copy_(values)
    VIEWS[view](actual).copy_(values.to(place))
    assert torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize("view", WRITABLE)
def test_from_the_device_into_a_view_on_the_cpu(device, view):
    expected = base(torch.float32)
    values = numbered(VIEWS[view](expected))
    actual = expected.clone()
    VIEWS[view](expected).copy_(values)
    VIEWS[view](actual).copy_(values.to(device))
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("to", DTYPES, ids=str)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.int64, torch.bool, torch.complex64], ids=str
)
def test_dtypes_are_converted(device, dtype, to):
    if dtype.is_complex and not to.is_complex:
        dtype = torch.float64
    expected = base(dtype).to(to)
    assert torch.equal(base(dtype).to(device).to(to).cpu(), expected)
    assert torch.equal(torch.empty(4, 6, dtype=to).copy_(base(dtype).to(device)), expected)
    written = torch.empty(4, 6, dtype=to, device=device).copy_(base(dtype))
    assert torch.equal(written.cpu(), expected)


@pytest.mark.parametrize("shape", [(), (1,), (6,), (1, 6), (4, 1), (4, 6)], ids=str)
def test_a_source_is_broadcast(device, shape):
    source = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)
    expected = torch.zeros(4, 6).copy_(source)
    assert torch.equal(torch.zeros(4, 6, device=device).copy_(source).cpu(), expected)
    assert torch.equal(torch.zeros(4, 6).copy_(source.to(device)), expected)
    assert torch.equal(torch.zeros(4, 6, device=device).copy_(source.to(device)).cpu(), expected)


def test_a_source_that_does_not_fit_is_refused(device):
    with pytest.raises(RuntimeError, match="expand"):
        torch.zeros(4, 6, device=device).copy_(torch.zeros(5))


@pytest.mark.parametrize("bits", ["conj", "neg", "both"])
@pytest.mark.parametrize("direction", ["to host", "to device", "between", "on device"])
def test_conjugate_and_negative_views(device, other, bits, direction):
    values = base(torch.complex64)

    def spoilt(tensor):
        if bits == "conj":
            return tensor.conj()
        if bits == "neg":
            return torch._neg_view(tensor)
        return torch._neg_view(tensor.conj())

    expected = spoilt(values).resolve_conj().resolve_neg()
    if direction == "to device":
        actual = spoilt(values).to(device)
    else:
        target = {"to host": "cpu", "between": other, "on device": device}[direction]
        view = spoilt(values.to(device))
        actual = view.clone() if direction == "on device" else view.to(target)
    assert torch.equal(actual.cpu().resolve_conj().resolve_neg(), expected)


def test_a_conjugate_destination(device):
    actual = torch.zeros(4, 6, dtype=torch.complex64, device=device)
    actual.conj().copy_(base(torch.complex64))
    expected = torch.zeros(4, 6, dtype=torch.complex64)
    expected.conj().copy_(base(torch.complex64))
    assert torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize("function", ["ifft", "hfft", "ihfft", "fft", "rfft"])
def test_fourier_transforms(device, function):
    transform = getattr(torch.fft, function)
    values = torch.randn(8) if function in ("ihfft", "rfft") else torch.randn(8) + 0j
    torch.testing.assert_close(transform(values.to(device)).cpu(), transform(values))


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 3, 4, 4)], ids=str)
def test_channels_last(device, shape):
    values = torch.randn(shape).to(memory_format=torch.channels_last)
    there = values.to(device)
    assert there.stride() == values.stride()
    assert torch.equal(there.cpu(), values)
    assert torch.equal(there.contiguous().cpu(), values)
    back = torch.empty(shape, device=device, memory_format=torch.channels_last).copy_(values)
    assert torch.equal(back.cpu(), values)


def overlap(tensor, case):
    if case == "partial":
        tensor[1:].copy_(tensor[:-1])
    elif case == "within":
        tensor[:1].expand(6).copy_(torch.arange(6.0))
    elif case == "itself":
        tensor.copy_(tensor)
    else:
        square = tensor[:4].reshape(2, 2)
        square.copy_(square.t())
    return tensor


@pytest.mark.parametrize("case", ["partial", "within", "itself", "transposed"])
def test_overlapping_memory_is_as_on_the_cpu(device, case):
    """The same result, or an error of the same class."""
    try:
        expected = overlap(torch.arange(6.0), case)
    except RuntimeError:
        with pytest.raises(RuntimeError, match="memory"):
            overlap(torch.arange(6.0).to(device), case)
    else:
        assert torch.equal(overlap(torch.arange(6.0).to(device), case).cpu(), expected)


@pytest.mark.parametrize("non_blocking", [False, True])
def test_non_blocking_is_right_too(device, non_blocking):
    values = torch.randn(1000)
    assert torch.equal(values.to(device, non_blocking=non_blocking).cpu(), values)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 511, 4097])
def test_every_byte_is_copied(device, count):
    target = torch.full((count,), 255, dtype=torch.uint8, device=device)
    back = torch.full((count,), 7, dtype=torch.uint8)
    target.copy_(torch.zeros(count, dtype=torch.uint8))
    back.copy_(target)
    assert back.tolist() == [0] * count


def test_many_elements(device):
    values = torch.arange(3_000_001, dtype=torch.int32)
    assert torch.equal(values.to(device).flip(0).cpu(), values.flip(0))


WRITES = {
    "copy_": lambda column, step: column.copy_(torch.full(column.shape, float(step))),
    "fill_": lambda column, step: column.fill_(step),
    "add_": lambda column, step: column.add_(1),
    "out": lambda column, step: torch.add(torch.full_like(column, step), 0, out=column),
}


# A few runs of elements go to the device one by one; of many the gaps are read and written back.
@pytest.mark.parametrize("rows", [40, 3000], ids=["few", "many"])
@pytest.mark.parametrize("write", WRITES)
def test_threads_may_write_beside_each_other(device, write, rows):
    target = torch.zeros(rows, 4, device=device)

    def work(number):
        for step in range(1, 11):
            WRITES[write](target[:, number], step)

    in_threads(work, 4)
    assert target.unique().tolist() == [10]


def test_threads_that_write_few_and_many_elements(device):
    target, ones = torch.zeros(3000, 4, device=device), torch.ones(3000)

    def work(number):
        if number == 0:
            for _ in range(50):
                target[:, 0].copy_(ones)
        else:
            for row in range(100):
                target[row, number].fill_(1)

    in_threads(work, 4)
    assert target[:100].unique().tolist() == [1]


@pytest.mark.parametrize("rows", [40, 1000])
def test_quantized_tensors_with_gaps(device, rows):
    made = torch.quantize_per_tensor(torch.rand(rows, 4) - 0.5, 0.1, 0, torch.qint8)
    there = made.to(device)
    torch.relu_(there[:, 1])
    torch.relu_(made[:, 1])
    assert torch.equal(there.cpu().int_repr(), made.int_repr())


@pytest.mark.needs("streams")
@pytest.mark.parametrize("view", [lambda t: t[::2], lambda t: t[::2, ::2]], ids=["few", "many"])
@pytest.mark.parametrize("write", WRITES)
def test_what_another_stream_writes_between_is_kept(device, streams, write, view):
    target = torch.zeros(100, 80, device=device)
    row = torch.ones(80).to(device)
    with on(streams[0]):
        for number in range(1, 100, 2):
            target[number].copy_(row)
    for step in range(1, 6):
        WRITES[write](view(target), step)
    streams[0].synchronize()
    assert target[1::2].unique().tolist() == [1]
    assert view(target).unique().tolist() == [5]
