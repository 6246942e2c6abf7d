# SPDX-License-Identifier: Apache-2.0
"""torch.compile with Inductor, torch.export and what they keep on the disk."""

import contextlib
import io
import logging
from typing import Any

import torch
import torch._dynamo
from models import losses, network, numbers
from registry import probe
from torch._dynamo.utils import counters


def counted(function: Any, *arguments: Any) -> Any:
    """What a function returns, and what Dynamo and Inductor counted."""
    torch._dynamo.reset()
    counters.clear()
    value = function(*arguments)
    kinds = ("frames", "graph_break", "aot_autograd", "stats", "unimplemented")
    return value, {kind: sorted(counters[kind].items()) for kind in kinds}


@probe
def inductor() -> Any:
    return counted(torch.compile(lambda x: x.sin() + x.cos().sum()), numbers())


@probe
def inductor_kept() -> Any:
    """The second process finds in the cache on the disk what the first one left there."""
    torch._dynamo.reset()
    counters.clear()
    torch.compile(lambda x: (x + 1).relu())(numbers())
    return sorted(key for key in counters["inductor"] if "error" in key)


@probe
def inductor_of_no_tensor() -> Any:
    return counted(torch.compile(lambda: torch.ones(3) + 1))


@probe
def inductor_trains() -> Any:
    return counted(lambda: losses(torch.compile(network())))


@probe
def inductor_of_dynamic_shapes() -> Any:
    function = torch.compile(lambda x: x * 2, dynamic=True)
    return counted(lambda: [function(torch.ones(size)).sum().item() for size in (2, 3, 5)])


@probe
def inductor_reduces_overhead() -> Any:
    return counted(torch.compile(lambda x: x - 1, mode="reduce-overhead"), numbers())


@probe
def generated_code() -> Any:
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    _, code = run_and_get_code(torch.compile(lambda x: x.tanh()), numbers())
    kept = [line for one in code for line in one.splitlines() if "foo" in line or "device" in line]
    return [line for line in kept if "/" not in line]


@probe
def guards() -> Any:
    torch._dynamo.reset()
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    torch._logging.set_logs(guards=True, graph_code=True)
    log = logging.getLogger("torch")
    log.addHandler(handler)
    try:
        torch.compile(lambda x: x + 1, backend="eager")(numbers())
    finally:
        log.removeHandler(handler)
        torch._logging.set_logs()
    return [line for line in heard.getvalue().splitlines() if "foo" in line or "accel" in line]


@probe
def explained() -> Any:
    torch._dynamo.reset()
    found = torch._dynamo.explain(lambda x: x.sum().item() + 1)(numbers())
    return found.graph_count, found.graph_break_count, found.op_count


@probe
def whole_graph_with_seeds() -> Any:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5) + torch.rand(3)

    torch.manual_seed(1)
    return counted(torch.compile(function, backend="aot_eager", fullgraph=True), torch.ones(2, 3))


@probe
def compiled_autocast() -> Any:
    def function(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu"):
            return x @ x.t()

    return counted(torch.compile(function, backend="aot_eager"), numbers())


@probe
def compiled_checkpoint() -> Any:
    from torch.utils.checkpoint import checkpoint

    def function(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(lambda y: y.sin().cos(), x, use_reentrant=False)

    def call() -> Any:
        x = numbers().requires_grad_()
        torch.compile(function, backend="aot_eager")(x).sum().backward()
        return x.grad

    return counted(call)


@probe
def compiled_optimizer() -> Any:
    def call() -> Any:
        model = network()
        optimizer = torch.optim.Adam(model.parameters())
        model(numbers()).sum().backward()
        torch.compile(optimizer.step, backend="aot_eager")()
        return next(model.parameters()).sum()

    return counted(call)


@probe
def compiled_accelerator_question() -> Any:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + (1 if torch.cuda.is_available() else 2)

    return counted(torch.compile(function, backend="eager"), numbers())


@probe
def devices_known_to_dynamo() -> Any:
    from torch._dynamo.device_interface import get_interface_for_device

    return get_interface_for_device("cpu").__name__


@probe
def backends_known_to_inductor() -> Any:
    from torch._inductor.codegen.common import get_scheduling_for_device

    return str(get_scheduling_for_device("cpu"))


@probe
def exported() -> Any:
    program = torch.export.export(network(), (numbers(),))
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    return str(torch.export.load(buffer).graph), program.module()(numbers())


@probe
def exported_with_dynamic_shapes() -> Any:
    rows = torch.export.Dim("rows")
    program = torch.export.export(network(), (numbers(),), dynamic_shapes={"input": {0: rows}})
    return program.graph_signature, program.module()(torch.ones(5, 3))


@probe
def traced_symbolically() -> Any:
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(lambda x: x.sum() * 2, tracing_mode="symbolic")(numbers()).code


@probe
def logged_while_compiling() -> Any:
    """What a program hears on its standard error while it compiles."""
    torch._dynamo.reset()
    heard = io.StringIO()
    with contextlib.redirect_stderr(heard):
        torch.compile(lambda x: x.exp())(numbers())
    return heard.getvalue()


@probe
def timed_while_compiling() -> Any:
    from torch._dynamo.utils import timed

    result, seconds = timed(lambda x: x + 1, (numbers(),))
    return result, seconds >= 0
