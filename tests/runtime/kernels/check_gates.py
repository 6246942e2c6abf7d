# SPDX-License-Identifier: Apache-2.0
"""Run by pytest in a Python that finds the backend of gates/; see test_gates.py."""

import pytest
import torch
import torch_foo  # noqa: F401

CALLED = -7


def fallbacks():
    return {row.operator for row in torch.foo.fallback_report().rows}


@pytest.fixture(autouse=True)
def _fresh_report():
    torch.foo.reset_fallback_report()


@pytest.mark.parametrize("inplace", [False, True])
def test_a_listed_dtype_reaches_the_kernel(inplace):
    x = torch.ones(2, device="foo")
    result = x.relu_() if inplace else x.relu()
    assert result.tolist() == [CALLED, CALLED]


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.bfloat16])
@pytest.mark.parametrize("inplace", [False, True])
def test_another_dtype_is_computed_on_the_cpu(dtype, inplace):
    x = torch.tensor([-1, 2], dtype=dtype, device="foo")
    result = x.relu_() if inplace else x.relu()
    assert result.tolist() == [0, 2] and result.dtype == dtype and result.device.type == "foo"
    assert fallbacks() == {"aten::relu_" if inplace else "aten::relu"}


def test_a_structured_operator_falls_back_whole():
    x = torch.tensor([0.0, 0.0], dtype=torch.float64, device="foo")
    assert x.softmax(0).tolist() == [0.5, 0.5]
    assert fallbacks() == {"aten::_softmax"}
    assert x.float().softmax(0).tolist() == [CALLED, CALLED]
    out = torch.empty(2, dtype=torch.float64, device="foo")
    torch.softmax(x, 0, out=out)
    assert out.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("dtype, name", [(torch.float64, "Double"), (torch.bfloat16, "BFloat16")])
def test_unsupported_error_is_the_one_that_pytorch_users_know(dtype, name):
    x = torch.ones(2, 2, dtype=dtype, device="foo")
    out = torch.empty_like(x)
    torch.foo.reset_fallback_report()
    for call in (lambda: x @ x, lambda: torch.mm(x, x, out=out)):
        with pytest.raises(NotImplementedError, match=rf"^\"mm\" not implemented for '{name}'"):
            call()
    for call in (lambda: x.sin(), lambda: x.sin_(), lambda: torch.sin(x, out=out)):
        with pytest.raises(NotImplementedError, match=rf"^\"sin_?\" not implemented for '{name}'"):
            call()
    assert fallbacks() == set()
    assert (x.float() @ x.float()).flatten().tolist() == [CALLED] * 4


def test_the_dtype_that_is_computed_in_counts():
    # sin of int64 computes in float32, and has an argument that is not listed.
    x = torch.ones(2, dtype=torch.int64, device="foo")
    with pytest.raises(NotImplementedError, match=r"^\"sin\" not implemented for 'Long'"):
        x.sin()
    # float32 in, float64 out: what is written is not listed.
    out = torch.empty(2, dtype=torch.float64, device="foo")
    with pytest.raises(NotImplementedError, match=r"^\"sin\" not implemented for 'Double'"):
        torch.sin(x.float(), out=out)


def test_an_error_leaves_what_it_would_have_written():
    out = torch.full((3,), 5.0, dtype=torch.float64, device="foo")
    with pytest.raises(NotImplementedError):
        torch.sin(out, out=out)
    with pytest.raises(NotImplementedError):
        torch.mm(out.view(3, 1), out.view(1, 3), out=out)
    assert out.tolist() == [5, 5, 5]


def test_what_backendkit_brings_to_the_cpu_is_there_behind_a_kernel():
    layer = torch.nn.Conv2d(2, 3, 3)
    x = torch.randn(1, 2, 5, 5)
    expected = layer(x)
    expected.sum().backward()
    ours = torch.nn.Conv2d(2, 3, 3, device="foo")
    ours.load_state_dict(layer.state_dict())
    result = ours(x.to("foo"))
    torch.testing.assert_close(result.cpu(), expected)
    result.sum().backward()
    torch.testing.assert_close(ours.weight.grad.cpu(), layer.weight.grad)
    assert "aten::convolution_overrideable" in fallbacks()
    doubles = torch.nn.functional.conv2d(
        x.double().to("foo"), layer.weight.detach().double().to("foo")
    )
    assert doubles.tolist() == [CALLED]
