"""The unified diff of two texts, git-style, as bytes.

What `unified` writes, `patchq.engine.diff.parse` reads, and git, GNU patch and
quilt too. Lines are compared as git does it. Reading diffs is `diff`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patchq.engine import alignment, cquote, hunks, lines, sliding

_BLOB_ABSENT, _BLOB_EMPTY = "0000000", "e69de29"
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
        out += hunks.lay_out(old, new, _changes(old, new), context, _heading)
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


def _changes(old: list[bytes], new: list[bytes]) -> Iterator[alignment.Change]:
    """Yield the changes where git shows them: slid to where they read best."""
    floor = 0
    for found in alignment.changes(old, new):
        change = sliding.slid(found, (old, new), floor)
        yield change
        floor = change.a1


def _heading(old: Sequence[bytes], start: int) -> bytes:
    """Return the nearest ``class`` or ``def`` line above a hunk, as git puts it behind the @@."""
    for line in reversed(old[:start]):
        if _HEADING.match(line):
            return b" " + line.strip()[:80]
    return b""
