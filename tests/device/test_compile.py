# SPDX-License-Identifier: Apache-2.0
"""torch.compile, fake tensors and torch.export with the device.

`PyTorch:` in a reason says that PyTorch breaks the graph for every device, or for all but its own.
"""

import importlib
import os
import subprocess
import sys
import textwrap
import warnings

import pytest
import torch
from backend import RELEASE
from torch import nn


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def check(function, *arguments, backend="eager", **options):
    """The function gives the same compiled as one graph, and not; returns what it gives."""
    wanted = function(*arguments)
    compiled = torch.compile(function, backend=backend, fullgraph=True, **options)
    found = compiled(*arguments)
    torch.testing.assert_close(found, wanted)
    assert not torch._dynamo.utils.counters["graph_break"]
    return found


def breaks(function, *arguments):
    """How many graph breaks there are where they are allowed; the result is right all the same."""
    wanted = function(*arguments)
    found = torch.compile(function, backend="eager")(*arguments)
    torch.testing.assert_close(found, wanted)
    return sum(torch._dynamo.utils.counters["graph_break"].values())


def run_fresh(code, **environment):
    """Runs a program in a new process; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class TestImport:
    def test_torch_alone_imports_no_dynamo(self):
        """Nor anything that PyTorch without the package does not; 2.5 has Inductor's config."""
        code = """
            import sys, torch
            print([one for one in sys.modules if one.startswith(("torch._dynamo", "torch._inductor",
                   "lightning", "accelerate"))])
        """
        imported = run_fresh(code)
        assert "torch._dynamo" not in imported
        assert imported == run_fresh(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")

    def test_use_of_the_device_imports_no_dynamo(self, name):
        code = f"""
            import sys, torch
            with torch.{name}.device(0): torch.ones(2, device="{name}") + 1
            torch.{name}.synchronize()
            print("torch._dynamo" in sys.modules)
        """
        assert run_fresh(code) == "False"

    def test_the_interface_is_there_with_dynamo(self, name):
        code = f"""
            import sys, torch
            assert any("_lazy" in type(one).__module__ for one in sys.meta_path)
            import torch._dynamo
            from torch._dynamo.device_interface import get_interface_for_device
            print(get_interface_for_device("{name}").__name__)
            names = ("torch._dynamo", "torch._dynamo.device_interface")
            print(any(getattr(one, "_name", "") in names for one in sys.meta_path))
            print(type(torch._dynamo.__loader__).__name__)
            print(type(torch._dynamo.__spec__.loader).__name__)
        """
        expected = f"{name.capitalize()}Interface\nFalse\nSourceFileLoader\nSourceFileLoader"
        assert run_fresh(code) == expected

    def test_of_the_interface_alone(self, name):
        code = f"""
            import torch, torch._dynamo.device_interface as interface
            print(interface.get_interface_for_device(torch.device("{name}", 0)).device_count() > 0)
        """
        assert run_fresh(code) == "True"

    def test_in_threads(self, name):
        code = f"""
            import threading, torch
            seen = []
            def work():
                import torch._dynamo
                from torch._dynamo.device_interface import get_interface_for_device
                seen.append(get_interface_for_device("{name}"))
            threads = [threading.Thread(target=work) for _ in range(4)]
            [one.start() for one in threads]; [one.join() for one in threads]
            print(len(seen), len(set(seen)))
        """
        assert run_fresh(code) == "4 1"

    def test_an_interface_of_the_vendor_wins(self, name):
        code = f"""
            import torch
            from torch._dynamo.device_interface import *
            from torch._dynamo.device_interface import get_interface_for_device
            class Own(get_interface_for_device("{name}")): pass
            register_interface_for_device("{name}", Own)
            torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2, device="{name}"))
            print(get_interface_for_device("{name}") is Own)
        """
        assert run_fresh(code) == "True"

    def test_what_a_vendor_registers_lazily_comes_later(self, name):
        code = f"""
            import torch
            def register(module):
                class Own(module.DeviceInterface): pass
                module.register_interface_for_device("{name}", Own)
            torch.{name}.when_imported("torch._dynamo.device_interface", register)
            from torch._dynamo.device_interface import get_interface_for_device
            print(get_interface_for_device("{name}").__name__)
        """
        assert run_fresh(code) == "Own"


class TestWhenImported:
    def module(self, tmp_path, monkeypatch, text="value = 1\n"):
        (tmp_path / "a_module_of_the_test.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "a_module_of_the_test", raising=False)
        return "a_module_of_the_test"

    def test_calls_once(self, module, tmp_path, monkeypatch):
        name, seen = self.module(tmp_path, monkeypatch), []
        before = list(sys.meta_path)
        module.when_imported(name, seen.append)
        assert seen == []
        made = importlib.import_module(name)
        assert seen == [made]
        importlib.import_module(name)
        assert seen == [made]
        assert sys.meta_path == before
        assert type(made.__loader__).__module__ != f"{module.__name__.partition('.')[0]}._lazy"

    def test_of_one_that_is_there(self, module, tmp_path, monkeypatch):
        name, seen = self.module(tmp_path, monkeypatch), []
        made = importlib.import_module(name)
        module.when_imported(name, seen.append)
        assert seen == [made]

    def test_several(self, module, tmp_path, monkeypatch):
        name, seen = self.module(tmp_path, monkeypatch), []
        module.when_imported(name, lambda one: seen.append("first"))
        module.when_imported(name, lambda one: seen.append("second"))
        importlib.import_module(name)
        assert sorted(seen) == ["first", "second"]

    def test_an_error_is_a_warning(self, module, tmp_path, monkeypatch):
        name = self.module(tmp_path, monkeypatch)

        def fail(one):
            raise ValueError("no such thing")

        module.when_imported(name, fail)
        with pytest.warns(RuntimeWarning, match="ValueError: no such thing"):
            assert importlib.import_module(name).value == 1

    def test_an_error_is_printed_where_warnings_are_exceptions(
        self, module, tmp_path, monkeypatch, capsys
    ):
        name = self.module(tmp_path, monkeypatch)
        module.when_imported(name, lambda one: one.no_such_thing)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert importlib.import_module(name).value == 1
        assert "could not set itself up" in capsys.readouterr().err

    def test_an_import_that_fails_may_be_tried_again(self, module, tmp_path, monkeypatch):
        name, seen = self.module(tmp_path, monkeypatch, "raise OSError('not yet')\n"), []
        module.when_imported(name, seen.append)
        with pytest.raises(OSError, match="not yet"):
            importlib.import_module(name)
        assert seen == []
        (tmp_path / f"{name}.py").write_text("value = 22\n")
        importlib.invalidate_caches()
        assert importlib.import_module(name).value == 22
        assert len(seen) == 1


class TestInterface:
    @pytest.fixture
    def interface(self, name):
        from torch._dynamo.device_interface import get_interface_for_device

        return get_interface_for_device(name)

    @pytest.mark.needs("devices")
    def test_devices(self, interface, module):
        assert interface.is_available()
        assert interface.device_count() == module.device_count()
        assert interface.current_device() == 0
        interface.set_device(1)
        assert module.current_device() == 1
        assert interface.exchange_device(0) == 1
        assert interface.maybe_exchange_device(-1) == 0
        assert module.current_device() == 0

    def test_by_index(self, interface, device):
        from torch._dynamo.device_interface import get_interface_for_device

        assert get_interface_for_device(device) is interface
        assert get_interface_for_device(str(device.type)) is interface

    @pytest.mark.needs("devices")
    def test_guard(self, interface, module):
        from torch._dynamo.device_interface import DeviceGuard

        with DeviceGuard(interface, 1):
            assert module.current_device() == 1
        assert module.current_device() == 0

    @pytest.mark.needs("devices")
    def test_device_context(self, interface, module):
        with interface.device(1):
            assert module.current_device() == 1
        assert module.current_device() == 0

    def test_streams(self, interface, module, streams):
        with interface.stream(streams[0]):
            assert interface.current_stream() == streams[0]
            assert interface.get_raw_stream(0) == streams[0].stream_id
        interface.set_stream(streams[1])
        assert module.current_stream() == streams[1]
        interface._set_stream_by_id(0, 0, 20)
        assert interface.get_raw_stream(0) == 0

    def test_facts(self, interface, module):
        assert interface.is_bf16_supported() == module.is_bf16_supported()
        assert interface.memory_allocated() == module.memory_allocated()
        interface.synchronize()

    @pytest.mark.needs("devices")
    def test_worker(self, interface):
        assert interface.Worker.current_device() == 0
        from torch._dynamo import device_interface

        interface.Worker.set_device(1)
        assert interface.Worker.current_device() == 1
        device_interface.caching_worker_current_devices.clear()
        assert interface.Worker.current_device() == 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
class TestOneGraph:
    def test_arithmetic(self, device, backend):
        check(lambda x: (x + 1).relu() @ x, torch.randn(4, 4, device=device), backend=backend)

    def test_to_the_device_and_back(self, name, backend):
        check(lambda x: (x.to(name) + 1).cpu(), torch.randn(3), backend=backend)
        check(lambda x: getattr(x, name)() * 2, torch.randn(3), backend=backend)

    def test_new_tensors(self, name, device, backend):
        x = torch.randn(4, device=device)
        check(lambda x: x + torch.ones(4, device=name), x, backend=backend)
        check(lambda x: x + torch.arange(4, device=x.device), x, backend=backend)

    def test_is_on_the_device(self, name, device, backend):
        x = torch.randn(4, device=device)
        check(lambda x: x + 1 if getattr(x, f"is_{name}") else x - 1, x, backend=backend)

    def test_in_place(self, device, backend):
        def function(x):
            y = x.clone()
            y.add_(1)
            y[0] = 2
            return y.mul_(x)

        check(function, torch.randn(4, 4, device=device), backend=backend)

    def test_an_input_changed(self, device, backend):
        x = torch.ones(4, device=device)
        torch.compile(lambda x: x.add_(1), backend=backend, fullgraph=True)(x)
        assert x.cpu().tolist() == [2, 2, 2, 2]

    def test_module_with_buffers(self, device, backend):
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()).to(device)
        x = torch.randn(8, 4, device=device)
        other = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()).to(device)
        other.load_state_dict(model.state_dict())
        compiled = torch.compile(model, backend=backend, fullgraph=True)
        torch.testing.assert_close(compiled(x), other(x))
        torch.testing.assert_close(model[1].running_mean, other[1].running_mean)

    @pytest.mark.needs("autocast")
    def test_autocast(self, name, module, device, backend):
        def function(x):
            with torch.autocast(name):
                return x @ x

        x = torch.randn(4, 4, device=device)
        assert check(function, x, backend=backend).dtype == module.get_amp_supported_dtype()[0]

    def test_dynamic_shapes(self, device, backend):
        compiled = torch.compile(lambda x: x * 2 + x.shape[0], backend=backend, dynamic=True)
        for size in (3, 5, 9):
            x = torch.randn(size, device=device)
            torch.testing.assert_close(compiled(x), x * 2 + size)
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1

    def test_dropout(self, device, module, backend):
        compiled = torch.compile(
            lambda x: nn.functional.dropout(x, 0.5), backend=backend, fullgraph=True
        )
        x = torch.ones(1000, device=device)
        module.manual_seed(3)
        first = compiled(x)
        module.manual_seed(3)
        again = compiled(x)
        assert torch.equal(first.cpu(), again.cpu())
        assert 300 < (first == 0).sum().item() < 700

    def test_training(self, device, backend):
        torch.manual_seed(0)
        models = [nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)) for _ in range(2)]
        models[1].load_state_dict(models[0].state_dict())
        models = [model.to(device) for model in models]
        step = torch.compile(models[0], backend=backend, fullgraph=True)
        x = torch.randn(16, 4, device=device)
        for forward, model in ((step, models[0]), (models[1], models[1])):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(3):
                optimizer.zero_grad()
                forward(x).square().mean().backward()
                optimizer.step()
        for ours, wanted in zip(models[0].parameters(), models[1].parameters()):
            torch.testing.assert_close(ours, wanted)

    def test_a_stream_as_input(self, device, module, streams, backend):
        if not hasattr(torch._dynamo.device_interface, "DeviceInterfaceMeta"):

            def function(x):
                with module.stream(streams[0]):
                    y = x + 1
                return y

            x = torch.ones(4, device=device)
            module.synchronize()
            compiled = torch.compile(function, backend=backend, fullgraph=True)
            y = compiled(x)
            streams[0].synchronize()
            assert y.cpu().tolist() == [2, 2, 2, 2]
        else:
            pytest.skip("PyTorch 2.5 traces only streams of CUDA and XPU")

    def test_no_stream(self, device, module, backend):
        def function(x):
            with module.stream(None):
                return x + 1

        check(function, torch.ones(4, device=device), backend=backend)

    @pytest.mark.needs("devices")
    @pytest.mark.skipif(RELEASE < (2, 6), reason="PyTorch 2.5 cannot guard on a call of a function")
    def test_current_device(self, device, module, backend):
        compiled = torch.compile(
            lambda x: x + module.current_device(), backend=backend, fullgraph=True
        )
        x = torch.zeros(2, device=device)
        assert compiled(x).cpu().tolist() == [0, 0]
        module.set_device(1)
        assert compiled(x).cpu().tolist() == [1, 1]

    @pytest.mark.skipif(RELEASE < (2, 6), reason="PyTorch 2.5 cannot guard on a call of a function")
    def test_what_there_is(self, device, module, backend):
        def function(x):
            return x + module.device_count() if module.is_available() else x

        check(function, torch.zeros(2, device=device), backend=backend)

    @pytest.mark.needs("devices")
    def test_device_context(self, name, device, module, backend):
        """Breaks the graph: AOT autograd would forget that the device was another one."""

        def function(x):
            with module.device(1):
                y = torch.ones(4, device=name)
            return y + 1

        found = torch.compile(function, backend=backend)(torch.ones(4, device=device))
        assert found.device.index == 1
        assert found.cpu().tolist() == [2, 2, 2, 2]
        assert module.current_device() == 0

    @pytest.mark.skipif(RELEASE < (2, 10), reason="PyTorch breaks the graph at torch.accelerator")
    def test_accelerator(self, device, backend):
        def function(x):
            if not torch.accelerator.is_available():
                return x
            y = x + torch.accelerator.current_device_index()
            torch.accelerator.synchronize()
            return y + torch.ones(4, device=torch.accelerator.current_accelerator())

        check(function, torch.ones(4, device=device), backend=backend)


