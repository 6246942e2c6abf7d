# SPDX-License-Identifier: Apache-2.0
"""`torch.autocast` on the device: what PyTorch does on CUDA, and GradScaler."""

import copy
import itertools
import threading
import warnings

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.needs("autocast")

#: Those that autocast on the device may use.
LOWER = [
    pytest.param(dtype, marks=pytest.mark.needs(f"autocast of {str(dtype).split('.')[1]}"))
    for dtype in (torch.float16, torch.bfloat16)
]
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
aten = torch.ops.aten


@pytest.fixture
def default(module):
    """The dtype that autocast uses where no other is named."""
    return module.get_amp_supported_dtype()[0]


def square(dtype, device):
    return torch.ones(4, 4, dtype=dtype, device=device)


# Each takes a function that makes tensors, by default of 4 times 4, and two dtypes for them.
CALLS = {
    "mm": lambda make, a, b: torch.mm(make(a), make(b)),
    "linear": lambda make, a, b: F.linear(make(a), make(b)),
    "linear with bias": lambda make, a, b: F.linear(make(a), make(a), make(b, 4)),
    "baddbmm": lambda make, a, b: torch.baddbmm(
        make(a, 1, 4, 4), make(b, 1, 4, 4), make(b, 1, 4, 4)
    ),
    "einsum": lambda make, a, b: torch.einsum("ij,jk->ik", make(a), make(b)),
    "chain": lambda make, a, b: torch.linalg.multi_dot([make(a), make(b), make(a)]),
    "conv2d": lambda make, a, b: F.conv2d(make(a, 1, 1, 4, 4), make(b, 1, 1, 3, 3)),
    "prelu": lambda make, a, b: F.prelu(make(a), make(b, 4)),
    "exp": lambda make, a, b: make(a).exp(),
    "pow": lambda make, a, b: make(a) ** make(b),
    "layer_norm": lambda make, a, b: F.layer_norm(make(a), (4,), make(a, 4), make(a, 4)),
    "mse_loss": lambda make, a, b: F.mse_loss(make(a), make(b)),
    "cdist": lambda make, a, b: torch.cdist(make(a), make(b)),
    "sum": lambda make, a, b: make(a).sum(),
    "sum to a dtype": lambda make, a, b: make(a).sum(0, dtype=b),
    "softmax": lambda make, a, b: make(a).softmax(0),
    "softmax to a dtype": lambda make, a, b: torch.softmax(make(a), 0, dtype=b),
    "prod": lambda make, a, b: make(a).prod(1),
    "norm": lambda make, a, b: aten.norm.Scalar(make(a), 2),
    "norm of a dimension": lambda make, a, b: aten.norm.ScalarOpt_dim(make(a), 1, [0]),
    "vector_norm": lambda make, a, b: torch.linalg.vector_norm(make(a)),
    "addcmul": lambda make, a, b: torch.addcmul(make(a), make(b), make(a)),
    "dot": lambda make, a, b: torch.dot(make(a, 4), make(b, 4)),
    "bilinear": lambda make, a, b: F.bilinear(make(a), make(a), make(a, 1, 4, 4), make(b, 1)),
    "scatter_add": lambda make, a, b: make(a).scatter_add(0, make(torch.float32).long(), make(b)),
    "relu": lambda make, a, b: make(a).relu(),
    "add": lambda make, a, b: make(a) + make(b),
    "cat": lambda make, a, b: torch.cat([make(a), make(b)]),
}


class on_fake_cuda:
    """PyTorch's own answer: tensors that only pretend to lie on a CUDA device."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __enter__(self):
        self.mode = FakeTensorMode()
        self.mode.__enter__()
        torch.set_autocast_enabled("cuda", True)
        torch.set_autocast_dtype("cuda", self.dtype)

    def __exit__(self, *_):
        torch.set_autocast_enabled("cuda", False)
        torch.clear_autocast_cache()
        self.mode.__exit__(None, None, None)


def outcome(call, device, first, second):
    """The result's dtype, "error", or "unknown" where PyTorch wants a CUDA driver."""

    def make(dtype, *shape):
        return torch.ones(shape or (4, 4), dtype=dtype, device=device)

    try:
        return call(make, first, second).dtype
    except RuntimeError as problem:
        return "unknown" if "CUDA error" in str(problem) else "error"


