# SPDX-License-Identifier: Apache-2.0
# Part of BackendKit. Every backend's package has a copy, which each build replaces.
"""The page of `FallbackReport.to_html`."""

from types import ModuleType
from typing import Any, NamedTuple

_KINDS = {
    "kernel": ("Kernels", "the device's own kernels, from the call until their work is done"),
    "fallback": ("CPU fallback", "operators without a kernel, computed by the CPU"),
    "moved": (
        "Fallback copies",
        "what the CPU computes with, to the host and back, and the wait for the device",
    ),
    "copy": ("Copies", "copies that the program or a kernel asks for"),
}


class _Part(NamedTuple):
    """A part of an operator's time: a part of its bar, and what the bar's text says."""

    kind: str
    ms: float
    text: str


class _Row(NamedTuple):
    name: str
    parts: list[_Part]

    @property
    def ms(self) -> float:
        return sum(part.ms for part in self.parts)


def page(report: Any, build: ModuleType) -> str:
    """The page, in ASCII: other letters are written as references."""
    import jinja2  # PyTorch requires it; only this page needs it

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters.update(time=_time, percent=_percent)
    rows = _rows(report)
    sums = {kind: 0.0 for kind in _KINDS}
    for row in rows:
        for part in row.parts:
            sums[part.kind] += part.ms
    text = environment.from_string(_TEMPLATE).render(
        build=build, report=report, rows=rows, sums=sums, total=sum(sums.values()), kinds=_KINDS,
        most=max((row.ms for row in rows), default=0.0),
        part_only=report.timed_ms < 0.9 * report.span_ms,
        has_kernels=bool(build.KERNELS or build.HAS_OPS),
    )  # fmt: skip
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _rows(report: Any) -> list[_Row]:
    """Each operator that took time, by any way, and each kind of copy; the longest first."""
    parts: dict[str, list[_Part]] = {}
    for one in report.kernels:
        text = f"{_calls(one.calls)} of the kernel: {_time(one.total_ms)}"
        parts.setdefault(one.operator, []).append(_Part("kernel", one.total_ms, text))
    for one in report.rows:
        copying = min(report.copying_ms.get(one.operator, 0.0), one.total_ms)
        computing = one.total_ms - copying
        text = f"{_calls(one.calls)} of the CPU: {_time(computing)}"
        moved = f"copies of {_bytes(one.bytes_copied)}: {_time(copying)}"
        parts.setdefault(one.operator, []).extend(
            [_Part("fallback", computing, text), _Part("moved", copying, moved)]
        )
    for one in report.copies:
        text = f"{_copies(one.calls)} of {_bytes(one.bytes_copied)}: {_time(one.total_ms)}"
        parts[f"copy {one.way}"] = [_Part("copy", one.total_ms, text)]
    rows = [_Row(name, of_row) for name, of_row in parts.items()]
    return sorted(rows, key=lambda row: (-row.ms, row.name))


def _calls(count: int) -> str:
    return f"{count:,} call{'' if count == 1 else 's'}"


def _copies(count: int) -> str:
    return f"{count:,} cop{'y' if count == 1 else 'ies'}"


def _time(ms: float) -> str:
    if ms < 1:
        return f"{ms:.3f} ms"
    if ms < 1000:
        return f"{ms:.1f} ms"
    return f"{ms / 1000:,.1f} s"


def _bytes(count: int) -> str:
    value, unit = float(count), "B"
    for bigger in ("KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value, unit = value / 1024, bigger
    return f"{count:,} B" if unit == "B" else f"{value:,.1f} {unit}"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole else 0:.2f}"


