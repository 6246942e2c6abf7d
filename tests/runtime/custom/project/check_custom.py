# SPDX-License-Identifier: Apache-2.0
"""Run by pytest in a Python that has the built backend; see test_custom.py."""

import inspect
import os
import subprocess
import sys

import pytest
import torch
from torch.testing._internal.optests.generate_tests import OpCheckError

os.environ["FOO_SIMULATOR_DELAY"] = "200"  # a missing wait shows
DEVICES = ("foo", "cpu")
ops = torch.ops.foo
CHECKS = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")


def test_import_leaves_dynamo_and_the_vendor_s_module_alone():
    code = "import sys, torch; print('torch._dynamo' in sys.modules, {!r} in sys.modules)"
    code = code.format("torch_foo.custom")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("device", DEVICES)
def test_values(device):
    x, weight = torch.randn(3, 5, device=device), torch.randn(5, device=device)
    expected = torch.nn.functional.rms_norm(x, (5,), weight, 1e-6)
    torch.testing.assert_close(ops.fused_rms_norm(x, weight), expected)
    expected = torch.nn.functional.rms_norm(x, (5,), weight, 0.5)
    torch.testing.assert_close(ops.fused_rms_norm(x, weight, 0.5), expected)
    first, last = ops.first_and_last(x, reverse=True)
    assert torch.equal(first, x[-1]) and torch.equal(last, x[0])
    assert ops.scale_(x, 2.0) is None
    assert torch.equal(ops.first_and_last(x)[1], last * 0 + x[2])
    full = ops.filled.like(x, "product", [2, 2], dtype=torch.int64, order=[3, 4])
    assert full.tolist() == [[12, 12], [12, 12]] and full.device == x.device
    with pytest.raises(RuntimeError, match="mode is"):
        ops.filled.like(x, "other", [1])


def test_a_kernel_on_the_current_stream():
    """It is launched after the work that the stream has, and work that follows finds its result."""
    streams = [torch.Stream(device="foo:0") for _ in range(2)]
    x = torch.ones(1000, device="foo")
    results = []
    for _ in range(5):
        for stream in streams:
            ops.scale_(x, 2.0)
            stream.wait_stream(torch.accelerator.current_stream())
            with stream:
                ops.scale_(x, 0.5)
                ops.scale_(x, 3.0)
                results.append(x.clone())
            torch.accelerator.current_stream().wait_stream(stream)
    assert [one[-1].item() for one in results] == [3.0 ** (n + 1) for n in range(10)]
    assert x.cpu().unique().tolist() == [3.0**10]


@pytest.mark.parametrize("device", DEVICES)
def test_opcheck(device):
    x, weight = torch.randn(3, 5, device=device), torch.randn(5, device=device)
    torch.library.opcheck(ops.fused_rms_norm.default, (x, weight), {"eps": 1e-3})
    torch.library.opcheck(ops.scale_.default, (x.clone(), 2.0))
    torch.library.opcheck(ops.first_and_last.default, (x,), {"reverse": True})
    torch.library.opcheck(
        ops.filled.like, (x, "sum", [4]), {"dtype": torch.float64, "order": [1, 2]}
    )


@pytest.mark.parametrize("device", DEVICES)
def test_opcheck_with_gradients(device):
    x = torch.randn(3, 5, device=device, requires_grad=True)
    weight = torch.randn(5, device=device, requires_grad=True)
    arguments = (ops.fused_rms_norm.default, (x, weight))
    if device == "cpu":
        torch.library.opcheck(*arguments)
        return
    # PyTorch has not written one of the checks for devices other than its own, as
    # docs/custom-operators.md says.
    with pytest.raises(OpCheckError, match="NYI devices other than CPU/CUDA") as raised:
        torch.library.opcheck(*arguments)
    assert isinstance(raised.value.__cause__, NotImplementedError)
    torch.library.opcheck(*arguments, test_utils=CHECKS)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_are_those_of_the_composite(device):
    torch.manual_seed(0)
    results = []
    for function in (
        ops.fused_rms_norm,
        lambda x, w, e: torch.nn.functional.rms_norm(x, (5,), w, e),
    ):
        torch.manual_seed(0)
        x = torch.randn(2, 3, 5, device=device, requires_grad=True)
        weight = torch.randn(5, device=device, requires_grad=True)
        function(x, weight, 1e-3).sin().sum().backward()
        results.append((x.grad, weight.grad))
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("device", DEVICES)
def test_without_a_formula_a_gradient_raises(device):
    x = torch.randn(3, 5, device=device, requires_grad=True)
    first, _ = ops.first_and_last(x)
    assert first.requires_grad
    with pytest.raises(RuntimeError, match="foo::first_and_last.*not implemented"):
        first.sum().backward()
    with torch.no_grad():
        assert not ops.first_and_last(x)[0].requires_grad


