"""Basic tests that every backend must pass. Install the backend, then run `pytest`."""

import copy
import io

import pytest
import torch

DEVICE = "ocl"


def devices():
    return [f"{DEVICE}:{index}" for index in range(torch.ocl.device_count())]


@pytest.fixture(params=devices() or [DEVICE])
def device(request):
    return torch.device(request.param)


def test_there_is_a_device():
    assert torch.ocl.is_available()
    assert torch.ocl.device_count() >= 1


def test_a_tensor_is_made_there(device):
    tensor = torch.ones(2, 3, device=device)
    assert tensor.device == device
    assert tensor.cpu().tolist() == [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
def test_values_survive_the_way_there_and_back(device, dtype):
    values = torch.arange(12).reshape(3, 4).to(dtype)
    there = values.to(device)
    assert torch.equal(there.cpu(), values)
    assert torch.equal(there.t()[1:].cpu(), values.t()[1:])


def test_operators_without_a_kernel_fall_back(device):
    left, right = torch.randn(4, 5), torch.randn(5, 3)
    result = (left.to(device) @ right.to(device)).softmax(dim=1)
    assert result.device == device
    torch.testing.assert_close(result.cpu(), (left @ right).softmax(dim=1))


def test_a_part_of_a_tensor_can_be_written(device):
    tensor = torch.zeros(3, 3, device=device)
    tensor[:, 1] = torch.tensor([1.0, 2.0, 3.0])
    assert tensor.cpu()[:, 1].tolist() == [1.0, 2.0, 3.0]
    assert tensor.sum().item() == 6.0


def test_an_index_out_of_range_is_an_error():
    with pytest.raises(RuntimeError, match="out of range"):
        torch.ones(1, device=f"{DEVICE}:{torch.ocl.device_count()}")


def test_a_network_trains_as_on_the_cpu(device):
    torch.manual_seed(0)
    here = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    there = copy.deepcopy(here).to(device)
    inputs, targets = torch.randn(16, 4), torch.randn(16, 1)
    losses = {}
    for network, place in ((here, "cpu"), (there, device)):
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        history = losses.setdefault(str(place), [])
        for _ in range(5):
            loss = torch.nn.functional.mse_loss(network(inputs.to(place)), targets.to(place))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        assert history[-1] < history[0]
    assert losses[str(device)] == pytest.approx(losses["cpu"], rel=1e-4)


def test_a_state_can_be_saved_and_loaded(device):
    network = torch.nn.Linear(3, 2).to(device)
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file, map_location=device)
    assert loaded["weight"].device == device
    assert torch.equal(loaded["weight"].cpu(), network.weight.detach().cpu())


def test_random_numbers_repeat_with_the_seed(device):
    torch.manual_seed(7)
    first = torch.randn(5, device=device).cpu()
    torch.manual_seed(7)
    assert torch.equal(torch.randn(5, device=device).cpu(), first)
