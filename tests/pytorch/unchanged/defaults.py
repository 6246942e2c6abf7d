# SPDX-License-Identifier: Apache-2.0
"""Where PyTorch asks for the accelerator of the machine to choose a default."""

import datetime
import itertools
from typing import Any

import torch
import torch.monitor
from models import losses, network, numbers
from registry import PROBES, probe
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


@probe
def fork_rng_everywhere() -> Any:
    torch.manual_seed(7)
    with torch.random.fork_rng():
        torch.rand(3)
    return torch.rand(2).tolist()


@probe
def fork_rng_twice() -> Any:
    with torch.random.fork_rng(), torch.random.fork_rng(enabled=False):
        return torch.rand(1).shape


@probe
def fork_rng_after_seeding() -> Any:
    torch.manual_seed(11)
    with torch.random.fork_rng():
        torch.manual_seed(3)
    return torch.initial_seed(), torch.rand(1)


def checkpointed(**options: Any) -> Any:
    torch.manual_seed(1)
    model = torch.nn.Sequential(network(), torch.nn.Dropout(0.5))
    inner = numbers().requires_grad_()
    checkpoint(model, inner, **options).sum().backward()
    return inner.grad


@probe
def checkpoint_reentrant() -> Any:
    return checkpointed(use_reentrant=True)


@probe
def checkpoint_other() -> Any:
    return checkpointed(use_reentrant=False)


@probe
def checkpoint_without_random_state() -> Any:
    return checkpointed(use_reentrant=False, preserve_rng_state=False)


@probe
def checkpoint_debugged() -> Any:
    return checkpointed(use_reentrant=False, debug=True)


@probe
def checkpoint_in_autocast() -> Any:
    with torch.autocast("cpu"):
        return checkpointed(use_reentrant=False)


@probe
def checkpoint_in_parts() -> Any:
    inner = numbers().requires_grad_()
    checkpoint_sequential(network(), 2, inner, use_reentrant=False).sum().backward()
    return inner.grad


@probe
def checkpoint_default_device() -> Any:
    from torch.utils.checkpoint import DefaultDeviceType

    return DefaultDeviceType.get_device_type()


@probe
def checkpoint_devices_of_states() -> Any:
    from torch.utils.checkpoint import get_device_states

    return get_device_states(numbers())


@probe
def checkpoint_selective() -> Any:
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    def policy(context: Any, operator: Any, *arguments: Any, **options: Any) -> CheckpointPolicy:
        return CheckpointPolicy.PREFER_RECOMPUTE

    return checkpointed(
        use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy)
    )


@probe
def data_parallel() -> Any:
    model = torch.nn.DataParallel(network())
    return model.device_ids, model(numbers())


@probe
def data_parallel_trains() -> Any:
    return losses(torch.nn.DataParallel(network()))


@probe
def benchmark_timer() -> Any:
    from torch.utils.benchmark import Timer

    measured = Timer("x + 1", globals={"x": numbers()}).timeit(10)
    return measured.mean > 0, measured.number_per_run, measured.title


@probe
def benchmark_autorange() -> Any:
    from torch.utils.benchmark import Timer

    timer = Timer("x.sum()", globals={"x": numbers()})
    return timer.adaptive_autorange(max_run_time=0.05).median > 0


@probe
def benchmark_with_a_timer() -> Any:
    import time

    from torch.utils.benchmark import Timer

    return Timer("1", timer=time.perf_counter).timeit(2).mean >= 0


@probe
def device_available() -> Any:
    from torch._utils import _get_available_device_type

    return _get_available_device_type()


@probe
def block_mask_on_the_cpu() -> Any:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 128, 128, device="cpu")
    query = torch.ones(1, 1, 128, 8)
    return flex_attention(query, query, query, block_mask=mask).sum()


@probe
def attention_backends() -> Any:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    query = torch.ones(1, 2, 4, 8)
    results = [torch.nn.functional.scaled_dot_product_attention(query, query, query)]
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):
            results.append(torch.nn.functional.scaled_dot_product_attention(query, query, query))
    return [one.sum().item() for one in results]


