# SPDX-License-Identifier: Apache-2.0
"""torch.profiler with the device: its time, its memory and the backend's own ranges."""

import contextlib
import json
import threading

import pytest
import torch
from backend import RELEASE
from torch.autograd import profiler as autograd_profiler
from torch.profiler import ProfilerActivity, profile, record_function, schedule

BOTH = (ProfilerActivity.CPU, ProfilerActivity.PrivateUse1)
KINDS_OF_WORK = ("kernel", "gpu_memcpy")  # what a trace calls work of a device
times = pytest.mark.skipif(
    RELEASE < (2, 8), reason="before PyTorch 2.8 profiles have no times of devices outside its tree"
)
rows = pytest.mark.skipif(
    not hasattr(autograd_profiler.ProfilerState, "KINETO_PRIVATEUSE1"),
    reason="before PyTorch 2.12 devices outside its tree have no trace",
)


def device_time(event, own=False):
    """Microseconds on the device, by the names of all releases."""
    name = "self_device_time_total" if own else "device_time_total"
    return getattr(event, name)


def averages(prof):
    return {event.key: event for event in prof.key_averages()}


@pytest.fixture
def big(device):
    return torch.ones(1 << 20, device=device)


@contextlib.contextmanager
def recorded(module, **options):
    with profile(activities=BOTH, **options) as prof:
        yield prof
        module.synchronize()


@times
@pytest.mark.needs("timing")
class TestDeviceTime:
    def test_of_copies(self, module, big):
        target = torch.zeros_like(big)
        with recorded(module) as prof:
            for _ in range(3):
                target.copy_(big)
        copies = averages(prof)["aten::copy_"]
        assert copies.count == 3 or copies.device_type != torch.autograd.DeviceType.CPU
        assert sum(device_time(event, own=True) for event in prof.key_averages()) > 0

    def test_of_an_operator(self, module, big):
        with recorded(module) as prof:
            big + 1
        assert device_time(averages(prof)["aten::add"]) > 0

    @rows
    def test_is_no_more_than_passed(self, module, big):
        """The host's row of an operator has its time on the device as well as the device's."""
        target = torch.zeros_like(big)
        with recorded(module) as prof:
            for _ in range(20):
                target.copy_(big)
        total = sum(
            device_time(event, own=True)
            for event in prof.key_averages()
            if event.device_type != torch.autograd.DeviceType.CPU
        )
        spans = [event.time_range for event in prof.events()]
        wall = max(span.end for span in spans) - min(span.start for span in spans)
        assert 0 < total <= wall * 1.05

    def test_in_a_range(self, module, big):
        with recorded(module) as prof:
            with record_function("outer"):
                with record_function("inner"):
                    big + 1
        keys = averages(prof)
        assert {"outer", "inner"} <= set(keys)
        assert device_time(keys["outer"]) >= device_time(keys["inner"]) > 0

    def test_cpu_alone_has_none(self, module, big):
        with profile(activities=[ProfilerActivity.CPU]) as prof:
            big + 1
            module.synchronize()
        assert all(device_time(event) == 0 for event in prof.key_averages())

    def test_of_backward(self, module, device):
        x = torch.randn(64, 64, device=device, requires_grad=True)
        with recorded(module) as prof:
            (x @ x).sum().backward()
        keys = averages(prof)
        assert any("Backward" in key for key in keys)
        assert sum(device_time(event, own=True) for event in keys.values()) > 0

    def test_legacy(self, name, module, big):
        with autograd_profiler.profile(use_device=name, use_kineto=False) as prof:
            big + 1
            module.synchronize()
        assert device_time(averages(prof)["aten::add"]) > 0

    def test_by_the_autograd_profiler(self, name, module, big):
        with autograd_profiler.profile(use_device=name) as prof:
            big + 1
            module.synchronize()
        assert device_time(averages(prof)["aten::add"]) > 0


