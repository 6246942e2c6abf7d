# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference/, written from the code that they describe.

`./dev test tests/package/site --update` writes them; without `--update` it compares them.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"

_NOTE = "<!-- Written by `./dev test tests/package/site --update`; change {}, not this file. -->\n"

_PARTS = {
    "_device": "Devices",
    "_fallback_report": "The fallback and times",
    "_streams": "Streams and events",
    "_memory": "Memory",
    "_random": "Random numbers",
    "_properties": "Properties",
    "_capabilities": "Capabilities",
}
#: Public names that are no functions or classes of these modules.
_VALUES = {
    "display_name": "The device's name in messages: `display_name` of `backend.toml`.",
    "OutOfMemoryError": "`torch.OutOfMemoryError`, by the name that programs for CUDA catch.",
    "default_generators": "The devices' default generators, by index: a sequence of "
    "`torch.Generator`.",
}
#: Names that other classes and functions give to the user.
_RESULTS = {"_fallback_report": ["FallbackReport", "FallbackRow", "KernelRow", "CopyRow"]}
#: For the modules of backends, which register what to do when another package is imported.
_INTERNAL = {"when_imported"}
_PIP_MODULES = {
    "__init__": "backendkit",
    "build": "backendkit.build",
    "device_tests": "backendkit.device_tests",
}


def pages(backendgen: str) -> dict[Path, str]:
    """The text of each generated page; `backendgen` is the program whose commands are listed."""
    return {
        FOLDER / "commands.md": commands_page(backendgen),
        FOLDER / "runtime.md": runtime_page(),
        FOLDER / "python.md": python_page(),
    }


# --- commands ----------------------------------------------------------------------------------


def commands_page(backendgen: str) -> str:
    overview = _output(backendgen, "--help")
    listed, _, options = overview.partition("usage:")[2].partition("\n\n")[2].partition("\n\n")
    lines = [
        "# Commands",
        "",
        _NOTE.format("generator/cli.cpp"),
        f"`backendgen`: {overview.splitlines()[0][0].lower()}{overview.splitlines()[0][1:]}",
        "",
        "Results go to stdout, messages to stderr. Every command works in any folder of a project.",
        "",
        "| exit status | meaning |",
        "|---|---|",
        "| 0 | done |",
        "| 1 | the answer is no: the description is wrong, the build failed |",
        "| 2 | the command line is wrong |",
        "| 3 | a fault in `backendgen` |",
        "",
        "| command | what it does |",
        "|---|---|",
    ]
    names = []
    for line in listed.splitlines():
        found = re.fullmatch(r"  ((\w+)[^a-z]*?) +([a-z].*)", line)
        if found is None:
            raise ValueError(f"`backendgen --help` has a line of another form: {line!r}")
        names.append(found[2])
        lines.append(f"| [`{found[1]}`](#{found[2]}) | {found[3]} |")
    lines += ["", "```text", *options.rstrip().splitlines(), "```", ""]
    for name in names:
        head, _, rest = _output(backendgen, "help", name).partition("\n\n")
        summary = head.partition(": ")[2]
        usage, _, described = rest.partition("\n\n")
        lines += [
            f"## {name}",
            "",
            f"{summary[0].upper()}{summary[1:]}.",
            "",
            "```text",
            *_wrapped(usage.removeprefix("usage: ")),
            "```",
            "",
            "| option | meaning |",
            "|---|---|",
        ]
        for line in described.rstrip().splitlines():
            typed, text = re.split(r" {2,}", line.strip(), maxsplit=1)
            lines.append(f"| `{typed}` | {_cell(text)} |")
        lines.append("")
    return "\n".join(lines)


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _wrapped(usage: str, width: int = 72) -> list[str]:
    """A usage on lines that fit a page; an option and its value stay together."""
    lines = [""]
    for word in re.findall(r"\[[^]]*\]|\S+", usage):
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# --- the Runtime -------------------------------------------------------------------------------


#: What describes the functions of a Runtime.
HEADERS = ("runtime.h", "collectives.h")


def _body(name: str) -> str:
    header = (ROOT / "include" / "backendkit" / name).read_text(encoding="utf-8")
    return header[
        header.index("namespace backendkit {") : header.index("}  // namespace backendkit")
    ]


def runtime_page() -> str:
    body = "\n".join(_body(name) for name in HEADERS)
    # Each piece is a comment and what it describes, up to an empty line.
    pieces = re.findall(r"^((?:///.*\n)+)((?:[^\n/].*\n)+)", body, re.M)
    types: list[str] = []
    required: list[str] = []
    line: list[str] = []
    optional: list[str] = []
    waiting: list[str] = []  # functions of the group whose description follows them
    before = body[: body.index("// The optional functions")]
    for comment, code in pieces:
        text = " ".join(line.removeprefix("///").strip() for line in comment.splitlines())
        concept = re.search(r"concept (\w+)", code)
        function = re.match(r"`([^`]*?)`(?:, which a Runtime may declare)?: ", text)
        if function is None and concept is None:
            types += ["```cpp", code.rstrip(), "```", "", text, ""]
        elif function is not None:
            entry = _function(function[1], text[function.end() :])
            if "which a Runtime may declare" in function[0]:
                line = entry
            elif concept is not None and f"concept {concept[1]} " in before:
                required += entry
            elif concept is not None and _enables_a_feature(concept[1], body):
                optional += entry
            else:
                waiting += entry
        else:
            assert concept is not None
            title, colon, rest = text.partition(": ")
            if not colon or "." in title:
                title, rest = _title(concept[1]), text
            rest = f"{rest[0].upper()}{rest[1:]}".replace("functions above", "functions below")
            optional += [
                f"### {title}",
                "",
                rest,
                "",
                *(f"#{one}" if one.startswith("### ") else one for one in waiting),
            ]
            waiting = []
    if waiting or not line:
        raise ValueError(f"runtime.h has another form: {waiting[:1]}")
    return "\n".join(
        [
            "# The functions of a Runtime",
            "",
            _NOTE.format("include/backendkit/runtime.h and collectives.h"),
            "What `include/backendkit/runtime.h` and `collectives.h` say of each function. A "
            "Runtime has them as static functions. [The runtime](../runtime.md) explains when each "
            "is called.",
            "",
            "## Required functions",
            "",
            *required,
            "## A line to add",
            "",
            *line,
            "## Optional functions",
            "",
            "The functions of a group together enable a feature: implement all of them, or none.",
            "",
            *optional,
            "## Types",
            "",
            *types,
        ]
    )