@pytest.mark.parametrize("dtype", LOWER, ids=str)
@pytest.mark.parametrize("call", CALLS)
def test_results_have_the_dtypes_of_cuda(device, call, dtype):
    for first, second in itertools.product(DTYPES, DTYPES):
        with on_fake_cuda(dtype):
            expected = outcome(CALLS[call], "cuda", first, second)
        with torch.autocast(device.type, dtype):
            actual = outcome(CALLS[call], device, first, second)
        if expected == "unknown":
            continue
        # What a CUDA kernel refuses the CPU may compute, and the other way round.
        if "error" not in (actual, expected):
            assert actual == expected, (first, second)
        elif torch.float64 not in (first, second):
            assert actual == expected, (first, second)


def test_the_lists_are_those_of_cuda():
    def registered(key):
        has = torch._C._dispatch_has_kernel_for_dispatch_key
        return {op for op in torch._C._dispatch_get_all_op_names() if has(op, key)}

    ours, cuda = registered("AutocastPrivateUse1"), registered("AutocastCUDA")
    assert len(ours) > 100
    cudnn = {"aten::cudnn_convolution", "aten::cudnn_convolution_transpose"}
    if torch.version.cuda is not None:
        cudnn.add("aten::_cudnn_rnn")
    assert cuda - ours == cudnn
    assert ours <= cuda


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_values_are_those_of_explicit_casts(device, dtype):
    torch.manual_seed(0)
    left, right = torch.randn(8, 8), torch.randn(8, 8)
    here, there = left.to(device), right.to(device)
    with torch.autocast(device.type, dtype):
        product = here @ there
        logarithm = product.abs().log()
        total = product.softmax(0).sum()
        mixed = torch.addcmul(product, here, product)
    expected = left.to(dtype) @ right.to(dtype)
    assert product.dtype == dtype
    assert torch.equal(product.cpu(), expected)
    torch.testing.assert_close(logarithm.cpu(), expected.abs().float().log())
    torch.testing.assert_close(total.cpu(), expected.softmax(0, dtype=torch.float32).sum())
    torch.testing.assert_close(mixed.cpu(), torch.addcmul(expected.float(), left, expected.float()))


def test_defaults(device, default):
    assert torch.get_autocast_dtype(device.type) == default
    assert not torch.is_autocast_enabled(device.type)
    with torch.autocast(device.type):
        assert torch.is_autocast_enabled(device.type)
        assert not torch.is_autocast_enabled("cpu")
        assert (square(torch.float32, device) @ square(torch.float32, device)).dtype == default
    assert not torch.is_autocast_enabled(device.type)


def test_nesting_and_decorators(device, module, default):
    other = module.get_amp_supported_dtype()[-1]
    values = square(torch.float32, device)

    @torch.autocast(device.type)
    def product():
        return values @ values

    with torch.autocast(device.type):
        with torch.autocast(device.type, enabled=False):
            assert (values @ values).dtype == torch.float32
        with torch.autocast(device.type, other):
            assert (values @ values).dtype == other
        assert (values @ values).dtype == default
    assert product().dtype == default
    assert (values @ values).dtype == torch.float32


def test_what_autocast_leaves_alone(device):
    host, values = square(torch.float32, "cpu"), square(torch.float32, device)
    with torch.autocast(device.type):
        assert (host @ host).dtype == torch.float32
        double = values.double()
        assert (double @ double).dtype == torch.float64
        assert double.sum().dtype == torch.float64
        assert values.long().sum().dtype == torch.int64
        assert values.long().cumsum(0).dtype == torch.int64
        out = torch.empty_like(values)
        assert torch.mm(values, values, out=out) is out
        assert values.addmm_(values, values) is values
    with torch.autocast("cpu"):
        assert (values @ values).dtype == torch.float32


def test_a_dtype_that_the_device_has_not(device):
    with pytest.warns(UserWarning, match="[Dd]isabling autocast"):
        context = torch.autocast(device.type, torch.float64)
    values = square(torch.float32, device)
    with context:
        assert (values @ values).dtype == torch.float32


def test_other_threads(device, default):
    """They start with PyTorch's own default, float16, whatever the device's is."""
    named = None if default == torch.float16 else default
    found = []

    def work():
        values = square(torch.float32, device)
        found.append((values @ values).dtype)
        with torch.autocast(device.type, named):
            found.append((values @ values).dtype)

    with torch.autocast(device.type):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [torch.float32, default]


