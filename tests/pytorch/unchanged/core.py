# SPDX-License-Identifier: Apache-2.0
"""What nearly every program does: tensors, modules, seeds, files, loaders, compilation."""

import copy
import hashlib
import io
import os
import pickle
import tempfile
import threading
from typing import Any, Optional

import torch
from models import losses, network, numbers
from registry import destroy_groups, probe
from torch.utils.data import DataLoader, TensorDataset


@probe
def is_pinned() -> Any:
    return numbers().is_pinned()


@probe
def storage_is_pinned() -> Any:
    return numbers().untyped_storage().is_pinned()


@probe
def loader() -> Any:
    return [batch[0].tolist() for batch in DataLoader(TensorDataset(numbers()), batch_size=1)]


@probe
def loader_workers() -> Any:
    data = DataLoader(TensorDataset(numbers()), batch_size=1, num_workers=1)
    return [batch[0].tolist() for batch in data]


@probe
def loader_spawned_worker() -> Any:
    data = DataLoader(
        TensorDataset(numbers()), batch_size=1, num_workers=1, multiprocessing_context="spawn"
    )
    return [batch[0].tolist() for batch in data]


@probe
def loader_shuffled() -> Any:
    torch.manual_seed(5)
    data = DataLoader(TensorDataset(torch.arange(8)), batch_size=8, shuffle=True)
    return [batch[0].tolist() for batch in data]


@probe
def manual_seed() -> Any:
    torch.manual_seed(7)
    return torch.rand(2).tolist(), torch.initial_seed()


@probe
def seed() -> Any:
    return isinstance(torch.seed(), int)


@probe
def rng_state() -> Any:
    state = torch.get_rng_state()
    first = torch.rand(2).tolist()
    torch.set_rng_state(state)
    return first == torch.rand(2).tolist()


@probe
def fork_rng() -> Any:
    torch.manual_seed(7)
    with torch.random.fork_rng():
        torch.rand(3)
    return torch.rand(2).tolist()


@probe
def fork_rng_of_no_device() -> Any:
    with torch.random.fork_rng(devices=[]):
        return torch.rand(1).shape


@probe
def generator() -> Any:
    generator = torch.Generator().manual_seed(4)
    return torch.randn(2, generator=generator).tolist(), generator.device


@probe
def save_load() -> Any:
    buffer = io.BytesIO()
    torch.save({"w": numbers()}, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


def loaded_to(place: Any) -> Any:
    buffer = io.BytesIO()
    torch.save(network().state_dict(), buffer)
    buffer.seek(0)
    return list(torch.load(buffer, map_location=place, weights_only=True))


@probe
def saved_bytes() -> Any:
    buffer = io.BytesIO()
    torch.save(network().state_dict(), buffer)
    return hashlib.sha256(buffer.getvalue()).hexdigest()


@probe
def load_to_cpu() -> Any:
    return loaded_to("cpu")


@probe
def load_to_device() -> Any:
    return loaded_to(torch.device("cpu"))


@probe
def load_to_function() -> Any:
    return loaded_to(lambda storage, _: storage)


@probe
def load_to_meta() -> Any:
    return loaded_to("meta")


@probe
def load_to_cuda() -> Any:
    return loaded_to("cuda")


@probe
def load_mapped() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.pt")
        torch.save(numbers(), path)
        return torch.load(path, mmap=True, weights_only=True)


@probe
def autocast_cpu() -> Any:
    with torch.autocast("cpu"):
        return (numbers() @ numbers().t()).dtype, torch.is_autocast_enabled("cpu")


@probe
def autocast_cpu_half() -> Any:
    with torch.amp.autocast("cpu", dtype=torch.float16):
        return (numbers() @ numbers().t()).dtype


@probe
def autocast_wrong_type() -> Any:
    with torch.autocast("nothing"):
        return "inside"


@probe
def autocast_available() -> Any:
    return torch.amp.autocast_mode.is_autocast_available("cpu")


@probe
def grad_scaler() -> Any:
    scaler = torch.amp.GradScaler("cpu")
    weight = torch.nn.Parameter(torch.ones(1))
    scaler.scale(weight.sum()).backward()
    return weight.grad, scaler.get_scale()


@probe
def grad_scaler_default() -> Any:
    return torch.amp.GradScaler().is_enabled()


@probe
def training() -> Any:
    return losses(network())


@probe
def training_in_thread() -> Any:
    results: list[Any] = []

    def work() -> None:
        try:
            results.append(losses(network()))
        except RuntimeError as error:
            results.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return results


@probe
def training_checkpointed() -> Any:
    from torch.utils.checkpoint import checkpoint

    model = network()
    inner = numbers().requires_grad_()
    checkpoint(model, inner, use_reentrant=False).sum().backward()
    checkpoint(model, inner, use_reentrant=True).sum().backward()
    return inner.grad


@probe
def training_double_backward() -> Any:
    x = numbers().requires_grad_()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)


@probe
def compile_eager() -> Any:
    return torch.compile(lambda x: x.sin() + 1, backend="eager")(numbers())


@probe
def compile_fork_rng() -> Any:
    @torch.compile(backend="eager")
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5)

    torch.manual_seed(1)
    return function(torch.ones(4))


@probe
def trace() -> Any:
    return torch.jit.trace(network(), numbers())(numbers()).shape


@probe
def export() -> Any:
    return torch.export.export(network(), (numbers(),)).module()(numbers()).shape


@probe
def make_fx() -> Any:
    from torch.fx.experimental.proxy_tensor import make_fx

    return len(make_fx(lambda x: x + 1)(numbers()).graph.nodes)


@probe
def fake_tensor() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(2).device, (torch.empty(2) + 1).shape


@probe
def event_cpu() -> Any:
    return torch.Event(device="cpu")


