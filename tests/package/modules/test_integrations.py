# SPDX-License-Identifier: Apache-2.0
"""Logic for autograd, queues, other packages and test suites, which needs no device."""

from __future__ import annotations

import threading
import types
from typing import Any

import pytest
import torch
from package_without_library import Package


class Engine:
    """Stands for PyTorch's engine: says whether a pass may use the threads of the devices."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, bool]] = []
        self.inside, self.go_on = threading.Event(), threading.Event()

    def run_backward(self, name: str) -> None:
        self.runs.append((name, torch.autograd.is_multithreading_enabled()))
        if name == "waits":
            self.inside.set()
            assert self.go_on.wait(60)
        elif name == "fails":
            raise ZeroDivisionError


def test_one_backward_pass_at_a_time_uses_the_threads_of_the_devices(package: Package) -> None:
    pytorch = Engine()
    engine = package.autograd.Engine(pytorch)
    first = threading.Thread(target=engine.run_backward, args=("waits",))
    first.start()
    assert pytorch.inside.wait(60)
    engine.run_backward("meanwhile")
    pytorch.go_on.set()
    first.join()
    with pytest.raises(ZeroDivisionError):
        engine.run_backward("fails")
    engine.run_backward("after it")
    expected = [("waits", True), ("meanwhile", False), ("fails", True), ("after it", True)]
    assert pytorch.runs == expected
    assert torch.autograd.is_multithreading_enabled()


def test_the_engine_is_put_in_place_once(package: Package) -> None:
    before = torch.autograd.Variable._execution_engine
    package.autograd.install()
    package.autograd.install()
    engine = torch.autograd.Variable._execution_engine
    assert type(engine) is package.autograd.Engine
    assert engine.pytorch is before


def test_dlpack(package: Package) -> None:
    """PyTorch's function stays the same object and answers for its own devices itself."""
    function = torch.Tensor.__dlpack_device__
    expected = torch.ones(1).__dlpack_device__()
    for _ in range(2):
        package.dlpack.install()
    assert torch.Tensor.__dlpack_device__ is function
    assert torch.ones(1).__dlpack_device__() == expected
    with pytest.raises(ValueError, match="meta"):
        torch.ones(1, device="meta").__dlpack_device__()
    package.dlpack._device._NAME = "meta"
    kind, _ = torch.ones(1, device="meta").__dlpack_device__()
    assert kind.name == "kDLExtDev"


SPANNED = [
    ((2, 3), (3, 1), 6),
    ((3, 2), (1, 3), 6),
    ((2, 2), (5, 2), 8),
    ((4, 2), (0, 1), 2),
    ((0, 3), (3, 1), 0),
    ((), (), 1),
]


def test_memory_that_a_tensor_spans(package: Package) -> None:
    """Queues carry this much, and give the tensor its strides again."""
    sharing = package.sharing
    sharing._NAME = "cpu"
    for size, stride, length in SPANNED:
        tensor = torch.arange(10.0)[1:].as_strided(size, stride, 1)
        spanned = sharing._spanned(tensor)
        assert (spanned.numel(), spanned.dim()) == (length, 1)
        made = sharing._rebuild_tensor(torch.Tensor, spanned.clone, (), 0, size, stride, True)
        assert (made.stride(), made.requires_grad) == (stride, True)
        assert torch.equal(made, tensor)


def test_parameters_stay_parameters(package: Package) -> None:
    package.sharing._NAME = "cpu"
    kind, memory = torch.nn.Parameter, torch.ones(2)
    made = package.sharing._rebuild_tensor(kind, memory.clone, (), 0, (2,), (1,), False)
    assert (type(made), made.requires_grad) == (kind, False)


def test_shared_memory_that_is_not_shared(package: Package) -> None:
    package.set_constants(DISPLAY_NAME="Foo Accelerator")
    package.sharing._NAME = "cpu"
    package.sharing.install()
    with pytest.warns(UserWarning, match="memory of Foo Accelerator"):
        torch.ones(1).share_memory_()


def test_operators_of_torchvision_under_autocast(package: Package) -> None:
    """They compute in float32 and return the type of the first argument, except integers."""
    package.torchvision._NAME = "cpu"
    seen: list[Any] = []

    def operator(*arguments: Any) -> Any:
        seen.extend(getattr(one, "dtype", one) for one in arguments)
        return arguments[0] * 2, torch.ones(1, dtype=torch.int64)

    half, double = torch.ones(1, dtype=torch.float16), torch.ones(1, dtype=torch.float64)
    values, indices = package.torchvision._in_float32(operator)(half, double, 0.5)
    assert seen == [torch.float32, torch.float64, 0.5]
    assert (values.dtype, indices.dtype) == (torch.float16, torch.int64)
    single = package.torchvision._in_float32(lambda one: one.long())
    assert single(half).dtype == torch.int64