@pytest.mark.parametrize("device", DEVICES)
def test_autograd_sees_a_change(device):
    x = torch.ones(3, device=device, requires_grad=True)
    squared = x * 1
    kept = squared.exp()
    version = kept._version
    with torch.no_grad():
        ops.scale_(kept, 2.0)
    assert kept._version == version + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()
    with pytest.raises(RuntimeError, match="`foo::scale_` writes.* but `x` requires one"):
        ops.scale_(x * 2, 2.0)


@pytest.mark.parametrize("device", DEVICES)
def test_compiled(device):
    def function(x, weight):
        first, last = ops.first_and_last(ops.fused_rms_norm(x, weight, 1e-3))
        total = first + 2 * last
        changed = total.clone()
        ops.scale_(changed, 3.0)
        return total, changed, ops.filled.like(x, "sum", [x.shape[0]], dtype=torch.float32)

    x = torch.randn(3, 5, device=device)
    weight = torch.randn(5, device=device)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, weight), function(x, weight))

    def loss(x, weight):
        return ops.fused_rms_norm(x, weight).sin().sum()

    grads = []
    for run in (loss, torch.compile(loss, backend="aot_eager", fullgraph=True)):
        here = weight.clone().requires_grad_()
        run(x, here).backward()
        grads.append(here.grad)
    torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.parametrize("device", [*DEVICES, "meta"])
def test_a_view_shares_memory(device):
    x = torch.randn(4, 3, device=device)
    for view, row in ((ops.leading(x, 2)[1], x[1]), (ops.rows(x)[2], x[2])):
        assert view._base is x and view.device == x.device
        assert (view.storage_offset(), view.stride()) == (row.storage_offset(), row.stride())
        version = x._version
        view.add_(1)
        assert x._version == version + 1
        if device != "meta":
            assert torch.equal(view, row)


@pytest.mark.parametrize("device", DEVICES)
def test_a_view_has_gradients(device):
    x = torch.randn(4, 3, device=device, requires_grad=True)
    (ops.leading(x, 2) * 3 + ops.rows(x)[3]).sum().backward()
    assert x.grad.cpu().tolist() == [[3.0] * 3, [3.0] * 3, [0.0] * 3, [2.0] * 3]
    y = x * 1
    ops.leading(y, 2).mul_(5)
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert grad.cpu().tolist() == [[5.0] * 3, [5.0] * 3, [1.0] * 3, [1.0] * 3]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("gradients", [False, True])
def test_opcheck_of_a_view(device, gradients):
    x = torch.randn(4, 3, device=device, requires_grad=gradients)
    checks = {"test_utils": CHECKS} if gradients and device == "foo" else {}
    torch.library.opcheck(ops.leading.default, (x, 2), **checks)
    torch.library.opcheck(ops.rows.default, (x,), **checks)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_view(device, dynamic):
    def function(x):
        part = ops.leading(x, x.shape[0] - 1)
        part.mul_(2)
        return part.sin(), ops.rows(x)[0] + 1

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for count in (4, 5, 7):
        x = torch.randn(count, 3, device=device)
        ours, theirs = x.clone(), x.clone()
        torch.testing.assert_close(compiled(ours), function(theirs))
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("device", DEVICES)
def test_an_exported_view(device):
    class Leading(torch.nn.Module):
        def forward(self, x):
            return ops.leading(x, 2) * 2

    x = torch.randn(4, 3, device=device)
    exported = torch.export.export(Leading(), (x,))
    torch.testing.assert_close(exported.module()(x), x[:2] * 2)


def test_tensors_without_data():
    x = torch.empty(3, 5, device="meta")
    assert ops.fused_rms_norm(x, x[0]).shape == (3, 5)
    assert [one.shape for one in ops.first_and_last(x)] == [(5,), (5,)]
    with pytest.raises(RuntimeError, match="takes a matrix"):
        ops.first_and_last(x[0])


def test_the_kernel_runs_on_its_tensors_device():
    x = torch.randn(3, 5, device="foo:1")
    assert ops.fused_rms_norm(x, x[0].contiguous()).device == torch.device("foo:1")
    assert torch.foo.current_device() == 0


def test_functions_for_people():
    functions = torch.foo.ops
    assert functions.fused_rms_norm.__doc__.startswith(
        "foo::fused_rms_norm(Tensor x, Tensor weight"
    )
    signature = inspect.signature(functions.fused_rms_norm)
    assert str(signature) == (
        "(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-06) -> torch.Tensor"
    )
    assert str(inspect.signature(functions.filled_like)) == (
        "(x: torch.Tensor, mode: str, sizes: collections.abc.Sequence[int], dtype: "
        "Optional[torch.dtype] = None, order: collections.abc.Sequence[int] = (2, 1)) "
        "-> torch.Tensor"
    )
    x = torch.ones(2, 3, device="foo")
    assert functions.first_and_last(x, reverse=True)[0].tolist() == [1, 1, 1]
    assert functions.scale_(x, 2) is None and x.sum().item() == 12
    assert functions.filled_like(x, "sum", [2], order=(5, 6)).tolist() == [11, 11]