class TestStreams:
    def trace(self, function, x):
        compiled = torch.compile(function, backend="eager", fullgraph=True)
        return compiled(x)

    @pytest.mark.skipif(RELEASE < (2, 10), reason="PyTorch breaks the graph at torch.accelerator")
    @pytest.mark.needs("events")
    def test_made_in_the_graph(self, device, module):
        def function(x):
            stream = module.Stream()
            stream.wait_stream(module.current_stream())
            with module.stream(stream):
                y = x + 1
            module.current_stream().wait_stream(stream)
            return y * 2

        assert self.trace(function, torch.ones(3, device=device)).cpu().tolist() == [4, 4, 4]

    @pytest.mark.skipif(
        RELEASE < (2, 8), reason="before PyTorch 2.8 a torch.Event cannot be traced"
    )
    def test_events(self, name, device):
        def function(x):
            y = x + 1
            event = torch.Event(device=name)
            event.record()
            event.synchronize()
            return y

        assert self.trace(function, torch.ones(3, device=device)).cpu().tolist() == [2, 2, 2]

    @pytest.mark.skipif(RELEASE < (2, 8), reason="before PyTorch 2.8 the graph does not contain it")
    def test_synchronize_stays_in_the_graph(self, device, module):
        graphs = []

        def backend(graph, inputs):
            graphs.append(graph.code)
            return graph.forward

        def function(x):
            y = x + 1
            module.synchronize()
            return y

        torch.compile(function, backend=backend, fullgraph=True)(torch.ones(2, device=device))
        assert "synchronize" in graphs[0]

    def test_the_result_is_right_with_breaks(self, device, module, streams):
        def function(x):
            with module.stream(streams[0]):
                y = x + 1
            streams[0].synchronize()
            module.synchronize()
            return y + module.memory_allocated() * 0

        x = torch.ones(3, device=device)
        module.synchronize()
        found = torch.compile(function, backend="eager")(x)
        assert found.cpu().tolist() == [2, 2, 2]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
