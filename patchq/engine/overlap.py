"""Whether an edit and a patch touch the same lines of a common base."""

from __future__ import annotations

import difflib

from patchq.engine import lines
from patchq.model import FileDiff


def edited(base: bytes, now: bytes) -> list[range]:
    """Return the lines of `base` (0-based) that `now` changed; an insertion is an empty range."""
    matcher = difflib.SequenceMatcher(None, lines.split(base), lines.split(now), autojunk=False)
    return [range(i, j) for tag, i, j, _, _ in matcher.get_opcodes() if tag != "equal"]


def changed(diff: FileDiff) -> list[range]:
    """Return the lines of the base (0-based) that a diff removes or puts lines between."""
    out = []
    for hunk in diff.hunks:
        at = max(hunk.old_start - 1, 0) if hunk.old_count else hunk.old_start
        start: int | None = None
        for mark, _ in hunk.lines:
            if mark == " ":
                if start is not None:
                    out.append(range(start, at))
                    start = None
                at += 1
                continue
            start = at if start is None else start
            at += mark == "-"
        if start is not None:
            out.append(range(start, at))
    return out


def overlaps(base: bytes, now: bytes, diff: FileDiff) -> bool:
    """True where an edit of `base` touches or borders on lines that `diff` changes.

    Example:
        >>> from patchq.engine.diff import parse
        >>> text = b"--- a/f\\n+++ b/f\\n@@ -1,2 +1,2 @@\\n-a\\n+A\\n b\\n"
        >>> one = parse(text, name="x.patch")[1][0]
        >>> overlaps(b"a\\nb\\n", b"Z\\nb\\n", one)
        True
        >>> overlaps(b"a\\nb\\nc\\n", b"a\\nb\\nX\\n", one)
        False
    """
    mine = changed(diff)
    return any(
        edit.start <= own.stop and own.start <= edit.stop
        if not (len(edit) and len(own))
        else edit.start < own.stop and own.start < edit.stop
        for edit in edited(base, now)
        for own in mine
    )
