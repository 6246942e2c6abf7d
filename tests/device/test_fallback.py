# SPDX-License-Identifier: Apache-2.0
"""Operators without a kernel: what the CPU sees of their arguments, and what comes back."""

import os
import subprocess
import sys
import threading

import pytest
import torch
from torch.nn import functional as F


def both(function, *arguments, device):
    """The results of a function on the CPU and on the device."""
    there = [one.detach().to(device) if torch.is_tensor(one) else one for one in arguments]
    return function(*arguments), function(*there)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1:3, 2:],
        lambda x: x.t(),
        lambda x: x[::2],
        lambda x: x.as_strided((3, 2), (5, 3), 4),
        lambda x: x.flip(0)[1:],
        lambda x: x[2, 3],
        lambda x: x[:0],
    ],
)
def test_in_place_on_a_view_leaves_its_neighbours(device, view):
    here = torch.randn(4, 6)
    there = here.to(device)
    assert view(there).atan_().device == device
    view(here).atan_()
    torch.testing.assert_close(there.cpu(), here)


def test_arguments_that_share_memory_share_it_on_the_cpu(device):
    here, there = torch.arange(8.0), torch.arange(8.0).to(device)
    for one in (here, there):
        one[:4].addcmul_(one[:4], one[4:])
    assert torch.equal(there.cpu(), here)


@pytest.mark.parametrize("way", ["overlapping", "partly"])
def test_writing_to_shared_memory_is_the_cpu_s_error(device, way):
    messages = []
    for place in ("cpu", device):
        values = torch.ones(6, device=place)
        with pytest.raises(RuntimeError) as error:
            if way == "overlapping":
                values[:1].expand(3).lerp_(values[:3], 0.5)
            else:
                torch.atan(values[:4], out=values[2:])
        messages.append(str(error.value).splitlines()[0])
    assert messages[0] == messages[1]


def test_an_output_is_resized_and_gaps_are_kept(device):
    values = torch.tensor([3.0, 0.0, 5.0], device=device)
    found = torch.nonzero(values, out=torch.empty(0, dtype=torch.long, device=device))
    assert found.cpu().tolist() == [[0], [2]]
    whole = torch.zeros(6, device=device)
    torch.ops.aten.lgamma.out(values, out=whole[::2])
    expected = torch.zeros(6)
    torch.lgamma(values.cpu(), out=expected[::2])
    torch.testing.assert_close(whole.cpu(), expected)


def test_an_output_that_outgrows_its_storage(device):
    base = torch.arange(4.0, device=device)
    out = base[1:3].to(torch.float32)
    indices = torch.empty(0, dtype=torch.long, device=device)
    values = torch.randn(5, 3)
    torch.ops.aten.kthvalue.values(values.to(device), 1, values=out, indices=indices)
    assert torch.equal(out.cpu(), values.kthvalue(1).values)
    assert out.shape == (5,) and out.device == device
    assert base.cpu()[0] == 0.0


def test_results_are_as_on_the_cpu(device):
    values = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for operator in (torch.erfinv, torch.frac, lambda x: x.sort(1)[0], lambda x: x.cumsum(2)):
        here, there = both(operator, values, device=device)
        assert there.device == device and there.stride() == here.stride()
        torch.testing.assert_close(there.cpu(), here, equal_nan=True)
    parts = torch.split_copy(values.to(device), 1)
    assert all(torch.equal(part.cpu(), values[i : i + 1]) for i, part in enumerate(parts))


def test_a_result_can_grow_and_outlive_its_operator(device):
    result = torch.erfinv(torch.full((3,), 0.5, device=device))
    kept = result.cpu()
    result.resize_(1000)[3:].zero_()
    assert torch.equal(result[:3].cpu(), kept)
    assert result.sum().item() == pytest.approx(kept.sum().item())


def test_lists_and_optional_tensors(device):
    here, there = both(
        lambda x, i: x[:, i, None], torch.randn(3, 4), torch.tensor([0, 2]), device=device
    )
    assert torch.equal(there.cpu(), here)
    values = [torch.ones(2, device=device), torch.ones(3, device=device)]
    torch._foreach_lerp_(
        values, [torch.zeros(2, device=device), torch.zeros(3, device=device)], 0.25
    )
    assert [one.sum().item() for one in values] == [1.5, 2.25]