class TestBetweenGraphs:
    """What the device's functions read and change is read and changed by each call."""

    @pytest.fixture
    def x(self, device):
        return torch.ones(4, device=device)

    def test_the_random_state(self, x, module, backend):
        def function(x):
            state = module.get_rng_state()
            first = torch.rand_like(x)
            module.set_rng_state(state)
            return first, torch.rand_like(x)

        compiled = torch.compile(function, backend=backend)
        for _ in range(3):
            first, second = compiled(x)
            torch.testing.assert_close(first, second, rtol=0, atol=0)

    def test_fork_rng(self, x, name, module, backend):
        def function(x, state):
            with torch.random.fork_rng(devices=[0], device_type=name):
                module.set_rng_state(state)
                return torch.rand_like(x)

        compiled = torch.compile(function, backend=backend)
        state = module.get_rng_state()
        wanted = torch.rand_like(x)
        for _ in range(3):
            before = module.get_rng_state()
            torch.testing.assert_close(compiled(x, state), wanted, rtol=0, atol=0)
            assert module.get_rng_state().equal(before)

    def test_the_seed(self, x, module, backend):
        compiled = torch.compile(lambda x: (x + 1, module.initial_seed()), backend=backend)
        for seed in (5, 6, 7):
            module.manual_seed(seed)
            assert compiled(x)[1] == seed

    def test_a_generator(self, x, device, module, backend):
        def function(x):
            generator = module.default_generators[device.index]
            return x + torch.rand(4, device=device, generator=generator), generator.initial_seed()

        compiled = torch.compile(function, backend=backend)
        for seed in (5, 6):
            module.manual_seed(seed)
            wanted = 1 + torch.rand(4, device=device)
            module.manual_seed(seed)
            found, told = compiled(x)
            torch.testing.assert_close(found, wanted)
            assert told == seed

    def test_statistics_of_memory(self, x, device, module, backend):
        def function(x):
            module.reset_peak_memory_stats()
            return x + 1, module.max_memory_allocated(), len(module.memory_snapshot())

        compiled = torch.compile(function, backend=backend)
        kept = []
        for _ in range(3):
            kept.append(torch.ones(10_000_000, device=device))
            torch.ones(10_000_000, device=device)
            now = module.memory_allocated()
            _, peak, segments = compiled(x)
            assert now <= peak < now + 10_000_000
            assert segments == len(module.memory_snapshot())

    def test_the_current_stream(self, x, module, streams, backend):
        def function(x, stream):
            module.set_stream(stream)
            return x + 1

        compiled = torch.compile(function, backend=backend)
        default = module.default_stream()
        module.synchronize()
        for stream in (*streams, default):
            compiled(x, stream)
            assert module.current_stream() == stream

    def test_one_graph_is_refused(self, x, module, backend):
        def function(x):
            module.reset_peak_memory_stats()
            return x + 1

        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(function, backend=backend, fullgraph=True)(x)


