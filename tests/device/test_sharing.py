# SPDX-License-Identifier: Apache-2.0
"""Tensors of the device go through queues and pipes of torch.multiprocessing."""

import subprocess
import sys
import warnings

import pytest
import torch

PROGRAM = """
import sys
import torch
import torch.multiprocessing as mp

NAME = sys.argv[1]

def look(one):
    if isinstance(one, torch.nn.Module):
        return [look(parameter) for parameter in one.parameters()]
    if isinstance(one, torch.UntypedStorage):
        return ["storage", str(one.device), one.nbytes(), one.cpu().tolist()]
    if one.is_quantized:
        per_channel = one.qscheme() == torch.per_channel_affine
        scale = one.q_per_channel_scales().tolist() if per_channel else one.q_scale()
        return [str(one.device), str(one.dtype), scale, one.int_repr().tolist()]
    kind = type(one).__name__
    values = one.detach().cpu().to_dense().tolist()
    strides = one.stride() if one.layout == torch.strided else None
    where = [str(one.device), str(one.dtype), str(one.layout), strides]
    return [kind, *where, one.requires_grad, values]

def child(inbox, outbox):
    while (one := inbox.get()) is not None:
        outbox.put(look(one))
        if isinstance(one, torch.Tensor):
            outbox.put(changed(one))

def changed(one):
    return one if one.is_quantized or one.layout != torch.strided else one.detach() * 2

def tensors(where):
    torch.manual_seed(0)
    x = torch.arange(6.0).to(where)
    yield x
    yield x.view(2, 3).t()
    yield x[::2]
    yield x.view(2, 3)[1]
    yield x[:1].expand(4)
    yield torch.tensor([1 + 2j, 3], device=where).conj()
    yield torch._neg_view(torch.arange(2.0).to(where))
    yield torch.ones(2, device=where, requires_grad=True)
    yield torch.nn.Parameter(torch.ones(2, device=where), requires_grad=False)
    yield torch.tensor([True, False], device=where)
    yield torch.ones(2, dtype=torch.complex64, device=where)
    yield torch.empty(0, 3, device=where)
    yield torch.eye(3, device=where).to_sparse()
    yield torch.quantize_per_tensor(x, 0.5, 1, torch.qint8)
    scales, zeros = torch.tensor([0.5, 0.25]), torch.tensor([0, 1])
    yield torch.quantize_per_channel(torch.ones(2, 3), scales, zeros, 0, torch.quint8).to(where)
    yield torch.nn.Linear(2, 1).to(where)
    yield x.untyped_storage()

if __name__ == "__main__":
    torch.multiprocessing.set_sharing_strategy(sys.argv[2])
    context = mp.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=child, args=(inbox, outbox), daemon=True)
    process.start()
    for one in tensors(NAME):
        inbox.put(one)
        assert outbox.get(timeout=100) == look(one), look(one)
        if isinstance(one, torch.Tensor):
            back = outbox.get(timeout=100)
            assert look(back) == look(changed(one).detach().clone()), look(back)
    inbox.put(None)
    process.join(100)
    print(process.exitcode)
    sent, received = context.Pipe()
    try:
        sent.send((torch.ones(2, device=NAME, requires_grad=True) * 2))
    except RuntimeError as error:
        print("non-leaf" in str(error))
"""


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_tensors_arrive(name, tmp_path, strategy):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = [sys.executable, path, name, strategy]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == ["0", "True"], done.stdout + done.stderr


@pytest.mark.needs("devices")
def test_a_tensor_of_another_device(name, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("NAME = sys.argv[1]", 'NAME = sys.argv[1] + ":1"'))
    command = [sys.executable, path, name, "file_descriptor"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == ["0", "True"], done.stdout + done.stderr


ARGUMENTS = """
import sys
import torch
import torch.multiprocessing as mp

NAME = sys.argv[1]

def child(outbox, *tensors):
    outbox.put([[str(one.device), one.tolist()] for one in tensors])

def started(rank, one, outbox):
    outbox.put(one.sum().item() + rank)

def initialize(*tensors):
    global given
    given = tensors

def look(index):
    return given[index].tolist()

class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.numbers = torch.arange(8.0, device=NAME)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.numbers[index].cpu()

if __name__ == "__main__":
    torch.multiprocessing.set_sharing_strategy(sys.argv[2])
    one, two = torch.ones(3, device=NAME), torch.arange(4, device=NAME)
    for method in ("spawn", "forkserver"):
        context = mp.get_context(method)
        outbox = context.Queue()
        process = context.Process(target=child, args=(outbox, one, two, one[1:]))
        process.start()
        found = outbox.get(timeout=100)
        process.join(100)
        place = f"{NAME}:0"
        assert found == [[place, [1.0] * 3], [place, [0, 1, 2, 3]], [place, [1.0] * 2]], found
    outbox = mp.get_context("spawn").Queue()
    mp.spawn(started, args=(one, outbox), nprocs=2)
    assert {outbox.get(timeout=100), outbox.get(timeout=100)} == {3.0, 4.0}
    with mp.get_context("spawn").Pool(1, initialize, (one, two)) as pool:
        assert pool.map(look, [0, 1]) == [[1.0] * 3, [0, 1, 2, 3]]
    batches = torch.utils.data.DataLoader(
        Data(), batch_size=4, num_workers=1, multiprocessing_context="spawn"
    )
    assert [batch.tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    print("done")
"""


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_tensors_are_arguments_of_processes(name, tmp_path, strategy):
    path = tmp_path / "program.py"
    path.write_text(ARGUMENTS)
    command = [sys.executable, path, name, strategy]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n", done.stdout + done.stderr


def test_memory_that_is_not_shared_is_told(device, display_name):
    layer = torch.nn.Linear(2, 1).to(device)
    with pytest.warns(UserWarning, match=f"cannot share memory of {display_name}"):
        layer.share_memory()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.ones(2).share_memory_()
