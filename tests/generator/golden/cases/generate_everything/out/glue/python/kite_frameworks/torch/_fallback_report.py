# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""Where a program's time goes: fallbacks to the CPU, copies, and the device's own kernels."""

import errno
import importlib
import os
from typing import Any, NamedTuple, Union

# `from . import` could deadlock: it waits for the package, which may wait for this module.
_build = importlib.import_module("._build", __package__)
_device = importlib.import_module("._device", __package__)

__all__ = ["fallback_report", "reset_fallback_report", "timed_operators"]

#: The names of CopyWay's numbers in the library.
_WAYS = ("host to device", "device to host", "within a device", "between devices")


class FallbackRow(NamedTuple):
    """The cost of falling back to the CPU for one operator."""

    operator: str
    calls: int
    total_ms: float
    mean_ms: float
    bytes_copied: int


class KernelRow(NamedTuple):
    """The time of a kernel, from its call until the device has done its work."""

    operator: str
    calls: int
    total_ms: float
    mean_ms: float


class CopyRow(NamedTuple):
    """The copies of one kind: `host to device`, `device to host`, `within a device` or
    `between devices`.
    """

    way: str
    calls: int
    total_ms: float
    mean_ms: float
    bytes_copied: int


class FallbackReport:
    """The operators that fell back to the CPU; `str()` returns a table.

    `to_html(path)` writes a page for the browser, which also shows copies and kernels: a bar for
    each operator.
    """

    def __init__(self, rows: list[FallbackRow]) -> None:
        #: A FallbackRow for each operator, the most expensive first.
        self.rows = rows
        #: The part of a row's `total_ms` in which it copied, by its operator.
        self.copying_ms: dict[str, float] = {}
        #: A CopyRow for each kind of copy that a program or a kernel asked for. Those that a
        #: fallback makes are part of its row.
        self.copies: list[CopyRow] = []
        #: A KernelRow for each operator that ran under `timed_operators`, the most expensive first.
        self.kernels: list[KernelRow] = []
        #: The time that this report is about, and the part of it in which kernels were timed.
        self.span_ms = 0.0
        self.timed_ms = 0.0
        #: Why there is nothing to report, if the device cannot be used.
        self.problem = ""

    def __str__(self) -> str:
        if not self.rows:
            return "no operator fell back to the CPU"
        table = [("operator", "calls", "total ms", "mean ms", "bytes copied")]
        for row in self.rows:
            mean, total = f"{row.mean_ms:.3f}", f"{row.total_ms:.3f}"
            table.append((row.operator, f"{row.calls:,}", total, mean, f"{row.bytes_copied:,}"))
        widths = [max(map(len, column)) for column in zip(*table)]
        lines = []
        for name, *figures in table:
            cells = [figure.rjust(width) for figure, width in zip(figures, widths[1:])]
            lines.append("  ".join([name.ljust(widths[0]), *cells]))
        return "\n".join(lines)

    __repr__ = __str__

    def to_html(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the report as one page that needs no script, no network and no other file.

        Replaces the file as a whole. Raises an OSError that names the path if that is not possible.
        """
        page = importlib.import_module("._fallback_page", __package__)
        _write_whole(os.fspath(path), page.page(self, _build))


def _write_whole(path: str, text: str) -> None:
    """Replaces a file; another process sees the old text or the new one."""
    target = os.path.realpath(path)  # a link stays a link
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        why = "cannot write the report, because there is no such folder"
        raise FileNotFoundError(errno.ENOENT, why, os.path.dirname(path) or folder)
    beside = os.path.join(folder, f".fallback-report-{os.urandom(8).hex()}")
    try:
        with open(beside, "x", encoding="ascii", newline="\n") as file:
            file.write(text)
        os.replace(beside, target)
    except BaseException as error:
        try:
            os.unlink(beside)
        except OSError:
            pass
        if isinstance(error, OSError):
            raise OSError(error.errno, f"cannot write the report: {error.strerror}", path) from None
        raise


def fallback_report() -> FallbackReport:
    """Which operators have fallen back to the CPU, how often, and at what cost.

    Also what copies took and, if they ran under `timed_operators`, kernels. Counts from the start
    of the process or from the last `reset_fallback_report`. Never raises.
    """
    if _device._failure is not None:
        report = FallbackReport([])
        report.problem = f"the backend could not be loaded: {_device._failure}"
        return report
    library = _device._library()
    names, calls, times, copied, copying = library.fallback_counts()
    rows = [
        FallbackRow(operator, count, time / 1e6, time / 1e6 / count, size)
        for operator, count, time, size in zip(names, calls, times, copied)
    ]
    report = FallbackReport(sorted(rows, key=_most_expensive_first))
    report.copying_ms = {name: time / 1e6 for name, time in zip(names, copying)}
    report.copies = [
        CopyRow(way, count, time / 1e6, time / 1e6 / count, size)
        for way, count, time, size in zip(_WAYS, *library.copy_counts())
        if count
    ]
    kernels = [
        KernelRow(operator, count, time / 1e6, time / 1e6 / count)
        for operator, count, time in zip(*library.kernel_times())
    ]
    report.kernels = sorted(kernels, key=_most_expensive_first)
    report.span_ms, report.timed_ms = (time / 1e6 for time in library.time_span())
    if not (rows or report.copies or kernels) and _device.device_count() == 0:
        why = library.device_failure() or "its driver finds no device"
        report.problem = f"there is no device: {why}"
    return report


def _most_expensive_first(row: Any) -> tuple[float, str]:
    return (-row.total_ms, row.operator)


def reset_fallback_report() -> None:
    """Resets all counts and times of `fallback_report`. Never raises."""
    if _device._failure is None:
        _device._library().reset_counts()


class timed_operators:
    """A context manager in which `fallback_report` gets the times of the backend's kernels.

    A kernel returns before the device has done its work. So in this context the host waits for the
    current stream before and after each kernel and each copy, in every thread: the program is
    slower, and its work on the device does not overlap. What a graph records is not timed. The time
    of a kernel is without that of kernels, copies and fallbacks that it calls. Contexts can be
    nested. Never raises.
    """

    def __enter__(self) -> None:
        if _device._failure is None:
            _device._library().time_kernels(True)

    def __exit__(self, *_: object) -> None:
        if _device._failure is None:
            _device._library().time_kernels(False)
