# SPDX-License-Identifier: Apache-2.0
"""Autograd, modules and optimizers on the device, against the CPU's results."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, inputs):
        return self.inner(inputs, inputs, inputs)[0]


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, inputs):
        return self.norm(self.table(inputs))


MODELS = {
    "linear": (lambda: nn.Linear(8, 4), (5, 8)),
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2)), (5, 8)),
    "batch norm": (lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)), (5, 8)),
    "conv1d": (lambda: nn.Conv1d(3, 4, 3, padding=1), (2, 3, 8)),
    "conv2d": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2)), (2, 3, 8, 8)),
    "conv2d groups": (lambda: nn.Conv2d(4, 8, 3, stride=2, groups=2, bias=False), (2, 4, 9, 9)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2, dilation=2), (1, 2, 5, 5, 5)),
    "transposed": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1), (2, 3, 5, 5)),
    "pooling": (lambda: nn.Sequential(nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1)), (2, 3, 8, 8)),
    "attention": (Attention, (2, 5, 8)),
    "embedding": (Embedded, None),
}


def inputs_of(shape):
    return torch.randint(10, (3, 4)) if shape is None else torch.randn(shape)


@pytest.mark.parametrize("model", MODELS)
def test_forward_and_backward_are_the_cpu_s(device, model):
    torch.manual_seed(0)
    make, shape = MODELS[model]
    here = make()
    there = copy.deepcopy(here).to(device)
    inputs = inputs_of(shape)
    results = []
    for network, place in ((here, torch.device("cpu")), (there, device)):
        values = inputs.detach().clone().to(place)
        if values.is_floating_point():
            values.requires_grad_()
        output = network(values)
        assert output.device == place
        output.square().mean().backward()
        grads = [parameter.grad for parameter in network.parameters()]
        if values.is_floating_point():
            grads.append(values.grad)
        assert all(grad.device == place for grad in grads)
        results.append([output, *grads, *network.buffers()])
    for expected, actual in zip(*results):
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [nn.BatchNorm1d, nn.InstanceNorm1d])
@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics(device, make, momentum):
    """PyTorch's schemas do not say that the operators write to them."""
    here = make(3, momentum=momentum, track_running_stats=True)
    there = copy.deepcopy(here).to(device)
    for _ in range(3):
        inputs = torch.randn(4, 3, 5) * 2 + 5
        here(inputs)
        there(inputs.to(device))
    for name, buffer in here.named_buffers():
        torch.testing.assert_close(dict(there.named_buffers())[name].cpu(), buffer)
    assert momentum is None or (there.running_mean.cpu() > 1 / 2).all()
    torch.testing.assert_close(there.eval()(inputs.to(device)).cpu(), here.eval()(inputs))
    torch.testing.assert_close(there.running_mean.cpu(), here.running_mean)


def test_slopes_that_are_drawn_are_those_of_backward(device):
    values = torch.linspace(-2, -1, 50, device=device, requires_grad=True)
    result = F.rrelu(values, training=True)
    result.sum().backward()
    slopes = (result / values).detach().cpu()
    assert len(set(slopes.tolist())) > 10
    torch.testing.assert_close(values.grad.cpu(), slopes)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimizers_train_as_on_the_cpu(device, optimizer):
    torch.manual_seed(0)
    here = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    there = copy.deepcopy(here).to(device)
    inputs, targets = torch.randn(16, 4), torch.randn(16, 1)
    histories = []
    for network, place in ((here, "cpu"), (there, device)):
        steps = getattr(torch.optim, optimizer)(network.parameters(), lr=0.01)
        history = []
        for _ in range(8):
            loss = F.mse_loss(network(inputs.to(place)), targets.to(place))
            steps.zero_grad()
            loss.backward()
            steps.step()
            history.append(loss.item())
        histories.append(history)
    assert histories[1][-1] < histories[1][0]
    assert histories[1] == pytest.approx(histories[0], rel=1e-4)