def test_two_devices_are_an_error(device, other):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.searchsorted(torch.ones(3, device=device), torch.ones(3, device=other))


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x @ y,
        lambda x, y: torch.bmm(x[None], y[None]),
        lambda x, y: torch.cat([x, y]),
        lambda x, y: F.linear(x, y),
        lambda x, y: torch.addmm(x, y, x),
        lambda x, y: F.conv1d(x[None], y[None]),
        lambda x, y: torch.dot(x[0], y[0]),
        lambda x, y: torch.equal(x, y),
        lambda x, y: torch.gather(x, 0, y.long()),
        lambda x, y: F.embedding(y.long(), x),
        lambda x, y: F.nll_loss(x, y[0].long()),
        lambda x, y: F.batch_norm(x, None, None, y[0], y[1], True),
        lambda x, y: torch.searchsorted(x, y),
    ],
)
def test_a_tensor_that_stayed_on_the_cpu_is_an_error(device, function, order):
    values = [torch.ones(2, 2, device=device), torch.ones(2, 2)][::order]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        function(*values)


def test_a_result_of_the_cpu_is_an_error(device):
    values = torch.ones(2, 2, device=device)
    for out in (torch.zeros(2, 2), torch.zeros(())):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            torch.mm(values, values, out=out)
        assert out.sum() == 0
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.kthvalue(values, 1, out=(torch.zeros(2), torch.zeros(2, dtype=torch.long)))


@pytest.mark.needs("fallback of addmm")
def test_a_number_that_is_of_the_cpu(device):
    """A kernel receives only tensors of its device here."""
    values = torch.arange(6.0).reshape(3, 2).to(device)
    assert torch.addmm(torch.tensor(2.0), values, values.t()).device == device


def test_what_may_be_of_the_cpu(device):
    """Numbers, indices, and what operators take there by their definition."""
    values = torch.arange(6.0).reshape(3, 2).to(device)
    number, rows, mask = torch.tensor(2.0), torch.tensor([2, 0]), torch.tensor([True, False, True])
    assert (values * number).device == device
    assert torch.where(values > 2, values, number).cpu()[0].tolist() == [2.0, 2.0]
    assert values[rows].cpu().tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert values[mask].cpu().tolist() == [[0.0, 1.0], [4.0, 5.0]]
    values[rows] = number
    assert values.cpu()[0].tolist() == [2.0, 2.0]
    assert [one.device for one in torch.tensor_split(values, torch.tensor([1]))] == [device] * 2
    scores = torch.randn(5, 1, 4).log_softmax(-1)
    lengths = (torch.tensor([[1, 2]]), torch.tensor([5]), torch.tensor([2]))
    found = F.ctc_loss(scores.to(device), *lengths)
    torch.testing.assert_close(found.cpu(), F.ctc_loss(scores, *lengths))


def test_operators_of_others_take_what_they_say(device):
    with torch.library._scoped_library("backendkit_tests", "DEF") as library:
        library.define("both(Tensor x, Tensor table) -> Tensor")
        library.impl("both", lambda x, table: x + table, "CPU")
        found = torch.ops.backendkit_tests.both(torch.ones(2, device=device), torch.ones(2))
    assert found.device == device
    assert found.cpu().tolist() == [2.0, 2.0]


def test_conjugates_in_place(device):
    values = torch.tensor([1 + 2j, 3 - 4j])
    there = values.to(device)
    assert there.conj_physical_() is there
    assert torch.equal(there.cpu(), values.conj_physical())
    assert torch.ones(2, device=device).conj_physical_().cpu().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("transform", ["hfft", "ihfft", "ifft", "hfft2", "hfftn", "fft", "rfft"])
def test_fourier(device, transform):
    here, there = both(getattr(torch.fft, transform), torch.randn(4, 6), device=device)
    torch.testing.assert_close(there.cpu(), here)


