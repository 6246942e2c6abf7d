# SPDX-License-Identifier: Apache-2.0
"""What a tool tells backendgen: lines "KIND<tab>TEXT" on stdout, which backendgen shows.

The kinds are `error`, `help` and `note`, which belong to the one error a tool may end with, and any
other word, which is the verb of a status line.
"""

from __future__ import annotations

from typing import NoReturn

__all__ = ["fail", "say"]


def say(kind: str, text: str) -> None:
    """Prints a line; backendgen turns control characters into escapes, but a line must be one."""
    print(f"{kind}\t{' '.join(text.splitlines())}", flush=True)


def fail(error: str, help_: str = "", *notes: str) -> NoReturn:
    """Ends the tool with an error for the user."""
    say("error", error)
    if help_:
        say("help", help_)
    for note in notes:
        say("note", note)
    raise SystemExit(1)
