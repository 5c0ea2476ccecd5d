"""Which of several texts of a file, each made of the one before, brought each of its lines."""

from __future__ import annotations

from collections.abc import Sequence

from patchq.engine import lines, quiltdiff


def origins(texts: Sequence[bytes | None]) -> list[int]:
    r"""Return for each line of the last text which text brought it; 0 is the first.

    None is an absent file. A line that was changed counts as brought anew.

    Example:
        >>> origins([b"foo\nbar\n", b"foo\nBar\n", b"new\nfoo\nBar\n"])
        [2, 0, 1]
    """
    old = lines.split(texts[0] or b"")
    brought = [0] * len(old)
    for number, text in enumerate(texts[1:], 1):
        new = lines.split(text or b"")
        out: list[int] = []
        at = 0
        for change in quiltdiff.changes(old, new, 0):
            out += brought[at : change.a0]
            out += [number] * (change.b1 - change.b0)
            at = change.a1
        brought = out + brought[at:]
        old = new
    return brought