_STYLE = """
:root {
  --page: #f6f7f9; --card: #ffffff; --ink: #1b1f24; --soft: #59636e; --line: #d8dee4;
  --track: #e4e8ec; --code: #eef1f4; --warn: #9a5b00;
  --kernel: #1a7f37; --fallback: #b26a00; --moved: #e5b566; --copy: #0a7ea4;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0e1116; --card: #161b22; --ink: #e6edf3; --soft: #9aa4af; --line: #2d343d;
    --track: #262d36; --code: #1e252e; --warn: #e3a13b;
    --kernel: #3fb950; --fallback: #e3a13b; --moved: #8c6526; --copy: #39b6dd;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 66rem; background: var(--page);
  color: var(--ink); overflow-wrap: anywhere;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
h1 { margin: 0; font-size: 1.7rem; line-height: 1.2; letter-spacing: -0.01em; }
h2 { margin: 2rem 0 0.6rem; font-size: 1.15rem; }
p { margin: 0.4rem 0; max-width: 48rem; }
.soft, small { color: var(--soft); }
small { font-size: 0.85rem; }
code { font-family: var(--mono); font-size: 0.9em; }
pre {
  margin: 0.5rem 0; padding: 0.6rem 0.8rem; white-space: pre-wrap; background: var(--code);
  border-radius: 8px; font-family: var(--mono); font-size: 0.86rem;
}
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.note { margin: 0.9rem 0; padding: 0.5rem 1rem; }
.warn { border-left: 6px solid var(--warn); }
.kernel { --c: var(--kernel); } .fallback { --c: var(--fallback); }
.moved { --c: var(--moved); } .copy { --c: var(--copy); }
.bar {
  display: flex; height: 10px; border-radius: 5px; overflow: hidden; background: var(--track);
}
.bar.total { height: 16px; border-radius: 8px; margin: 1.25rem 0; }
.bar i, .dot { background: var(--c); }
.bar i { min-width: 1px; }
.dot { display: inline-block; width: 0.65rem; height: 0.65rem; border-radius: 50%; }
.key {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(11.5rem, 1fr)); gap: 0.6rem;
  margin: 0; padding: 0; list-style: none;
}
.key li { padding: 0.7rem 0.85rem; }
.key b { display: flex; flex-wrap: wrap; align-items: center; gap: 0 0.45rem; }
.key b span:last-child { margin-left: auto; font-variant-numeric: tabular-nums; }
.key small { display: block; margin-top: 0.2rem; line-height: 1.35; }
ol { margin: 0; padding: 0.2rem 1rem; list-style: none; }
ol li {
  display: grid; grid-template-columns: minmax(0, 1.2fr) minmax(0, 1fr) 5.5rem;
  gap: 0.1rem 1rem; align-items: center; padding: 0.55rem 0; border-top: 1px solid var(--line);
}
ol li:first-child { border-top: 0; }
ol small { grid-column: 1 / -1; }
ol small span { display: inline-block; margin-right: 1rem; }
ol small .dot { width: 0.5rem; height: 0.5rem; margin-right: 0.35rem; }
ol .n { text-align: right; font-variant-numeric: tabular-nums; }
footer { margin-top: 2rem; }
@media (max-width: 44rem) {
  body { padding: 1.25rem 0.85rem 3rem; }
  h1 { font-size: 1.4rem; }
  ol { padding: 0.2rem 0.75rem; }
  ol li { grid-template-columns: minmax(0, 1fr) auto; }
  ol .bar { grid-column: 1 / -1; grid-row: 2; }
}
@media print {
  :root { --page: #fff; --card: #fff; --ink: #000; --soft: #444; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  li, .note { break-inside: avoid; }
  .bar, .bar i, .dot { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

_TEMPLATE = (
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; style-src 'unsafe-inline'">
<title>Where the time went on {{ build.DISPLAY_NAME }}</title>
<style>"""
    + _STYLE
    + """</style>
</head>
<body>
<header>
<h1>Where the time went on {{ build.DISPLAY_NAME }}</h1>
<p class="soft">The PyTorch device <code>{{ build.DEVICE }}</code> of {{ build.PACKAGE }} \
{{ build.VERSION }}\
{% if rows %}: {{ total | time }} in the operators below, of {{ report.span_ms | time }} since \
the counts began or were reset{% endif %}</p>
</header>
<main>
{% if report.problem %}
<p class="card note warn">Nothing was counted, because {{ report.problem }}</p>
{% elif not rows %}
<p class="card note">Nothing was counted: no operator fell back to the CPU, nothing was copied, \
and no kernel was timed.</p>
{% else %}
<div class="bar total" role="img" aria-label="{% for kind, ms in sums.items() if ms %}\
{{ kinds[kind][0] }} {{ ms | time }}{{ ", " if not loop.last }}{% endfor %}">\
{% for kind, ms in sums.items() if ms %}\
<i class="{{ kind }}" style="width:{{ ms | percent(total) }}%"></i>{% endfor %}</div>
<ul class="key">
{% for kind, (name, meaning) in kinds.items() %}
<li class="card {{ kind }}"><b><span class="dot"></span><span>{{ name }}</span>\
<span>{{ sums[kind] | time if kind != "kernel" or report.timed_ms else "not timed" }}</span></b>\
<small>{{ meaning }}</small></li>
{% endfor %}
</ul>
{% endif %}
{% if not report.problem %}
{% if not has_kernels %}
<p class="card note">This backend has no kernels yet.</p>
{% elif report.timed_ms and not part_only %}
<p class="card note">Kernels were timed for {{ report.timed_ms | time }} of \
{{ report.span_ms | time }}.</p>
{% elif report.timed_ms %}
<p class="card note warn">Kernels were timed for only {{ report.timed_ms | time }} of \
{{ report.span_ms | time }}, but fallbacks and copies were counted all the time. Call \
<code>torch.{{ build.DEVICE }}.reset_fallback_report()</code> where the timing begins, and make \
the report where it ends.</p>
{% else %}
<div class="card note warn"><p>Kernels were not timed: each returns before the device has done its \
work. The first copy to the host or fallback after them waits for that work, and so has its time \
too. To see the times of kernels, run the program like this:</p>
<pre>torch.{{ build.DEVICE }}.reset_fallback_report()
with torch.{{ build.DEVICE }}.timed_operators():
    ...
torch.{{ build.DEVICE }}.fallback_report().to_html("times.html")</pre></div>
{% endif %}
{% endif %}
{% if rows %}
<h2>Operators</h2>
<ol class="card">
{% for row in rows %}
<li><code>{{ row.name }}</code><span class="bar" role="img" aria-label="\
{{ row.ms | percent(total) }} % of the time">\
{% for part in row.parts if part.ms %}\
<i class="{{ part.kind }}" style="width:{{ part.ms | percent(most) }}%"></i>{% endfor %}</span>\
<span class="n">{{ row.ms | time }}</span>\
<small>{% for part in row.parts %}<span class="{{ part.kind }}"><span class="dot"></span>\
{{ part.text }}</span> {% endfor %}</small></li>
{% endfor %}
</ol>
<footer><p><small>No time counts twice: that of an operator is without the copies, fallbacks and \
timed kernels that it calls, and the copies of a fallback are a part of its bar. Times of several \
threads add up.</small></p></footer>
{% endif %}
</main>
</body>
</html>
"""
)