@pytest.mark.parametrize("window", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
def test_windows(device, window):
    make = getattr(torch, f"{window}_window")
    for arguments in ((7,), (8, False), (8, True)):
        found = make(*arguments, device=device)
        assert found.device == device
        torch.testing.assert_close(found.cpu(), make(*arguments))


def test_conjugate_and_negative_views(device):
    values = torch.randn(3, 3, dtype=torch.complex64)
    for view in (lambda x: x.conj() @ x, lambda x: x.conj().imag.atan(), lambda x: x.mH.sum()):
        here, there = both(view, values, device=device)
        torch.testing.assert_close(there.cpu(), here)


def test_sparse_tensors(device):
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    there = dense.to(device).to_sparse()
    assert there.is_sparse and there.device == device
    assert torch.equal(there.cpu().to_dense(), dense)
    assert torch.equal((there + there).coalesce().to_dense().cpu(), dense * 2)
    assert torch.equal(torch.sparse.mm(there, torch.eye(2, device=device)).cpu(), dense)
    assert torch.equal(there.clone().mul_(3).to_dense().cpu(), dense * 3)
    made = torch.sparse_coo_tensor(there.indices(), there.values(), (2, 2), device=device)
    assert torch.equal(made.to_dense().cpu(), dense)
    weights = dense.to(device).requires_grad_()
    (weights.to_sparse() * 2).to_dense().sum().backward()
    assert weights.grad.to_dense().cpu().sum() == 4


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_compressed_tensors(device, layout):
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    there = getattr(dense.to(device), f"to_sparse_{layout}")()
    assert there.device == device
    assert torch.equal(there.cpu().to_dense(), dense)
    assert torch.equal(there.to_dense().cpu(), dense)
    assert torch.equal((there @ torch.eye(2, device=device)).cpu(), dense)


@pytest.mark.filterwarnings("ignore")
def test_quantized_tensors(device):
    values = torch.randn(3, 4)
    here = torch.quantize_per_tensor(values, 0.1, 0, torch.qint8)
    there = torch.quantize_per_tensor(values.to(device), 0.1, 0, torch.qint8)
    assert there.is_quantized and there.device == device and there.q_scale() == here.q_scale()
    assert torch.equal(there.int_repr().cpu(), here.int_repr())
    assert torch.equal(there.dequantize().cpu(), here.dequantize())
    assert torch.equal(there.cpu().dequantize(), here.to(device).dequantize().cpu())


def test_a_result_is_on_the_device_that_is_asked_for(device, other):
    there = torch.eye(3).to_sparse().to(device)
    for layout in (there, there.to_sparse_csr()):
        for place in (torch.device("cpu"), other, torch.device("meta")):
            assert torch.empty_like(layout, device=place).device == place
    for place in (torch.device("cpu"), other):
        moved = there.to(place)
        assert moved.device == place
        assert torch.equal(moved.to_dense().cpu(), torch.eye(3))


USES = {
    "cpu": lambda tensor: tensor.cpu(),
    "from the CPU": lambda tensor: tensor.copy_(torch.zeros(4)),
    "tolist": lambda tensor: tensor.tolist(),
    "exp": lambda tensor: tensor.exp(),
    "exp_": lambda tensor: tensor.exp_(),
}


@pytest.mark.parametrize("use", USES)
def test_a_tensor_without_its_memory(device, use):
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    if use.startswith("exp") and has_kernel(f"aten::{use}", "PrivateUse1"):
        pytest.skip(f"this backend has a kernel for {use}, and PyTorch's do not check that either")
    tensor = torch.ones(4, device=device)
    tensor.untyped_storage().resize_(8)
    with pytest.raises(RuntimeError, match="needs 16 bytes, but its storage has only 8"):
        USES[use](tensor)
    tensor.untyped_storage().resize_(16)
    USES[use](tensor)


def test_a_result_may_grow_a_tensor_without_its_memory(device):
    target = torch.empty(4, device=device)
    target.untyped_storage().resize_(0)
    assert torch.exp(torch.zeros(8, device=device), out=target).tolist() == [1.0] * 8


def test_a_tensor_of_the_cpu_without_its_memory(device):
    there, here = torch.ones(4, device=device), torch.ones(4)
    here.untyped_storage().resize_(8)
    for copy in (lambda: there.copy_(here), lambda: here.copy_(there)):
        with pytest.raises(RuntimeError, match="needs 16 bytes, but its storage has only 8"):
            copy()


ATTENTION = {
    "plain": {},
    "causal": {"is_causal": True},
    "mask": {"attn_mask": torch.arange(30).view(5, 6) % 3 > 0},
    "bias": {"attn_mask": torch.arange(30.0).view(5, 6) / 7},
    "scale": {"scale": 0.3},
    "groups": {"enable_gqa": True},
}


@pytest.mark.parametrize("way", ATTENTION)
def test_attention(device, way):
    torch.manual_seed(0)
    heads = 2 if way == "groups" else 4
    shapes = [(2, 4, 5, 8), (2, heads, 6, 8), (2, heads, 6, 8)]
    inputs = [torch.randn(shape) for shape in shapes]
    results = []
    for place in ("cpu", device):
        leaves = [one.to(place).detach().requires_grad_() for one in inputs]
        options = {k: v.to(place) if torch.is_tensor(v) else v for k, v in ATTENTION[way].items()}
        output = F.scaled_dot_product_attention(*leaves, **options)
        output.square().sum().backward()
        results.append([output.detach().cpu()] + [one.grad.cpu() for one in leaves])
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", ["plain", "causal", "bias", "scale"])
def test_fused_attention(device, way):
    """What a model gets that asks for the fused operator itself; PyTorch has none for the CPU."""
    options = {k.replace("attn_mask", "attn_bias"): v for k, v in ATTENTION[way].items()}
    inputs = [torch.randn(2, 4, 5, 8), torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8)]
    here = [one.clone().requires_grad_() for one in inputs]
    there = [one.to(device).requires_grad_() for one in inputs]
    expected = F.scaled_dot_product_attention(*here, **ATTENTION[way])
    on_device = {k: v.to(device) if torch.is_tensor(v) else v for k, v in options.items()}
    fused = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
    output = fused(*there, **on_device)[0]
    torch.testing.assert_close(output.cpu(), expected, rtol=1e-4, atol=1e-5)
    expected.square().sum().backward()
    output.square().sum().backward()
    for one, two in zip(there, here):
        torch.testing.assert_close(one.grad.cpu(), two.grad, rtol=1e-4, atol=1e-5)