class TestLimits:
    """Where PyTorch breaks the graph or refuses, for this device as for others."""

    @pytest.mark.parametrize("seed", ["torch", "device"])
    def test_seeding_breaks_the_graph(self, device, module, seed):
        function = torch.manual_seed if seed == "torch" else module.manual_seed

        def seeded(x):
            function(3)
            return torch.rand(4, device=device) + x

        assert breaks(seeded, torch.zeros(4, device=device)) > 0

    def test_a_default_device_in_the_graph(self, name, device):
        def function(x):
            with torch.device(name):
                return torch.ones(4) + x

        x = torch.zeros(4, device=device)
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(function, backend="eager", fullgraph=True)(x)
        torch._dynamo.reset()
        breaks(function, x)

    def test_a_default_device_around_it(self, name, device):
        with torch.device(name):
            found = check(lambda x: torch.ones(4) + x, torch.zeros(4))
        assert found.device == device

    def test_checkpointed_dropout(self, device):
        """PyTorch saves the random state of CUDA, XPU, HPU and the CPU alone in a graph."""
        from torch.utils.checkpoint import checkpoint

        def function(x):
            return checkpoint(lambda y: nn.functional.dropout(y, 0.5).sin(), x, use_reentrant=False)

        x = torch.ones(4, device=device, requires_grad=True)
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        with pytest.raises(Exception, match="Backend not supported for"):
            compiled(x)

    def test_checkpoint_without_randomness(self, device):
        from torch.utils.checkpoint import checkpoint

        def function(x):
            return checkpoint(lambda y: (y * y).sin(), x, use_reentrant=False)

        x = torch.randn(4, device=device, requires_grad=True)
        torch.compile(function, backend="aot_eager", fullgraph=True)(x).sum().backward()
        torch.testing.assert_close(x.grad, (2 * x * (x * x).cos()).detach())

    def test_inductor_needs_a_code_generator(self, name, device):
        compiled = torch.compile(lambda x: x + 1)
        with pytest.raises(Exception, match=rf'(?s)no code generator for {name}. .*"aot_eager"'):
            compiled(torch.ones(2, device=device))


