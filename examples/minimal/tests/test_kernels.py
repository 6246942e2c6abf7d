"""The two kernels of csrc/kernels.cpp against the CPU."""

import pytest
import torch

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_relu(dtype):
    values = torch.tensor([[-2, 0, 3], [4, -5, 6]]).to(dtype)
    assert torch.equal(torch.relu(values.to("foo")).cpu(), torch.relu(values))
    assert torch.equal(torch.relu(values.t().to("foo")).cpu(), torch.relu(values.t()))


def test_relu_keeps_nan():
    assert torch.relu(torch.tensor([float("nan")], device="foo")).isnan().all()


@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex64])
def test_mm(dtype):
    left = torch.arange(6).reshape(2, 3).to(dtype)
    right = torch.arange(12).reshape(4, 3).to(dtype).t()
    assert torch.equal((left.to("foo") @ right.to("foo")).cpu(), left @ right)


def test_mm_writes_to_out():
    left, out = torch.arange(6.0).reshape(2, 3), torch.empty(2, 2).t()
    torch.mm(left.to("foo"), left.t().to("foo"), out=(on_device := out.to("foo")))
    assert torch.equal(on_device.cpu(), left @ left.t())


@pytest.mark.parametrize(
    "right, error",
    [
        (torch.ones(2, 3), "cannot be multiplied"),
        (torch.ones(3, 2, dtype=torch.float64), "expected scalar type"),
    ],
)
def test_mm_refuses_what_does_not_fit(right, error):
    with pytest.raises(RuntimeError, match=error):
        torch.ones(2, 3, device="foo") @ right.to("foo")


def test_relu_in_place():
    values = torch.tensor([[-1.0, 2.0], [3.0, -4.0]], device="foo")
    torch.relu_(values.t())
    assert values.tolist() == [[0.0, 2.0], [3.0, 0.0]]


def test_gradients():
    left = torch.randn(2, 3, dtype=torch.float64)
    right = torch.randn(3, 4, dtype=torch.float64)
    results = []
    for device in ("cpu", "foo"):
        a, b = (tensor.to(device, copy=True).requires_grad_() for tensor in (left, right))
        torch.relu(a @ b).sum().backward()
        results.append((a.grad.cpu(), b.grad.cpu()))
    torch.testing.assert_close(results[0], results[1])