def test_dropout_of_fused_attention_follows_the_seed(device):
    fused = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
    query = torch.randn(1, 2, 4, 8, device=device)
    outputs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outputs.append(fused(query, query, query, None, 0.5)[0].cpu())
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
def test_convolution_and_its_second_derivative(device, dimensions, transposed):
    torch.manual_seed(0)
    kind = f"conv_transpose{dimensions}d" if transposed else f"conv{dimensions}d"
    inputs, weights = torch.randn(2, 3, *[5] * dimensions), torch.randn(3, 3, *[2] * dimensions)
    results = []
    for place in ("cpu", device):
        leaves = [one.to(place).detach().requires_grad_() for one in (inputs, weights)]
        output = getattr(F, kind)(*leaves, padding=1)
        grads = torch.autograd.grad(output.square().sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum(one.square().sum() for one in grads), leaves)
        results.append([one.detach().cpu() for one in (output, *grads, *second)])
    torch.testing.assert_close(results[1], results[0], rtol=1e-3, atol=1e-3)


def test_a_copy_to_the_cpu_that_does_not_block(device, module):
    copied = torch.ones(2, device=device).to("cpu", non_blocking=True)
    module.synchronize(device)
    assert copied.tolist() == [1.0, 1.0]


def test_memory_of_the_cpu_is_the_cpu_s(device):
    torch.erfinv(torch.zeros(3, device=device))
    made = torch.empty(5).fill_(2)
    made.resize_(100)
    assert made.device.type == "cpu" and made[:5].tolist() == [2.0] * 5


def test_threads(device):
    wrong = []

    def work(number):
        for _ in range(50):
            values = torch.full((64,), number / 10, device=device)
            if not torch.allclose(torch.erfinv(values).cpu(), torch.erfinv(values.cpu())):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_report(device, module):
    module.reset_fallback_report()
    assert str(module.fallback_report()) == "no operator fell back to the CPU"
    values = torch.zeros(256, device=device)
    for _ in range(3):
        values.logit_()
    report = module.fallback_report()
    row = next(row for row in report.rows if row.operator.startswith("aten::logit"))
    assert row.calls == 3 and row.total_ms > 0
    assert row.mean_ms == pytest.approx(row.total_ms / 3)
    assert row.bytes_copied in (0, 3 * 2 * 1024, 3 * 3 * 1024)  # 0: the host reaches the memory
    assert [one.total_ms for one in report.rows] == sorted(
        (one.total_ms for one in report.rows), reverse=True
    )
    head, *lines = str(report).splitlines()
    assert head.split() == "operator calls total ms mean ms bytes copied".split()
    assert len(lines) == len(report.rows)
    module.reset_fallback_report()
    assert module.fallback_report().rows == []


DENSE = "x = torch.zeros(2, device='{name}'); x.erfinv_(); x.erfinv_()"
NESTED = (
    "x = torch.nested.nested_tensor([torch.ones(2)], device='{name}', requires_grad=True); "
    "print(torch.nn.Parameter(x.detach())._nested_tensor_size()); x * 2"
)


def run_with(mode, name, program=DENSE):
    code = "import torch; " + program.format(name=name)
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "BACKENDKIT_FALLBACK": mode},
        capture_output=True,
        text=True,
    )


def test_the_environment_asks_for_warnings(name):
    done = run_with("warn", name)
    assert done.returncode == 0
    text = f"`aten::erfinv.out` has no kernel for device {name}: it runs on the CPU"
    assert done.stderr.count(text) == 1


def test_the_environment_asks_for_errors(name):
    done = run_with("error", name)
    assert done.returncode == 1
    assert "NotImplementedError: `aten::" in done.stderr
    assert "BACKENDKIT_FALLBACK=error" in done.stderr


def test_nested_tensors_without_a_fallback(name):
    """Autograd asks for their sizes where an error would end the process."""
    done = run_with("error", name, NESTED)
    assert done.returncode == 1 and done.stdout == "tensor([[2]])\n"
    assert "NotImplementedError: `aten::mul" in done.stderr
    assert "and kernels support only dense tensors: to let the CPU compute it" in done.stderr


def test_the_environment_asks_for_what_there_is_not(name):
    done = run_with("loud", name)
    assert done.returncode == 0
    assert done.stderr.count("BACKENDKIT_FALLBACK has the unknown value `loud`") == 1