def _function(signature: str, text: str) -> list[str]:
    name = re.search(r"(\w+)(?:\(| =)", signature)
    assert name is not None, signature
    code = _break_arguments(signature)
    return [f"### {name[1]}", "", "```cpp", *code, "```", "", f"{text[0].upper()}{text[1:]}", ""]


def _break_arguments(signature: str, width: int = 78) -> list[str]:
    lines = [""]
    for word in re.split(r"(?<=,) ", signature):
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    lines[-1] += ";"
    return lines


def _enables_a_feature(concept: str, body: str) -> bool:
    """Whether a function enables a feature by itself, and not as part of a group."""
    return f"{concept}<Runtime>" not in body


def _title(concept: str) -> str:
    words = re.findall(r"[A-Z][a-z]+", concept.removeprefix("Has"))
    return " ".join([words[0], *(word.lower() for word in words[1:])])


# --- Python ------------------------------------------------------------------------------------


def python_page() -> str:
    lines = [
        "# Python",
        "",
        _NOTE.format("templates/python/common and python/backendkit"),
        "## `torch.foo`",
        "",
        "The module of a device `foo`. Its functions have the names of `torch.cuda`'s. A `Device` "
        "is an index, a name such as `foo:1`, a `torch.device`, or None for the current device. "
        "Names in the `__all__` of your modules in `[autoload] imports` are added.",
        "",
    ]
    for module, title in _PARTS.items():
        path = ROOT / "templates" / "python" / "common" / f"{module}.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = _definitions(tree)
        lines += [f"### {title}", ""]
        for name in [*_public(tree), *_RESULTS.get(module, [])]:
            if name in _INTERNAL:
                continue
            if name in _VALUES:
                lines += [f"#### {name}", "", _VALUES[name], ""]
            else:
                lines += _described(name, nodes[name])
    tree = ast.parse((ROOT / "templates/python/common/testing.py").read_text(encoding="utf-8"))
    lines += ["## `torch_foo.testing`", "", f"{ast.get_docstring(tree)}", ""]
    for name in ("configure_pytorch_tests", "torchcts_manifest"):
        lines += _described(name, _definitions(tree)[name])
    for module, title in _PIP_MODULES.items():
        tree = ast.parse((ROOT / "python" / "backendkit" / f"{module}.py").read_text())
        docstring = ast.get_docstring(tree) or ""
        lines += [f"## `{title}`", "", docstring, ""]
        nodes = _definitions(tree)
        for name in _public(tree):
            if name in nodes:
                lines += _described(name, nodes[name])
    return "\n".join(lines)


_Definition = ast.FunctionDef | ast.ClassDef


def _definitions(tree: ast.Module) -> dict[str, _Definition]:
    return {node.name: node for node in tree.body if isinstance(node, _Definition)}


def _public(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise ValueError("the module has no __all__")


def _described(name: str, node: _Definition) -> list[str]:
    docstring = ast.get_docstring(node)
    if not docstring:
        raise ValueError(f"{name} has no docstring")
    return [f"#### {name}", "", "```python", *_signature(node), "```", "", docstring, ""]


def _signature(node: _Definition) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return _call(node.name, node)
    made = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
    for constructor in ("__new__", "__init__"):
        if constructor in made:
            return _call(node.name, made[constructor], kind="class", skip=1)
    fields = [
        f"    {_readable(ast.unparse(one))}" for one in node.body if isinstance(one, ast.AnnAssign)
    ]
    methods = [
        f"    {line}"
        for one in made.values()
        if not one.name.startswith("_")
        for line in _call(one.name, one)
    ]
    bases = [ast.unparse(base) for base in node.bases]
    head = f"class {node.name}({', '.join(bases)})" if bases else f"class {node.name}"
    return [f"{head}:", *fields, *methods] if fields + methods else [head]


def _call(name: str, node: ast.FunctionDef, kind: str = "def", skip: int = 0) -> list[str]:
    given = node.args
    plain = [ast.unparse(one) for one in given.args]
    for place, default in enumerate(reversed(given.defaults), 1):
        plain[-place] += f" = {ast.unparse(default)}"
    if given.kwonlyargs or given.posonlyargs or given.vararg:
        raise ValueError(f"{name} has arguments of a kind that this page has not had yet")
    plain += [f"**{ast.unparse(given.kwarg)}"] if given.kwarg else []
    plain = [_readable(one) for one in plain[skip:]]
    result = f" -> {ast.unparse(node.returns)}" if node.returns and kind == "def" else ""
    whole = _readable(f"{kind} {name}({', '.join(plain)}){result}")
    if len(whole) <= 88:
        return [whole]
    return [f"{kind} {name}(", *(f"    {one}," for one in plain), _readable(f"){result}")]


def _readable(code: str) -> str:
    code = re.sub(r"\b_Device\b", "Device", code)
    return re.sub(r"Optional\[(.+?\]?)\](?=[,)\s]|$)", r"\1 | None", code)