DEVICES = [
    (1, [0]),
    ("2", [0, 1]),
    (-1, [0, 1]),
    ("0, 1,", [0, 1]),
    ([1], [1]),
    (3, None),
    ([], None),
    ("0,2", None),
    (0, None),
]


def test_devices_for_lightning(package: Package) -> None:
    accelerator: Any = package.lightning._accelerator(object)
    for asked, chosen in DEVICES:
        if chosen is not None:
            assert accelerator.parse_devices(asked) == chosen
        else:
            with pytest.raises(ValueError, match="the foo devices"):
                accelerator.parse_devices(asked)


#: A strategy, devices and the number of machines; whether one device is enough for them.
ENOUGH = [
    ("auto", "auto", 1, True),
    (None, "1", 1, True),
    ("foo", [1], 1, True),
    (None, "0,", 1, True),
    ("auto", 2, 1, False),
    ("auto", -1, 1, False),
    ("auto", "0,1", 1, False),
    ("ddp", "auto", 1, False),
    ("auto", "auto", 2, False),
    (types.SimpleNamespace(_root_device="cpu"), "auto", 1, False),
]


def test_lightning_takes_the_device_by_default(package: Package) -> None:
    for strategy, devices, nodes, is_enough in ENOUGH:
        asked = types.SimpleNamespace(
            _strategy_flag=strategy, _devices_flag=devices, _num_nodes_flag=nodes
        )
        assert package.lightning._meets_request(asked) == is_enough, (strategy, devices, nodes)


def test_half_precision_in_accelerate(package: Package) -> None:
    """The list of devices is a constant of the function; without one the caller is warned."""

    class Accelerator:
        def __init__(self, device: str) -> None:
            self.accepts = device in ("cuda", "npu", "xpu")

    package.set_constants(AMP_DTYPES=["float16"])
    module = types.SimpleNamespace(Accelerator=Accelerator)
    package.hugging_face.allow_half(module)
    assert [Accelerator(name).accepts for name in ("foo", "cuda", "cpu")] == [True, True, False]
    other = types.SimpleNamespace(Accelerator=type("Accelerator", (), {"__init__": lambda _: None}))
    with pytest.raises(LookupError, match="fp16"):
        package.hugging_face.allow_half(other)


def test_devices_for_safetensors(package: Package) -> None:
    package.library.current = 1
    names = ["foo", "foo:0", "cuda:0", "cpu", 1, "foo:x"]
    assert [package.hugging_face._number(name) for name in names] == [1, 0, *names[2:]]


def test_inductor_names_the_backends_that_work(package: Package) -> None:
    def known(device: str) -> str:
        return f"code for {device}"

    module = types.SimpleNamespace(
        device_codegens={}, get_wrapper_codegen_for_device=known, get_device_op_overrides=known
    )
    package.dynamo._backends = lambda: ["foo_compiler"]
    package.dynamo.explain_missing_code_generator(module)
    assert module.get_device_op_overrides("cpu") == "code for cpu"
    with pytest.raises(RuntimeError, match='"aot_eager", "foo_compiler"'):
        module.get_wrapper_codegen_for_device("foo")
    module.device_codegens["foo"] = "a generator"
    assert module.get_wrapper_codegen_for_device("foo") == "code for foo"


@pytest.mark.parametrize(
    ("fallback", "dtypes", "supported"),
    [("cpu", ["float32"], True), ("error", ["float32"], False), ("error", None, True)],
)
def test_what_test_suites_are_told(
    package: Package, fallback: str, dtypes: list[str] | None, supported: bool
) -> None:
    """Without the fallback, only operators and dtypes with a kernel count."""
    package.set_constants(
        FALLBACK=fallback,
        KERNEL_DTYPES=dtypes,
        KERNELS=["mul.out", "add_.Tensor", "add.out", "_fused_adam_", "relu"],
    )
    package.library.answers.update(
        capabilities=(["memory_info", "streams", "events"], [1, 1, 0], [""] * 3),
        memory_info=lambda index: (1 << 30, (index + 2) << 30),
    )
    testing = package.testing
    assert testing._operators_with_kernels() == ["_fused_adam", "add", "mul", "relu"]
    manifest = testing.torchcts_manifest(device_name="other")
    assert (torch.float64 in manifest["supported_dtypes"]) == supported
    assert manifest["supported_dtypes"][torch.float32]
    assert manifest["capabilities"]["sparse"] == (fallback == "cpu")
    assert manifest["capabilities"]["fused_optimizer"]
    assert not manifest["capabilities"]["streams"]
    assert manifest["hardware"]["device_memory_gb"] == [2.0, 3.0]
    assert manifest["device_name"] == "other"