@probe
def attention_module() -> Any:
    torch.manual_seed(2)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    query = torch.ones(2, 3, 8)
    with torch.inference_mode():
        fast = attention(query, query, query)[0]
    return fast, attention(query, query, query)[0]


@probe
def transformer() -> Any:
    torch.manual_seed(2)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2).eval()
    padding = torch.tensor([[False, False, True]])
    with torch.no_grad():
        return encoder(torch.ones(1, 3, 8), src_key_padding_mask=padding)


@probe
def fake_tensors_of_cuda() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        weight = torch.empty(2, 3, device="cuda")
        return weight.device, (weight @ weight.t()).shape, weight.cpu().device


@probe
def fake_constants_moved_to_cuda() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.tensor([1.0, 2.0], device="cuda").device, torch.tensor([1]).to("cuda").shape


@probe
def fake_mode_avoids_devices() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode().avoid_device_init


@probe
def fake_module_of_cuda() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        model = torch.nn.Linear(3, 4, device="cuda")
        model(torch.empty(2, 3, device="cuda")).sum().backward()
        return model.weight.grad.device


def stepped(name: str, **options: Any) -> Any:
    model = network()
    optimizer = getattr(torch.optim, name)(model.parameters(), **options)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(numbers()).pow(2).mean()
        loss.backward()
        return loss

    values = [round(optimizer.step(closure).item(), 4) for _ in range(2)]
    group = optimizer.state_dict()["param_groups"][0]
    return values, {key: group.get(key) for key in ("foreach", "fused", "capturable")}


def optimizer(name: str, suffix: str = "", **options: Any) -> None:
    def call() -> Any:
        return stepped(name, **options)

    PROBES[f"optimizer_{name}{suffix}"] = call


for one in "Adadelta Adagrad Adam AdamW Adamax ASGD LBFGS NAdam RAdam RMSprop Rprop SGD".split():
    optimizer(one, **({"lr": 0.1} if one == "SGD" else {}))
for one in "Adagrad Adam AdamW SGD".split():
    optimizer(one, "_fused", fused=True, lr=0.1)
for one in "Adam ASGD NAdam SGD".split():
    optimizer(one, "_foreach", foreach=True, lr=0.1)
for one in "Adam RAdam Rprop".split():
    optimizer(one, "_capturable", capturable=True)


@probe
def foreach_devices() -> Any:
    from torch.utils._foreach_utils import _get_fused_kernels_supported_devices

    return sorted(_get_fused_kernels_supported_devices())


@probe
def averaged_model() -> Any:
    model = network()
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    average.update_parameters(model)
    return average(numbers())


@probe
def clipped_gradients() -> Any:
    model = network()
    model(numbers()).sum().backward()
    return (
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1, foreach=True),
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1),
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.1),
        torch.nn.utils.parameters_to_vector(model.parameters()).shape,
    )


@probe
def parametrized() -> Any:
    torch.manual_seed(1)
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
    spectral = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(2, 2))
    return layer(torch.ones(1, 2)), spectral(torch.ones(1, 2)).shape


@probe
def scalers() -> Any:
    scaler = torch.amp.GradScaler("cpu")
    model = network()
    step = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler.scale(model(numbers()).sum()).backward()
    scaler.unscale_(step)
    scaler.step(step)
    scaler.update()
    return scaler.get_scale(), scaler.state_dict()


@probe
def autocast_of_cuda() -> Any:
    with torch.autocast("cuda"):
        return numbers() @ numbers().t()


@probe
def autocast_cached() -> Any:
    with torch.autocast("cpu", cache_enabled=True):
        return [network()(numbers()).dtype for _ in range(2)]


@probe
def autocast_as_decorator() -> Any:
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(context: Any, value: torch.Tensor) -> torch.Tensor:
        return value * 2

    class Double(torch.autograd.Function):
        @staticmethod
        def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 2

    Double.forward = staticmethod(forward)
    with torch.autocast("cpu"):
        return Double.apply(numbers().requires_grad_()).dtype


@probe
def tf32_and_matmul() -> Any:
    torch.set_float32_matmul_precision("high")
    try:
        return (numbers() @ numbers().t()).sum()
    finally:
        torch.set_float32_matmul_precision("highest")


