# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/pictures/, drawn from data: boxes, arrows, and figures of `backendgen ops`.

`./dev test tests/package/site --update` draws them anew. An SVG in a page does not know the page's
colours, so each has its own for light and for dark.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"

_STYLE = """\
text { font: 14px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1d2730 }
.code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 13px }
.small { font-size: 12px; fill: #51606e }
.ground { fill: #ffffff }
.yours { fill: #fdf0e4; stroke: #c9762f }
.ours { fill: #e8f1f9; stroke: #3f7fb5 }
.torch { fill: #f1f3f5; stroke: #8a97a3 }
.kernel { fill: #2f8f5b }
.free { fill: #8ec5a6 }
.built-in { fill: #3f7fb5 }
.fallback { fill: #e0a458 }
.rest { fill: #c4ccd4 }
path.line { stroke: #6b7884; stroke-width: 1.5; fill: none }
path.head { fill: #6b7884 }
@media (prefers-color-scheme: dark) {
  text { fill: #dfe6ec }
  .small { fill: #a3b0bc }
  .ground { fill: #1a2027 }
  .yours { fill: #3a2b1e; stroke: #d98d4c }
  .ours { fill: #1c3145; stroke: #5a9fd6 }
  .torch { fill: #2a323a; stroke: #7e8b97 }
  path.line { stroke: #94a1ad }
  path.head { fill: #94a1ad }
}
"""


@dataclass
class Drawing:
    """An SVG under construction. Text is quoted here, and nowhere else."""

    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def text(self, x: int, y: int, text: str, kind: str = "", anchor: str = "start") -> None:
        self.parts.append(
            f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'
        )

    def bar(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        self.parts.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}"/>'
        )

    def box(self, x: int, y: int, width: int, height: int, kind: str, *lines: str) -> None:
        """A box with centred lines; the first is its title, a line in backticks is code."""
        self.parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
        )
        top = y + height // 2 - 10 * (len(lines) - 1) + 5
        for number, line in enumerate(lines):
            style = "code" if line.startswith("`") else "small" if number else ""
            self.text(x + width // 2, top + 20 * number, line.strip("`"), style, "middle")

    def arrow(self, *points: tuple[int, int]) -> None:
        (x0, y0), (x1, y1) = points[-2:]
        way = " L ".join(f"{x} {y}" for x, y in points)
        self.parts.append(f'<path class="line" d="M {way}"/>')
        dx, dy = (x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0)
        left = (x1 - 8 * dx - 5 * dy, y1 - 8 * dy - 5 * dx)
        right = (x1 - 8 * dx + 5 * dy, y1 - 8 * dy + 5 * dx)
        self.parts.append(
            f'<path class="head" d="M {x1} {y1} L {left[0]} {left[1]} L {right[0]} {right[1]} Z"/>'
        )

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'role="img" aria-label="{escape(self.title, quote=True)}">'
        )
        ground = f'<rect class="ground" width="{self.width}" height="{self.height}" rx="8"/>'
        body = "\n".join([head, f"<style>\n{_STYLE}</style>", ground, *self.parts, "</svg>"])
        return body + "\n"


def pictures(backendgen: str, torch: str) -> dict[Path, str]:
    """The text of each picture, with figures of the operators of the PyTorch in a folder."""
    return {
        FOLDER / "architecture.svg": architecture(),
        FOLDER / "import.svg": life_of_import(),
        FOLDER / "wheel.svg": wheel(),
        FOLDER / "operators.svg": operators(backendgen, torch),
    }


def architecture() -> str:
    drawing = Drawing(720, 430, "From a description to a wheel")
    drawing.box(20, 20, 210, 64, "yours", "`backend.toml`", "the description")
    drawing.box(255, 20, 210, 64, "torch", "PyTorch, installed", "its list of operators")
    drawing.box(490, 20, 210, 64, "yours", "`csrc/`", "your Runtime and kernels")
    drawing.box(20, 140, 445, 64, "ours", "`backendgen`", "reads both, reports every problem")
    drawing.box(20, 250, 220, 64, "ours", "generated glue", "C++, kernels.h, Python")
    drawing.box(255, 250, 210, 64, "ours", "`include/backendkit`", "the same for all devices")
    drawing.box(490, 250, 210, 64, "ours", "`add_torch_backend()`", "compiles and links")
    drawing.box(20, 350, 445, 60, "torch", "`torch_foo-0.1.0-py3-none-linux_x86_64.whl`")
    drawing.box(490, 350, 210, 60, "ours", "`libtorch_foo.so`", "one per PyTorch release")
    drawing.arrow((125, 84), (125, 140))
    drawing.arrow((360, 84), (360, 140))
    drawing.arrow((595, 84), (595, 250))
    drawing.arrow((125, 204), (125, 250))
    drawing.arrow((465, 282), (490, 282))
    drawing.arrow((125, 314), (125, 332), (540, 332), (540, 314))
    drawing.arrow((620, 314), (620, 350))
    drawing.arrow((490, 380), (465, 380))
    return drawing.svg()