@pytest.mark.needs("timing")
class TestTrace:
    def trace(self, prof, tmp_path):
        path = tmp_path / "trace.json"
        prof.export_chrome_trace(str(path))
        return json.loads(path.read_text())["traceEvents"]

    @rows
    def test_has_the_device(self, module, big, tmp_path):
        with recorded(module) as prof:
            big + 1
        events = self.trace(prof, tmp_path)
        found = [event for event in events if event.get("cat") in KINDS_OF_WORK]
        assert found
        for event in found:
            assert event["dur"] >= 0
            assert event["args"]["device"] == 0

    @rows
    def test_says_which_device_and_stream(self, module, other, tmp_path):
        stream = torch.Stream(device=other)
        with recorded(module) as prof:
            with module.stream(stream):
                torch.ones(1 << 16, device=other).copy_(torch.zeros(1 << 16, device=other))
            module.synchronize(other)
        events = self.trace(prof, tmp_path)
        places = {
            (event["args"]["device"], event["args"]["stream"])
            for event in events
            if event.get("cat") in KINDS_OF_WORK
        }
        assert (1, stream.stream_id) in places

    @rows
    def test_work_is_of_the_tensors_device(self, module, other, tmp_path):
        """And not of the current one, which is another."""
        x = torch.ones(1 << 20, device=other)
        y = torch.empty_like(x)
        with recorded(module) as prof:
            for _ in range(3):
                torch.sin(x, out=y)
                y.copy_(x)
            module.synchronize(other)
        rows = [event for event in self.trace(prof, tmp_path) if event.get("cat") in KINDS_OF_WORK]
        assert {event["args"]["device"] for event in rows} == {1}
        assert sum("sin" in event["name"] for event in rows) == 3
        assert not [event["name"] for event in rows if event["name"].startswith("_")]

    @rows
    def test_work_of_the_cpu_is_none(self, module, big, tmp_path):
        x = torch.ones(1 << 16)
        with recorded(module) as prof:
            torch.sin(x).sort()
            x.view(-1).add_(1)
            big.view(-1)
            torch.cos(big)
        rows = [event for event in self.trace(prof, tmp_path) if event.get("cat") in KINDS_OF_WORK]
        names = [event["name"] for event in rows]
        assert any("cos" in name for name in names)
        assert not [one for one in names if "sin" in one or "sort" in one or "view" in one]

    @rows
    def test_steps(self, module, big, tmp_path):
        seen = []
        with profile(
            activities=BOTH,
            schedule=schedule(wait=1, warmup=1, active=2),
            on_trace_ready=lambda prof: seen.append(self.trace(prof, tmp_path)),
        ) as prof:
            for _ in range(4):
                big + 1
                module.synchronize()
                prof.step()
        assert len(seen) == 1
        assert sum(event.get("cat") == "kernel" for event in seen[0]) >= 2

    @rows
    def test_again(self, module, big, tmp_path):
        for _ in range(2):
            with recorded(module) as prof:
                big + 1
            events = self.trace(prof, tmp_path)
            assert any(event.get("cat") == "kernel" for event in events)

    @times
    def test_threads(self, module, device, big):
        with recorded(module) as prof:
            thread = threading.Thread(target=lambda: big * 2)
            thread.start()
            thread.join()
            big + 1
        assert device_time(averages(prof)["aten::add"]) > 0

    def test_table(self, module, big):
        with recorded(module, record_shapes=True, with_stack=True) as prof:
            big + 1
        table = prof.key_averages(group_by_input_shape=True).table(sort_by="device_time_total")
        assert "aten::add" in table
        assert "[[1048576], []" in table


class TestOwnRanges:
    @pytest.mark.needs("fallback")
    def test_of_the_fallback(self, module, device):
        x = torch.randn(8, device=device)
        with recorded(module) as prof:
            torch.special.entr(x)
        fallbacks = [key for key in averages(prof) if key.startswith("backendkit::fallback ")]
        assert any("entr" in key for key in fallbacks)

    def test_of_segments(self, module, device):
        module.empty_cache()
        with recorded(module) as prof:
            x = torch.empty(30 << 20, dtype=torch.uint8, device=device)
            del x
            module.empty_cache()
        keys = averages(prof)
        assert keys["backendkit::allocate_segment"].count >= 1
        assert keys["backendkit::free_segment"].count >= 1
        assert keys["backendkit::empty_cache"].count >= 1

    def test_memory(self, module, device):
        with recorded(module, profile_memory=True) as prof:
            x = torch.empty(1 << 20, dtype=torch.uint8, device=device)
        # One of them is the device's row of the operator, where PyTorch asks for these.
        events = [event for event in prof.key_averages() if event.key == "aten::empty"]
        assert sum(event.self_device_memory_usage for event in events) == 1 << 20
        del x

    def test_memory_given_back(self, module, device):
        x = torch.empty(1 << 20, dtype=torch.uint8, device=device)
        with recorded(module, profile_memory=True) as prof:
            with record_function("free"):
                del x
        total = sum(event.self_device_memory_usage for event in prof.key_averages())
        assert total == -(1 << 20)