@pytest.mark.parametrize(
    "loss", ["cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss"]
)
def test_losses(device, loss):
    torch.manual_seed(0)
    logits = torch.randn(6, 5)
    target = torch.randint(5, (6,)) if loss in ("cross_entropy", "nll_loss") else torch.randn(6, 5)
    results = []
    for place in ("cpu", device):
        values = logits.clone().to(place).requires_grad_()
        result = getattr(F, loss)(values, target.to(place))
        result.backward()
        results.append((result.detach().cpu(), values.grad.cpu()))
    torch.testing.assert_close(results[1], results[0])


def test_gradients_cross_devices(device, other):
    here = torch.randn(3, requires_grad=True)
    (here.to(device) * 2).to(other).cpu().sum().backward()
    assert here.grad.tolist() == [2.0, 2.0, 2.0]


def test_backward_hooks_and_retained_gradients(device):
    seen = []
    values = torch.ones(3, device=device, requires_grad=True)
    doubled = values * 2
    doubled.retain_grad()
    doubled.register_hook(lambda grad: seen.append(grad.device))
    doubled.sum().backward()
    assert seen == [device]
    assert doubled.grad.device == device


def test_a_function_of_one_s_own(device):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values):
            return values * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    values = torch.ones(3, device=device, requires_grad=True)
    Double.apply(values).sum().backward()
    assert values.grad.cpu().tolist() == [2.0, 2.0, 2.0]


def test_no_grad_and_inference_mode(device):
    values = torch.ones(3, device=device, requires_grad=True)
    with torch.no_grad():
        assert not (values * 2).requires_grad
    with torch.inference_mode():
        assert (values * 2).is_inference()


def test_checkpointing(device):
    network = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4)).to(device)
    values = torch.randn(2, 4, device=device, requires_grad=True)
    result = torch.utils.checkpoint.checkpoint(network, values, use_reentrant=False)
    result.sum().backward()
    assert values.grad.device == device


def test_a_data_loader_feeds_the_device(device):
    data = torch.utils.data.TensorDataset(torch.arange(10.0), torch.arange(10))
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    total = sum(values.to(device).sum().item() for values, _ in loader)
    assert total == 45.0


def test_in_place_operators(device):
    here, there = torch.arange(4.0), torch.arange(4.0).to(device)
    for tensor in (here, there):
        tensor.add_(1).mul_(2)
        tensor[0].zero_()
        tensor.clamp_(max=5)
    assert torch.equal(there.cpu(), here)


def test_out_arguments(device):
    out = torch.empty(0, device=device)
    torch.add(torch.ones(3, device=device), 2, out=out)
    assert out.cpu().tolist() == [3.0, 3.0, 3.0]


def test_foreach(device):
    tensors = [torch.ones(2, device=device), torch.ones(3, device=device)]
    torch._foreach_add_(tensors, 1)
    assert [tensor.sum().item() for tensor in tensors] == [4.0, 6.0]


def test_sorting_and_reductions(device):
    values = torch.randn(4, 6)
    there = values.to(device)
    assert torch.equal(there.sort(dim=1).indices.cpu(), values.sort(dim=1).indices)
    assert torch.equal(there.topk(2).values.cpu(), values.topk(2).values)
    torch.testing.assert_close(there.var(dim=0).cpu(), values.var(dim=0))
    assert there.argmax().item() == values.argmax().item()
    assert torch.equal(there.cumsum(0).cpu(), values.cumsum(0))
    inverse = torch.linalg.inv(values[:, :4])
    torch.testing.assert_close(torch.linalg.inv(there[:, :4]).cpu(), inverse, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True}], ids=str
)
@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_networks(device, kind, options):
    torch.manual_seed(0)
    here = kind(4, 3, **options)
    there = copy.deepcopy(here).to(device)
    inputs = torch.randn(5, 2, 4)
    results = []
    for network, place in ((here, "cpu"), (there, device)):
        values = inputs.clone().to(place).requires_grad_()
        output, state = network(values)
        last = state[1] if kind is nn.LSTM else state
        (output.square().sum() + last.sum()).backward()
        results.append([output, last, values.grad] + [one.grad for one in network.parameters()])
    for expected, actual in zip(*results):
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.SmoothL1Loss()], ids=["mse", "smooth l1"])
@pytest.mark.filterwarnings("error")
def test_a_loss_does_not_warn(device, loss):
    assert loss(torch.ones(3, 2, device=device), torch.zeros(3, 2, device=device)).shape == ()
