"""What changed between two texts, laid out as the hunks of a unified diff.

Where the changes are is said by the caller: git and GNU diff show the same change at
different places. The names above the hunks are `textdiff`'s and `quiltdiff`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from patchq.engine.alignment import Change

_NO_NEWLINE = b"\\ No newline at end of file\n"
# What became of a part: (equal or changed, start and stop in the old and the new lines).
_Part = tuple[str, int, int, int, int]


def lay_out(
    old: Sequence[bytes],
    new: Sequence[bytes],
    changes: Iterable[Change],
    context: int,
    heading: Callable[[Sequence[bytes], int], bytes] | None = None,
) -> Iterator[bytes]:
    r"""Yield the lines of all hunks; `changes` are in order and have equal lines between them.

    `heading` gives what stands behind the ``@@`` of a hunk, of the old lines and where it begins.

    Example:
        >>> b"".join(lay_out([b"1\n"], [b"2\n"], [Change(0, 1, 0, 1)], 3))
        b'@@ -1 +1 @@\n-1\n+2\n'
    """
    for group in _groups(old, new, changes, context):
        begin = group[0][1]
        spans = []
        for start, stop in ((begin, group[-1][2]), (group[0][3], group[-1][4])):
            count = stop - start
            spans.append(f"{start + (count > 0)}" + (f",{count}" if count != 1 else ""))
        above = heading(old, begin) if heading is not None else b""
        yield f"@@ -{spans[0]} +{spans[1]} @@".encode() + above + b"\n"
        for tag, old_start, old_stop, new_start, new_stop in group:
            if tag == "equal":
                yield from _marked(b" ", old[old_start:old_stop])
            else:
                yield from _marked(b"-", old[old_start:old_stop])
                yield from _marked(b"+", new[new_start:new_stop])


def _groups(
    old: Sequence[bytes], new: Sequence[bytes], changes: Iterable[Change], context: int
) -> Iterator[list[_Part]]:
    """Yield the changes, those that lie close together in one list, with their context."""
    group: list[_Part] = []
    parts = _parts(old, new, changes)
    for number, (tag, a, b, c, d) in enumerate(parts):
        near = group and number < len(parts) - 1 and b - a <= 2 * context
        if tag != "equal" or near:
            group.append((tag, a, b, c, d))
        else:
            if group:
                yield [*group, (tag, a, min(b, a + context), c, min(d, c + context))]
            group = [(tag, max(a, b - context), b, max(c, d - context), d)]


def _parts(old: Sequence[bytes], new: Sequence[bytes], changes: Iterable[Change]) -> list[_Part]:
    """Return what is equal and what changed, in turn, an equal part first and last."""
    out: list[_Part] = []
    at, to = 0, 0
    for change in changes:
        out += [("equal", at, change.a0, to, change.b0), ("changed", *change)]
        at, to = change.a1, change.b1
    return [*out, ("equal", at, len(old), to, len(new))]


def _marked(mark: bytes, part: Sequence[bytes]) -> Iterator[bytes]:
    """Return lines with their mark, and the marker below one without newline."""
    for line in part:
        yield mark + line
        if not line.endswith(b"\n"):
            yield b"\n" + _NO_NEWLINE