class Casts(TorchDispatchMode):
    """Counts conversions."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is aten._to_copy.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("cached, count", [(True, 1), (False, 3)])
def test_a_weight_is_cast_once(device, default, cached, count):
    weight = square(torch.float32, device).requires_grad_()
    inputs = square(default, device)
    with torch.autocast(device.type, cache_enabled=cached), Casts() as casts:
        results = [F.linear(inputs, weight) for _ in range(3)]
    assert casts.count == count
    sum(results).sum().backward()
    assert weight.grad.dtype == torch.float32
    assert weight.grad.cpu().tolist() == torch.full((4, 4), 12.0).tolist()


def test_the_cache_forgets_a_weight_that_changed(device, default):
    weight = square(torch.float32, device).requires_grad_()
    inputs = square(default, device)
    for factor in (1.0, 2.0):
        with torch.no_grad():
            weight.fill_(factor)
        with torch.autocast(device.type):
            assert F.linear(inputs, weight)[0, 0].item() == 4 * factor


def test_binary_cross_entropy_is_refused(device):
    values = torch.full((3,), 0.5, device=device)
    with torch.autocast(device.type):
        with pytest.raises(RuntimeError, match="BCELoss are unsafe to autocast"):
            F.binary_cross_entropy(values, values)
        loss = F.binary_cross_entropy_with_logits(values.half(), values.half())
    assert loss.dtype == torch.float32
    assert F.binary_cross_entropy(values, values).item() == pytest.approx(0.6931472)


def test_dtypes_that_do_not_promote(device):
    half, brain = square(torch.float16, device), square(torch.bfloat16, device)
    with torch.autocast(device.type):
        with pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
            torch.addcmul(half, brain, brain)


def test_custom_functions(device, default):
    class Multiply(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=device.type)
        def forward(ctx, left, right):
            ctx.save_for_backward(left, right)
            return left @ right

        @staticmethod
        @torch.amp.custom_bwd(device_type=device.type)
        def backward(ctx, grad):
            left, right = ctx.saved_tensors
            assert torch.is_autocast_enabled(device.type)
            return grad @ right.T, left.T @ grad

    class InFloat32(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=device.type, cast_inputs=torch.float32)
        def forward(ctx, values):
            assert values.dtype == torch.float32
            assert not torch.is_autocast_enabled(device.type)
            return values @ values

        @staticmethod
        @torch.amp.custom_bwd(device_type=device.type)
        def backward(ctx, grad):
            assert not torch.is_autocast_enabled(device.type)
            return grad

    values = square(torch.float32, device).requires_grad_()
    with torch.autocast(device.type):
        result = Multiply.apply(values, values)
        in_float32 = InFloat32.apply(values.half())
    assert (result.dtype, in_float32.dtype) == (default, torch.float32)
    (result.float().sum() + in_float32.sum()).backward()
    assert values.grad.cpu().tolist() == torch.full((4, 4), 9.0).tolist()


def train(network, place, dtype, scaler, steps=12):
    """Trains as the documentation of torch.amp does; the losses."""
    torch.manual_seed(1)
    inputs, targets = torch.randn(16, 8), torch.randn(16, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast(place.type, dtype):
            output = network(inputs.to(place))
            assert output.dtype == dtype
            loss = F.mse_loss(output, targets.to(place))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_training_is_the_cpu_s(device, dtype):
    torch.manual_seed(0)
    here = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    there = copy.deepcopy(here).to(device)
    scaled = dtype == torch.float16
    expected = train(here, torch.device("cpu"), dtype, torch.amp.GradScaler("cpu", enabled=scaled))
    scaler = torch.amp.GradScaler(device.type, enabled=scaled)
    actual = train(there, device, dtype, scaler)
    assert actual[-1] < actual[0]
    assert actual == pytest.approx(expected, rel=2e-2)
    assert all(parameter.dtype == torch.float32 for parameter in there.parameters())


def test_a_step_with_an_infinite_gradient_is_skipped(device):
    network = nn.Linear(2, 1, bias=False).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(device.type, init_scale=1024.0, growth_interval=1)
    before = network.weight.detach().clone()
    scales = []
    for factor in (1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        with torch.autocast(device.type):
            loss = network(torch.ones(1, 2, device=device)).sum().float() * factor
        scaler.scale(loss).backward()
        weight = network.weight.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(network.weight, weight) == (factor != 1.0)
        scales.append(scaler.get_scale())
    assert scales == [2048.0, 1024.0, 2048.0]
    assert not torch.equal(network.weight, before)


def test_a_scaler_s_state(device):
    scaler = torch.amp.GradScaler(device.type, init_scale=8.0)
    scaler.scale(torch.ones(1, device=device))
    restored = torch.amp.GradScaler(device.type)
    restored.load_state_dict(scaler.state_dict())
    assert restored.get_scale() == 8.0


def test_a_compiled_graph_keeps_autocast(device):
    def function(values):
        with torch.autocast(device.type):
            return (values @ values).exp()

    values = square(torch.float32, device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        result = compiled(values)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, function(values))
