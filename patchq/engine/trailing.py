"""White space at the ends of lines that a change brings."""

from __future__ import annotations

from collections.abc import Iterator

from patchq.engine import alignment, lines


def ends(before: bytes | None, after: bytes | None) -> tuple[int, ...]:
    r"""Return the numbers of the lines that are new in `after` and end in white space.

    Example:
        >>> ends(b"a \nb\n", b"a \nb \n")
        (2,)
    """
    new = lines.split(after or b"")
    return tuple(at + 1 for at in _new(before, after) if _bare(new[at]) != new[at])


def stripped(before: bytes | None, after: bytes) -> bytes:
    """Return `after` without white space at the ends of the lines that are new in it."""
    new = lines.split(after)
    for at in _new(before, after):
        new[at] = _bare(new[at])
    return b"".join(new)


def _new(before: bytes | None, after: bytes | None) -> Iterator[int]:
    for change in alignment.changes(lines.split(before or b""), lines.split(after or b"")):
        yield from range(change.b0, change.b1)


def _bare(line: bytes) -> bytes:
    end = b"\n" if line.endswith(b"\n") else b""
    return line.removesuffix(b"\n").rstrip(b" \t\r\f\v") + end
