"""Colours for what is shown: diffs as git has them, marks of a series as quilt has them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import click

from patchq.report import Report

F = TypeVar("F", bound=Callable[..., Any])

_RESET, _BOLD, _RED, _GREEN, _YELLOW, _CYAN = (
    f"\x1b[{code}m" for code in ("", "1", "31", "32", "33", "36")
)
_HUNK = re.compile(r"(@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@)(.*)")
_HEADS = (
    *("diff --git ", "index ", "--- ", "+++ ", "Index: ", "====", "Binary files "),
    *("new file mode ", "deleted file ", "old mode ", "new mode ", "rename ", "similarity "),
)
_STAT = re.compile(r"( .* \| +\d+ )(\+*)(-*)")

_FAILED = re.compile(r"FAILED|hunks? ignored|No file to patch|does not apply|is there already")

option = click.option(
    "--color",
    metavar="WHEN",
    is_flag=False,
    flag_value="always",
    default="auto",
    type=click.Choice(["always", "auto", "never"]),
    help="Colours: always, never, or on a terminal (auto).",
)


def wanted(color: str) -> bool:
    """Return whether ``--color`` asks for colours here; ``NO_COLOR`` turns auto off."""
    if color == "auto":
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return color == "always"


def diff(_: Report, lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a diff, or of a ``--stat``, in git's colours.

    Hunks are counted: a line that was removed may look like a file's name.
    """
    old = new = 0
    for line in lines:
        head = _HUNK.fullmatch(line)
        if head and not (old or new):
            old, new = (1 if count is None else int(count) for count in (head[2], head[3]))
            yield f"{_CYAN}{head[1]}{_RESET}{head[4]}"
        elif (old or new) and line[:1] in ("-", "+", " ", ""):
            old -= line[:1] != "+"
            new -= line[:1] != "-"
            colour = {"-": _RED, "+": _GREEN}.get(line[:1])
            yield f"{colour}{line}{_RESET}" if colour else line
        elif line.startswith(_HEADS):
            yield f"{_BOLD}{line}{_RESET}"
        elif stat := _STAT.fullmatch(line):
            yield f"{stat[1]}{_coloured(_GREEN, stat[2])}{_coloured(_RED, stat[3])}"
        else:
            yield line


def marks(report: Report, lines: Iterable[str]) -> Iterator[str]:
    """Yield the names of patches: applied ones green, the top one yellow, as quilt has it."""
    held = report.document["applied"]
    named = report.document["patches"]
    assert isinstance(held, list)
    assert isinstance(named, list)
    for name, line in zip(named, lines, strict=True):
        colour = "" if name not in held else _YELLOW if name == report.document["top"] else _GREEN
        yield _coloured(colour, line) if colour else line


def moves(_: Report, lines: Iterable[str]) -> Iterator[str]:
    """Yield what a push says: hunks that failed red, those that were moved in cyan, as quilt."""
    for line in lines:
        if _FAILED.search(line):
            yield _coloured(_RED, line)
        elif line.startswith("Hunk #"):
            line = re.sub(r"with fuzz \d+", lambda found: _coloured(_RED, found[0]), line)
            yield re.sub(r"offset -?\d+ lines?", lambda found: _coloured(_CYAN, found[0]), line)
        else:
            yield line


def _coloured(colour: str, text: str) -> str:
    return f"{colour}{text}{_RESET}" if text else ""