class TestFake:
    def test_tensors(self, name):
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            x = torch.empty(3, 4, device=name)
            y = (x @ x.t()).relu().sum(0)
        assert y.shape == (3,)
        assert y.device == torch.device(name, 0)

    def test_of_a_tensor_there_is(self, device):
        from torch._subclasses.fake_tensor import FakeTensorMode

        mode = FakeTensorMode()
        x = mode.from_tensor(torch.ones(2, 3, device=device))
        with mode:
            assert (x * 2).device == device
            assert x.cpu().device.type == "cpu"

    def test_module_made_fake_and_then_real(self, name, device):
        with torch.device("meta"):
            model = nn.Linear(3, 2)
        assert model.weight.is_meta
        model = model.to_empty(device=name)
        assert model.weight.device == device

    def test_make_fx(self, device):
        from torch.fx.experimental.proxy_tensor import make_fx

        x = torch.randn(3, device=device)
        for mode in ("real", "fake", "symbolic"):
            graph = make_fx(lambda x: x.sin() + torch.ones_like(x), tracing_mode=mode)(x)
            torch.testing.assert_close(graph(x), x.sin() + 1)

    def test_symbolic_trace(self, device):
        class Model(nn.Module):
            def forward(self, x):
                return x.relu() + 1

        x = torch.randn(3, device=device)
        torch.testing.assert_close(torch.fx.symbolic_trace(Model())(x), x.relu() + 1)

    def test_functionalize(self, device):
        def function(x):
            y = x.clone()
            y.view(-1).add_(1)
            return y

        x = torch.randn(2, 2, device=device)
        torch.testing.assert_close(torch.func.functionalize(function)(x), x + 1)


