"""How long answers are shown: in colours, and on a terminal through a pager, as git does it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator

import click

from patchq.cli.plain import plain, put
from patchq.report import Report

# What git tells less and lv where nobody else does: no page for what fits on one, colours.
_DEFAULTS = {"LESS": "FRX", "LV": "-c"}


def show(report: Report, paint: Callable[[Report, Iterable[str]], Iterator[str]] | None) -> int:
    """Print a report, its lines painted by `paint` if it is not None; return its exit code.

    A file or a pipe gets the bytes of a diff as they are; a terminal gets no control
    characters but those of `paint`.
    """
    out = sys.stdout
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="surrogateescape")
    terminal = out.isatty()
    lines: Iterable[str] = report.lines
    if terminal:
        lines = map(plain, lines)
    text = "\n".join(lines if paint is None else paint(report, lines))
    command = pager() if terminal and text else ""
    if command:
        _page(text, command)
    elif text:
        put(text)
    for note in report.notes:
        click.echo(plain(note), err=True)
    return report.exit_code


def pager() -> str:
    """Return the pager's command line, empty for none.

    ``PATCHQ_PAGER``, then ``PAGER``, then less; ``cat`` is none.
    """
    named = (os.environ.get(name) for name in ("PATCHQ_PAGER", "PAGER"))
    command = next((one for one in named if one is not None), "less")
    return "" if command.strip() in ("", "cat") else command


def _page(text: str, command: str) -> None:
    """Give a text to the pager and wait until it is left; ^C is the pager's meanwhile."""
    environ = {**_DEFAULTS, **os.environ}
    process = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environ)
    assert process.stdin is not None
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write((text + "\n").encode(errors="surrogateescape"))
        missing = process.wait() in (126, 127)  # the shell's words for no such command
    finally:
        signal.signal(signal.SIGINT, before)
    if missing:
        put(text)
