# SPDX-License-Identifier: Apache-2.0
"""Streams and events as the device's module has them."""

import pytest
import torch
from stream_tools import current

pytestmark = pytest.mark.needs("streams")


def test_a_stream_is_pytorch_s_own(module, device, other):
    stream = module.Stream()
    assert type(stream) is torch.Stream
    assert stream.device == device
    assert isinstance(stream, module.Stream)
    assert not isinstance(torch.ones(2), module.Stream)
    assert module.Stream(other).device == other
    assert module.Stream(device=1, priority=-1).device == other
    assert module.Stream().stream_id not in (0, stream.stream_id)


def test_the_current_stream(module, device, other):
    assert module.current_stream() == module.default_stream() == current(device)
    assert isinstance(module.current_stream(), module.Stream)
    assert module.current_stream(other).device == other
    stream = module.Stream()
    with module.stream(stream) as entered:
        assert entered is stream
        assert module.current_stream() == stream == current(device)
        assert module.current_stream(other) == module.default_stream(other)
        with module.stream(None) as nothing:
            assert nothing is None
            assert module.current_stream() == stream
    assert module.current_stream() == module.default_stream()


def test_a_stream_of_another_device_makes_it_current(module, device, other):
    stream = module.Stream(other)
    with module.stream(stream):
        assert module.current_device() == other.index
        assert module.current_stream() == stream
        assert torch.ones(2, device=device.type).device == other
    assert module.current_device() == device.index
    assert module.current_stream(other) == module.default_stream(other)


def test_a_context_is_left_by_an_error_and_entered_again(module):
    stream = module.Stream()
    context = module.stream(stream)
    for _ in range(2):
        with pytest.raises(KeyError), context:
            with context:
                assert module.current_stream() == stream
            assert module.current_stream() == stream
            raise KeyError
        assert module.current_stream() == module.default_stream()


def test_set_stream(module, other):
    stream = module.Stream(other)
    module.set_stream(stream)
    try:
        assert module.current_stream(other) == stream
        assert module.current_device() == other.index
        module.set_stream(None)
        assert module.current_stream() == stream
    finally:
        module.set_stream(module.default_stream(other))
    assert module.current_stream(other) == module.default_stream(other)


@pytest.mark.needs("events", "timing")
def test_events(module, device):
    start, end = (module.Event(enable_timing=True, external=False) for _ in range(2))
    assert type(start) is torch.Event
    assert isinstance(start, module.Event)
    stream = module.Stream()
    stream.record_event(start)
    with module.stream(stream):
        tensor = torch.ones(1000, device=device).clone()
    end.record(stream)
    module.current_stream().wait_event(end)
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    assert tensor.cpu().sum() == 1000


@pytest.mark.needs("devices", "streams")
def test_a_stream_that_is_none_changes_nothing(module):
    stream = torch.Stream(stream_id=999, device_index=1, device_type=20)
    before = module.current_stream(1)
    with pytest.raises(RuntimeError):
        with module.stream(stream):
            pass
    assert module.current_device() == 0
    assert module.current_stream(1) == before


def test_what_cannot_be_is_said(module, name, beyond, display_name):
    with pytest.raises(NotImplementedError, match=f"an event of {display_name} cannot be shared"):
        module.Event(interprocess=True)
    with pytest.raises(ValueError, match="there is no device"):
        module.Stream(beyond + 5)
    with pytest.raises(ValueError, match="expected a"):
        module.current_stream("cpu")
    with pytest.raises(ValueError, match="there is no device"):
        module.default_stream(beyond)