@probe
def stream_cpu() -> Any:
    return torch.Stream(device="cpu")


@probe
def stream_classes() -> Any:
    stream = torch.Stream(device="cpu")
    return isinstance(stream, torch.Stream), issubclass(torch.cuda.Stream, torch.Stream)


@probe
def generator_options() -> Any:
    default = torch.default_generator
    return torch.Generator(device="cpu").device, isinstance(default, torch.Generator)


@probe
def generator_copies() -> Any:
    one = torch.Generator().manual_seed(2)
    two = pickle.loads(pickle.dumps(one))
    return torch.rand(2, generator=two), torch.rand(2, generator=one.clone_state())


@probe
def generator_subclass() -> Any:
    class Mine(torch.Generator):
        pass

    return type(Mine()).__name__, isinstance(torch.Generator(), Mine), isinstance(1, Mine)


@probe
def generator_wrong() -> Any:
    return torch.Generator("nothing")


@probe
def scripted_generator() -> Any:
    def draw(generator: Optional[torch.Generator]) -> torch.Tensor:
        return torch.rand(2, generator=generator).sign()

    return torch.jit.script(draw)(torch.Generator())


@probe
def compiled_generator() -> Any:
    generator = torch.Generator().manual_seed(3)
    return torch.compile(lambda x: x + torch.rand(2, generator=generator), backend="eager")(
        torch.ones(2)
    )


@probe
def device_from_name() -> Any:
    return torch.device("cpu"), torch.device("meta"), torch.device("cuda", 1)


@probe
def device_unknown() -> Any:
    return torch.device("unheard")


@probe
def default_device() -> Any:
    torch.set_default_device("cpu")
    try:
        return torch.ones(2).device
    finally:
        torch.set_default_device(None)


@probe
def default_device_meta() -> Any:
    with torch.device("meta"):
        return torch.ones(2)


@probe
def get_default_device() -> Any:
    return torch.get_default_device()


@probe
def get_device_module_cpu() -> Any:
    return torch.get_device_module("cpu").__name__


@probe
def printing() -> Any:
    return str(numbers()), repr(network()), str(torch.tensor(1 + 2j)), repr(torch.ones(1) > 0)


@probe
def deep_copy() -> Any:
    model = copy.deepcopy(network())
    return [tuple(p.shape) for p in model.parameters()], copy.deepcopy(numbers())


@probe
def pickling() -> Any:
    return pickle.loads(pickle.dumps(numbers()))


@probe
def shared_memory() -> Any:
    return numbers().share_memory_().is_shared()


@probe
def numpy() -> Any:
    return torch.from_numpy(numbers().numpy())


@probe
def dlpack() -> Any:
    return torch.from_dlpack(numbers()), numbers().__dlpack_device__()


@probe
def complex_numbers() -> Any:
    return torch.fft.fft(torch.ones(4)), torch.complex(numbers(), numbers()).conj().sum()


@probe
def sparse() -> Any:
    return numbers().to_sparse().coalesce(), numbers().to_sparse_csr()


@probe
def quantized() -> Any:
    return torch.quantize_per_tensor(numbers(), 0.1, 0, torch.qint8)


@probe
def nested() -> Any:
    return torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]).is_nested


@probe
def attention() -> Any:
    query = torch.ones(1, 1, 2, 4)
    return torch.nn.functional.scaled_dot_product_attention(query, query, query)


@probe
def recurrent() -> Any:
    torch.manual_seed(1)
    return torch.nn.LSTM(3, 2)(numbers().unsqueeze(0))[0].shape


@probe
def vmap() -> Any:
    return torch.func.vmap(torch.sum)(numbers())


@probe
def functional_gradient() -> Any:
    return torch.func.grad(lambda x: (x * x).sum())(numbers())


@probe
def profiler() -> Any:
    with torch.profiler.profile() as profile:
        numbers().sum()
    return any(event.key == "aten::sum" for event in profile.key_averages())


@probe
def module_to() -> Any:
    return next(network().to("cpu", torch.float64).parameters()).dtype


@probe
def module_to_cuda() -> Any:
    return network().cuda()


@probe
def optimizer_fused() -> Any:
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    model(numbers()).sum().backward()
    optimizer.step()
    return optimizer.state_dict()["param_groups"][0]["fused"]


@probe
def optimizer_foreach() -> Any:
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    model(numbers()).sum().backward()
    optimizer.step()
    return len(optimizer.state)


@probe
def gradient_clipping() -> Any:
    model = network()
    model(numbers()).sum().backward()
    return round(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item(), 4)


@probe
def deterministic() -> Any:
    torch.use_deterministic_algorithms(True)
    try:
        return torch.ones(3).index_add_(0, torch.tensor([0, 0]), torch.ones(2))
    finally:
        torch.use_deterministic_algorithms(False)


@probe
def typed_storage() -> Any:
    return torch.FloatStorage([1.0]).device, torch.UntypedStorage(2).device


@probe
def tensor_type() -> Any:
    return numbers().type(), numbers().type("torch.DoubleTensor").dtype


@probe
def non_blocking_copy() -> Any:
    return torch.empty(2, 3).copy_(numbers(), non_blocking=True)


@probe
def cuda_state() -> Any:
    return torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.is_initialized()


@probe
def distributed_group() -> Any:
    if not torch.distributed.is_available():
        return "absent"
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        value = torch.ones(2)
        torch.distributed.all_reduce(value)
        return value
    finally:
        destroy_groups()


@probe
def distributed_default_group() -> Any:
    if not torch.distributed.is_available():
        return "absent"
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group(store=store, rank=0, world_size=1)
    try:
        value = torch.ones(2)
        torch.distributed.all_reduce(value)
        return value
    finally:
        destroy_groups()