@probe
def summaries() -> Any:
    model = network()
    return [tuple(p.shape) for p in itertools.islice(model.parameters(), 2)]


@probe
def jit_script() -> Any:
    return torch.jit.script(network())(numbers()), torch.jit.freeze(
        torch.jit.script(network().eval())
    )(numbers())


@probe
def quantized_dynamically() -> Any:
    model = torch.ao.quantization.quantize_dynamic(network(), {torch.nn.Linear})
    return model(numbers()).shape, torch.backends.quantized.engine


@probe
def quantized_in_eager() -> Any:
    model = torch.ao.quantization.QuantWrapper(network()).eval()
    model.qconfig = torch.ao.quantization.get_default_qconfig("x86")
    torch.ao.quantization.prepare(model, inplace=True)
    model(numbers())
    return torch.ao.quantization.convert(model)(numbers()).shape


@probe
def functional_transforms() -> Any:
    from torch.func import functional_call, jacrev, vmap

    model = network()
    weights = dict(model.named_parameters())
    return (
        vmap(lambda row: functional_call(model, weights, (row,)))(numbers()),
        jacrev(torch.sin)(torch.ones(2)),
    )


@probe
def graph_of_modules() -> Any:
    return torch.fx.symbolic_trace(network()).code


@probe
def printed_graph() -> Any:
    return str(torch.fx.symbolic_trace(lambda x: x.cos() + 1).graph)


@probe
def monitor() -> Any:
    events: list[Any] = []
    handle = torch.monitor.register_event_handler(events.append)
    torch.monitor.log_event(torch.monitor.Event("one", datetime.datetime.min, {}))
    torch.monitor.unregister_event_handler(handle)
    return [event.name for event in events]


@probe
def hub_model() -> Any:
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "hubconf.py"), "w") as file:
            file.write("def model():\n    import torch\n    return torch.nn.Linear(1, 1)\n")
        return torch.hub.load(folder, "model", source="local")


@probe
def overridable_functions() -> Any:
    from torch.overrides import get_ignored_functions, get_overridable_functions

    return len(get_ignored_functions()), sorted(str(one) for one in get_overridable_functions())


@probe
def testing_devices() -> Any:
    from torch.testing._internal.common_device_type import get_device_type_test_bases

    return [base.device_type for base in get_device_type_test_bases()]


@probe
def testing_comparison() -> Any:
    torch.testing.assert_close(numbers(), numbers())
    return torch.testing.make_tensor((2,), dtype=torch.int64, device="cpu", low=1, high=2)


@probe
def gradient_check() -> Any:
    value = torch.ones(2, dtype=torch.double, requires_grad=True)
    return torch.autograd.gradcheck(torch.sin, value)


@probe
def anomalies() -> Any:
    with torch.autograd.detect_anomaly():
        value = numbers().requires_grad_()
        (value / 0).sum().backward()


@probe
def memory_profile() -> Any:
    with torch.profiler.profile(profile_memory=True, record_shapes=True) as profile:
        network()(numbers()).sum().backward()
    return sorted(event.key for event in profile.key_averages()), str(profile.profiler.use_device)


@probe
def profile_table_heads() -> Any:
    with torch.profiler.profile() as profile:
        numbers().sum()
    head = profile.key_averages().table().splitlines()[1]
    return head.split()


@probe
def profile_trace() -> Any:
    import json
    import os
    import tempfile

    with torch.profiler.profile() as profile:
        numbers().sum()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path) as file:
            trace = json.load(file)
    kinds = {one.get("cat", "") for one in trace["traceEvents"]}
    return sorted(kinds), sorted(key for key in trace if key != "traceName")


@probe
def profile_by_autograd() -> Any:
    with torch.autograd.profiler.profile() as profile:
        numbers().sum()
    return [event.name for event in profile.function_events], profile.use_device


@probe
def events_and_streams() -> Any:
    return torch.Stream(device="cpu").device, torch.Event("cpu").device


@probe
def device_module_of_the_cpu() -> Any:
    return torch.get_device_module("cpu").__name__, torch.cpu.current_device()
