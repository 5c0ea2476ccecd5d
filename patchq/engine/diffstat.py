"""How many lines of which files changed: `git diff --stat`, drawn as git draws it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from patchq.engine import alignment, lines


@dataclass(frozen=True, slots=True)
class Count:
    """The lines that one file got and lost."""

    path: str
    added: int
    removed: int

    @property
    def total(self) -> int:
        """All lines that changed."""
        return self.added + self.removed


def count(path: str, before: bytes | None, after: bytes | None) -> Count:
    r"""Return the lines that a file got and lost; None is an absent file.

    Example:
        >>> count("x", b"1\n2\n", b"1\n3\n4\n")
        Count(path='x', added=2, removed=1)
    """
    found = alignment.changes(lines.split(before or b""), lines.split(after or b""))
    return Count(
        path,
        sum(change.b1 - change.b0 for change in found),
        sum(change.a1 - change.a0 for change in found),
    )


def drawn(counts: Sequence[Count], width: int = 80) -> list[str]:
    """Return a line for each file, and the sum; none for no file.

    Long names lose their beginning and the graph its scale, by git's rule: the graph
    gives way down to 3/8 of the `width`, then the names do.

    Example:
        >>> drawn([Count("x", 2, 1)])
        [' x | 3 ++-', ' 1 file changed, 2 insertions(+), 1 deletion(-)']
    """
    if not counts:
        return []
    most = max(one.total for one in counts)
    digits = len(str(most))
    names = max(_width(one.path) for one in counts)
    graph = most
    width = max(width, 22 + digits)
    if names + digits + 6 + graph > width:
        graph = min(graph, max(width * 3 // 8 - digits - 6, 6))
        if names > width - digits - 6 - graph:
            names = width - digits - 6 - graph
        else:
            graph = width - digits - 6 - names
    return [*(_line(one, names, digits, graph, most) for one in counts), summary(counts)]


def summary(counts: Iterable[Count]) -> str:
    """Return the sum in git's words.

    Example:
        >>> summary([Count("x", 2, 0), Count("y", 0, 0)])
        ' 2 files changed, 2 insertions(+)'
    """
    every = list(counts)
    added, removed = sum(one.added for one in every), sum(one.removed for one in every)
    text = f" {len(every)} file{'s' * (len(every) != 1)} changed"
    if added or not removed:
        text += f", {added} insertion{'s' * (added != 1)}(+)"
    if removed or not added:
        text += f", {removed} deletion{'s' * (removed != 1)}(-)"
    return text


def _line(one: Count, names: int, digits: int, graph: int, most: int) -> str:
    name = _cut(one.path, names)
    padded = name + " " * (names - _width(name))
    added, removed = one.added, one.removed
    if graph <= most:
        total = _scaled(one.total, graph, most)
        if total < 2 and added and removed:
            total = 2
        if added < removed:
            added = _scaled(added, graph, most)
            removed = total - added
        else:
            removed = _scaled(removed, graph, most)
            added = total - removed
    bar = "+" * added + "-" * removed
    return f" {padded} | {one.total:>{digits}}{' ' * bool(bar)}{bar}"


def _cut(path: str, room: int) -> str:
    """Return a name that fits, from a slash on where there is one."""
    if _width(path) <= room:
        return path
    rest = path
    while _width(rest) > max(room - 3, 0):
        rest = rest[1:]
    at = rest.find("/")
    return "..." + (rest[at:] if at >= 0 else rest)


def _scaled(value: int, width: int, most: int) -> int:
    return 1 + value * (width - 1) // most if value else 0


def _width(text: str) -> int:
    """Return how many columns a terminal needs for a text."""
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )
