"""The unified diff of two texts, git-style, as bytes.

What `unified` writes, `patchq.engine.diff.parse` reads, and git, GNU patch and
quilt too. Lines are compared as git does it. Reading diffs is `diff`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patchq.engine import alignment, cquote, lines, sliding

_BLOB_ABSENT, _BLOB_EMPTY = "0000000", "e69de29"
# What became of a part: (equal or changed, start and stop in the old and the new lines).
_Code = tuple[str, int, int, int, int]
_NO_NEWLINE = b"\\ No newline at end of file\n"
# git's own pattern for Python (userdiff.c).
_HEADING = re.compile(rb"[ \t]*(?:class|(?:async[ \t]+)?def)[ \t]")


def unified(
    before: bytes | None,
    after: bytes | None,
    path: str,
    *,
    context: int = 3,
    old_mode: int | None = None,
    new_mode: int | None = None,
) -> bytes:
    r"""Return the git-style diff that turns `before` into `after`, empty where they are equal.

    None is an absent file. A hunk's heading is the ``def`` or ``class`` line above it.

    Example:
        >>> print(unified(b"1\n", b"2\n", "x").decode(), end="")
        diff --git a/x b/x
        --- a/x
        +++ b/x
        @@ -1 +1 @@
        -1
        +2
    """
    head = _git_header(before, after, path, old_mode, new_mode)
    if before == after:
        return "".join(head).encode() if len(head) > 1 else b""
    old, new = lines.split(before or b""), lines.split(after or b"")
    out = [*map(lines.encode, head)]
    if old != new:
        for prefix, side, mark in (("a/", before, "---"), ("b/", after, "+++")):
            shown = cquote.quote(prefix + path) if side is not None else "/dev/null"
            out.append(lines.encode(f"{mark} {shown}{chr(9) if ' ' in shown else ''}\n"))
        for group in _groups(old, new, context):
            out += _hunk_lines(old, new, group)
    return b"".join(out)


def _git_header(
    before: bytes | None,
    after: bytes | None,
    path: str,
    old_mode: int | None,
    new_mode: int | None,
) -> list[str]:
    """Return the ``diff --git`` line, and the lines for a new, deleted or changed mode."""
    head = [f"diff --git {cquote.quote('a/' + path)} {cquote.quote('b/' + path)}\n"]
    if before is None and after is not None:
        head.append(f"new file mode {new_mode or 0o100644:o}\n")
    elif after is None and before is not None:
        head.append(f"deleted file mode {old_mode or 0o100644:o}\n")
    elif before is not None and old_mode != new_mode and old_mode and new_mode:
        head += [f"old mode {old_mode:o}\n", f"new mode {new_mode:o}\n"]
    if not before and not after and before != after:
        pair = [_BLOB_ABSENT if data is None else _BLOB_EMPTY for data in (before, after)]
        head.append(f"index {pair[0]}..{pair[1]}\n")
    return head


def _groups(old: list[bytes], new: list[bytes], context: int) -> Iterator[list[_Code]]:
    """Yield the changes, those that lie close together in one list, with their context."""
    group: list[_Code] = []
    codes = _codes(old, new)
    for number, (tag, a, b, c, d) in enumerate(codes):
        near = group and number < len(codes) - 1 and b - a <= 2 * context
        if tag != "equal" or near:
            group.append((tag, a, b, c, d))
        else:
            if group:
                yield [*group, (tag, a, min(b, a + context), c, min(d, c + context))]
            group = [(tag, max(a, b - context), b, max(c, d - context), d)]


def _codes(old: list[bytes], new: list[bytes]) -> list[_Code]:
    """Return what is equal and what changed, in turn, an equal part first and last."""
    out: list[_Code] = []
    at, to = 0, 0
    for found in alignment.changes(old, new):
        change = sliding.slid(found, (old, new), at)
        out.append(("equal", at, change.a0, to, change.b0))
        out.append(("changed", *change))
        at, to = change.a1, change.b1
    return [*out, ("equal", at, len(old), to, len(new))]


def _hunk_lines(old: list[bytes], new: list[bytes], group: list[_Code]) -> Iterator[bytes]:
    """Return the lines of one hunk."""
    spans = []
    for start, stop in ((group[0][1], group[-1][2]), (group[0][3], group[-1][4])):
        count = stop - start
        spans.append(f"{start + (count > 0)}" + (f",{count}" if count != 1 else ""))
    yield f"@@ -{spans[0]} +{spans[1]} @@".encode() + _heading(old, group[0][1]) + b"\n"
    for tag, old_start, old_stop, new_start, new_stop in group:
        if tag == "equal":
            yield from _marked(b" ", old[old_start:old_stop])
        else:
            yield from _marked(b"-", old[old_start:old_stop])
            yield from _marked(b"+", new[new_start:new_stop])


def _marked(mark: bytes, part: Sequence[bytes]) -> Iterator[bytes]:
    """Return lines with their mark, and the marker below one without newline."""
    for line in part:
        yield mark + line
        if not line.endswith(b"\n"):
            yield b"\n" + _NO_NEWLINE


def _heading(old: list[bytes], start: int) -> bytes:
    """Return the nearest ``class`` or ``def`` line above a hunk, as git puts it behind the @@."""
    for line in reversed(old[:start]):
        if _HEADING.match(line):
            return b" " + line.strip()[:80]
    return b""
