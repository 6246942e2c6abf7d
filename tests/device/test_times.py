# SPDX-License-Identifier: Apache-2.0
"""Where the time went: copies and fallbacks in the report, and its page."""

import pytest
import torch
from backend import RELEASE
from stream_tools import in_threads, on

#: Kernels of a vendor in place of BackendKit's copies, which are the ones that count.
COPIES = {"copy_", "_copy_from", "_copy_from_and_resize", "_to_copy", "_local_scalar_dense"}
BYTES = 4 * 1024


@pytest.fixture
def here():
    return torch.ones(1024)


@pytest.fixture
def there(device, here):
    return here.to(device)


@pytest.fixture
def copies(module, here, there):
    """A function that tells calls and bytes of copies since the last question, by their way."""
    if own := COPIES & set(module._build.KERNELS):
        pytest.skip(f"this backend has kernels of its own for copies: {sorted(own)}")

    def ask():
        report = module.fallback_report()
        module.reset_fallback_report()
        assert all(one.total_ms > 0 for one in report.copies)
        assert all(one.mean_ms == one.total_ms / one.calls for one in report.copies)
        return {one.way: (one.calls, one.bytes_copied) for one in report.copies}

    ask()
    return ask


def test_copies_count_by_their_way(device, copies, here, there):
    target = there.clone()
    copies()
    here.to(device)
    there.copy_(here)
    assert copies() == {"host to device": (2, 2 * BYTES)}
    there.cpu()
    here.copy_(there)
    assert copies() == {"device to host": (2, 2 * BYTES)}
    there[3].item()
    assert copies() == {"device to host": (1, 4)}
    target.copy_(there)
    assert copies() == {"within a device": (1, BYTES)}
    assert copies() == {}


def test_copies_between_devices_count_once(other, copies, there):
    target = torch.empty(1024, device=other)
    copies()
    target.copy_(there)
    assert copies() == {"between devices": (1, BYTES)}


def test_a_copy_that_converts_counts_once(copies, here, there):
    target = torch.empty(512, dtype=torch.float64)
    copies()
    target.copy_(there[::2])
    there[::2].copy_(target)
    assert copies() == {"device to host": (1, 2 * BYTES // 2), "host to device": (1, BYTES // 2)}


def test_what_copies_nothing_does_not_count(device, copies, here, there):
    there.copy_(there)
    there[:0].copy_(here[:0])
    there.view(-1)
    with pytest.raises(RuntimeError):
        there.copy_(here[:3])
    assert copies() == {}


@pytest.mark.needs("fallback")
def test_a_fallback_s_copies_are_its_own(module, copies, there):
    """They are a part of the operator's time."""
    values = there * 0
    copies()
    for _ in range(3):
        values.logit_()
    report = module.fallback_report()
    (row,) = [one for one in report.rows if one.operator.startswith("aten::logit")]
    assert report.copies == []
    assert 0 < report.copying_ms[row.operator] < row.total_ms


def test_copies_of_threads_count(copies, here, there):
    in_threads(lambda _: [there.copy_(here) for _ in range(50)])
    assert copies() == {"host to device": (400, 400 * BYTES)}


def test_timed_copies_wait(module, copies, streams, work):
    """In a block a copy's time is that of the device, so its work has completed."""
    stream = streams[0]
    copies()
    work(stream)
    with module.timed_operators(), on(stream):
        work.target.copy_(work.source)
        assert stream.query()
    assert copies()["within a device"][0] == work.times + 1


@pytest.mark.needs("graphs")
@pytest.mark.skipif(RELEASE < (2, 12), reason="PyTorch has no graphs before 2.12")
def test_timing_leaves_graphs_alone(module, copies, streams, there):
    target = torch.zeros_like(there)
    torch.accelerator.synchronize()
    copies()
    graph = torch.accelerator.Graph()
    with module.timed_operators(), on(streams[0]), graph:
        target.copy_(there)
    assert copies() == {}
    with on(streams[0]):
        graph.replay()
    torch.accelerator.synchronize()
    assert torch.equal(target.cpu(), there.cpu())


def test_blocks_can_be_nested_and_left_by_an_error(module, there):
    block = module.timed_operators()
    module.reset_fallback_report()
    with pytest.raises(ZeroDivisionError), block, block:
        there.clone()
        1 / 0  # noqa: B018
    report = module.fallback_report()
    assert 0 < report.timed_ms < report.span_ms
    there.clone()
    assert module.fallback_report().timed_ms == report.timed_ms
    module.reset_fallback_report()
    assert module.fallback_report().timed_ms == 0


@pytest.mark.needs("fallback")
def test_the_page(module, copies, there, tmp_path):
    """It has what the report has; the same report gives the same bytes."""
    copies()
    with module.timed_operators():
        there.logit().cpu()
    report = module.fallback_report()
    paths = [tmp_path / "one.html", tmp_path / "other.html"]
    for path in paths:
        report.to_html(path)
    text = paths[0].read_text(encoding="ascii")
    assert text == paths[1].read_text(encoding="ascii")
    assert sorted(tmp_path.iterdir()) == paths
    names = [one.operator for one in (*report.rows, *report.kernels)]
    assert names
    for name in (*names, "copy device to host"):
        assert f"<code>{name}</code>" in text
    assert "<script" not in text and "://" not in text
    with pytest.raises(FileNotFoundError, match="no such folder"):
        report.to_html(tmp_path / "missing" / "page.html")
