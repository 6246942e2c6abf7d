# SPDX-License-Identifier: Apache-2.0
"""The licence of a wheel that backendgen packs: an SPDX expression and files."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from backendkit_tools.screen import fail

__all__ = ["Licence", "licence_of"]

#: As setuptools finds the licences of the backend's own wheel.
_GLOBS = ("LICEN[CS]E*", "COPYING*", "NOTICE*", "AUTHORS*")


@dataclass(frozen=True)
class Licence:
    """What METADATA says: the expression may be empty; files are relative to the project."""

    expression: str
    files: list[str]


def licence_of(folder: Path, expression: str, files: list[str]) -> Licence:
    """That of [wheel.runtime]; what it does not say is as for the backend's own wheel.

    Files of its own mean a licence of its own, so the backend's expression is not taken then.
    """
    own, globs = _of_setup_py(folder / "setup.py")
    if not files:
        found = {path for glob in globs for path in folder.glob(glob) if path.is_file()}
        files = sorted(path.relative_to(folder).as_posix() for path in found)
        expression = expression or own
    _judge(expression)
    return Licence(expression, files)


def _of_setup_py(path: Path) -> tuple[str, tuple[str, ...]]:
    """`license_expression` and `license_files` of setup_backend(), if they are plain text there.

    The file is read and not run: it needs PyTorch, and what packs the driver's libraries does not.
    """
    expression, globs = "", _GLOBS
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return expression, globs
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for keyword in (one for call in calls for one in call.keywords if _is_setup(call)):
        try:
            value = ast.literal_eval(keyword.value)
        except ValueError:
            continue
        if keyword.arg == "license_expression" and isinstance(value, str):
            expression = value
        elif keyword.arg == "license_files" and isinstance(value, (list, tuple)):
            globs = tuple(one for one in map(str, value) if _is_inside(one))
    return expression, globs


def _is_inside(glob: str) -> bool:
    return bool(glob) and not glob.startswith("/") and ".." not in glob.split("/")


def _is_setup(call: ast.Call) -> bool:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name == "setup_backend"


def _judge(expression: str) -> None:
    """Fails for what an index refuses, if this Python has what judges it."""
    if not expression:
        return
    try:
        from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
    except ImportError:  # `packaging` before 24.2, or none
        return
    try:
        right = canonicalize_license_expression(expression)
    except InvalidLicenseExpression as error:
        fail(
            f"the licence `{expression}` is no SPDX expression: {error}",
            "write one such as `MIT`, or `LicenseRef-Foo` for a licence of your own, as `license` "
            "of [wheel.runtime]",
        )
    if right != expression:
        fail(f"the licence `{expression}` is not as SPDX writes it", f"write `{right}`")