def life_of_import() -> str:
    drawing = Drawing(720, 470, "The life of import torch")
    steps = [
        ("torch", "`import torch`", "at its end, PyTorch looks up the entry points"),
        ("torch", "`torch.backends: foo = torch_foo:_autoload`", "from the wheel's metadata"),
        ("ours", "`_choose_library()`", "lib/2.13/libtorch_foo.so, for this PyTorch"),
        (
            "ours",
            "`torch.ops.load_library()`",
            "registers guard, hooks, allocator, kernels, fallback",
        ),
        ("ours", "`rename_privateuse1_backend()`", 'names the device: torch.device("foo")'),
        ("ours", "`torch._register_device_module()`", "sets torch.foo"),
        ("yours", "`[autoload] imports`", "your Python modules"),
    ]
    for number, (kind, *lines) in enumerate(steps):
        y = 16 + 64 * number
        drawing.box(20, y, 430, 50, kind, *lines)
        if number:
            drawing.arrow((235, y - 14), (235, y))
    drawing.box(490, 144, 210, 178, "torch", "if any of this fails", "one warning says why;")
    for number, line in enumerate(["import torch succeeds;", "the first use of the device"]):
        drawing.text(595, 268 + 18 * number, line, "small", "middle")
    drawing.text(595, 304, "raises the cause", "small", "middle")
    drawing.arrow((450, 233), (490, 233))
    return drawing.svg()


#: The folder in a wheel, its name in the picture, and what it is.
WHEEL = [
    ("yours", "torch_foo/extras.py", "your Python, as it is in your project"),
    ("ours", "torch_foo/__init__.py", "generated: _autoload, the entry point's function"),
    ("ours", "torch_foo/_loader.py", "generated: chooses and opens the library"),
    ("ours", "torch_foo/_device.py", "generated, with its companions: torch.foo"),
    ("ours", "torch_foo/lib/2.13/libtorch_foo.so", "glue, your Runtime, your kernels; no PyTorch"),
    ("ours", "torch_foo/LICENSE.BackendKit", "the licence of the generated parts"),
    (
        "torch",
        "torch_foo-0.1.0.dist-info/METADATA",
        "requires the PyTorch release it was built for",
    ),
    (
        "torch",
        "torch_foo-0.1.0.dist-info/entry_points.txt",
        "[torch.backends] foo = torch_foo:_autoload",
    ),
]


def wheel() -> str:
    drawing = Drawing(720, 60 + 44 * len(WHEEL), "What is inside a wheel")
    drawing.text(20, 32, "torch_foo-0.1.0-py3-none-linux_x86_64.whl", "code")
    for number, (kind, name, what) in enumerate(WHEEL):
        y = 48 + 44 * number
        drawing.box(20, y, 350, 36, kind, f"`{name}`")
        drawing.text(384, y + 23, what, "small")
    return drawing.svg()


_STATES = [
    ("kernel", "kernel"),
    ("free", "free"),
    ("built-in", "built-in"),
    ("fallback", "fallback"),
    ("cannot", "rest"),
]


def operators(backendgen: str, torch: str) -> str:
    """Each group's operators by state, for the sixty kernels of an example."""
    project = ROOT / "examples" / "kernels" / "dense"
    command = [backendgen, "-C", str(project), "ops", "--format", "json", "--torch", torch]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    groups = sorted(report["groups"], key=lambda one: -one["kernel"])[:10]
    most = max(sum(group[state] for state, _ in _STATES) for group in groups)
    drawing = Drawing(720, 100 + 28 * len(groups), "Operators by group and state")
    release = ".".join(report["torch"].split(".")[:2])
    title = f"{report['states']['kernel']} of PyTorch {release}'s operators run kernels"
    drawing.text(20, 30, f"{title}: examples/kernels, the ten groups with most")
    for number, group in enumerate(groups):
        y = 48 + 28 * number
        drawing.text(235, y + 15, group["title"], "small", "end")
        x = 245.0
        for state, kind in _STATES:
            width = 455 * group[state] / most
            drawing.bar(x, y, width, 20, kind)
            x += width
    y = 48 + 28 * len(groups) + 20
    for number, (state, kind) in enumerate(_STATES):
        drawing.bar(245 + 92 * number, y, 14, 14, kind)
        drawing.text(264 + 92 * number, y + 12, state, "small")
    return drawing.svg()