class TestExport:
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 2)
            self.register_buffer("scale", torch.tensor(2.0))

        def forward(self, x):
            return self.linear(x).relu() * self.scale

    def test_runs_on_the_device(self, device):
        model, x = self.Model().to(device), torch.randn(3, 4, device=device)
        program = torch.export.export(model, (x,))
        torch.testing.assert_close(program.module()(x), model(x))

    def test_dynamic_shapes(self, device):
        model, x = self.Model().to(device), torch.randn(3, 4, device=device)
        batch = torch.export.Dim("batch", min=2)
        program = torch.export.export(model, (x,), dynamic_shapes={"x": {0: batch}})
        more = torch.randn(7, 4, device=device)
        torch.testing.assert_close(program.module()(more), model(more))

    def test_saved_and_loaded(self, device, tmp_path):
        model, x = self.Model().to(device), torch.randn(3, 4, device=device)
        program = torch.export.export(model, (x,))
        torch.export.save(program, tmp_path / "model.pt2")
        loaded = torch.export.load(tmp_path / "model.pt2")
        found = loaded.module()(x)
        assert found.device == device
        torch.testing.assert_close(found, model(x))

    def test_decomposed(self, device):
        model, x = self.Model().to(device), torch.randn(3, 4, device=device)
        program = torch.export.export(model, (x,)).run_decompositions()
        torch.testing.assert_close(program.module()(x), model(x))


class TestCustom:
    def test_operator_with_a_fake_kernel(self, device):
        @torch.library.custom_op("backendkit_test::twice", mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @twice.register_fake
        def _(x):
            return torch.empty_like(x)

        check(lambda x: twice(x) + 1, torch.randn(3, device=device), backend="aot_eager")

    def test_backend_of_a_vendor(self, device):
        """Gets a graph of ATen's operators to compile, with tensors that say where they are."""
        from torch._dynamo.backends.common import aot_autograd

        seen = []

        def compile_graph(graph, inputs):
            seen.append([node.target for node in graph.graph.nodes if node.op == "call_function"])
            assert all(one.device == device for one in inputs)
            return graph.forward

        backend = aot_autograd(fw_compiler=compile_graph)
        x = torch.randn(3, device=device)
        compiled = torch.compile(lambda x: x.sin() + 1, backend=backend, fullgraph=True)
        torch.testing.assert_close(compiled(x), x.sin() + 1)
        assert seen == [[torch.ops.aten.sin.default, torch.ops.aten.add.Tensor]]
