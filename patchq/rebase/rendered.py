"""A patch file written anew for another release, and how it differs from the old one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from patchq.engine import apply, lines
from patchq.engine.patchtext import patch as patch  # all writing of patches under one name
from patchq.engine.patchtext import shifted as shifted
from patchq.model import Patch


def changed(old: Patch, new: Patch) -> str:
    """Return how a new patch's diffs differ from the old one's: a diff of diffs.

    Headers, headings and line numbers do not count; empty where all else is equal.
    """
    found = list(difflib.unified_diff(list(_body(old)), list(_body(new)), "", "", lineterm=""))
    return "\n".join(line if line[:2] != "@@" else "@@" for line in found[2:])


def _body(patch: Patch) -> Iterator[str]:
    """Yield the lines of a patch's diffs as they are meant."""
    for given in patch.diffs:
        one = apply.reversed_diff(given) if patch.reverse else given
        yield (
            f"{one.old or '(new)'} -> {one.new or '(gone)'}"
            if one.old != one.new
            else str(one.new)
        )
        if one.old_mode != one.new_mode:
            yield f"mode {one.old_mode or 0:o} -> {one.new_mode or 0:o}"
        for hunk in one.hunks:
            yield "@@"
            for mark, text in hunk.lines:
                end = "" if text.endswith(b"\n") else " (no newline at end of file)"
                yield mark + lines.decode(text.removesuffix(b"\n")) + end
