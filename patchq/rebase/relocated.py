"""Where upstream put a file, or a definition, that is not at its old place any more."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from patchq.engine import lines
from patchq.rebase.tree import Tree

# git's own threshold for a rename (diffcore.h, DEFAULT_RENAME_SCORE).
SIMILAR = 0.5
# A second one as near as this, and there is no telling which it is.
_APART = 0.1
_DEFINED = re.compile(rb"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)


def file(path: str, old: Tree, new: Tree) -> str | None:
    """Return where the file of the old release is in the new one; None where that is not clear.

    The same bytes at one new place, else the one new file of the same kind that shares
    at least half of its lines.
    """
    fresh = [one for one in new.listing if one not in old.listing]
    blob = old.listing.get(path)
    same = [one for one in fresh if new.listing[one] == blob]
    if same:
        return same[0] if len(same) == 1 else None
    suffix, text = path.rpartition(".")[2], old.read(path)
    if text is None:
        return None
    fresh = [one for one in fresh if one.endswith(suffix)]
    new.load(fresh)
    scores = sorted(((_alike(text, new.read(one) or b""), one) for one in fresh), reverse=True)
    if not scores or scores[0][0] < SIMILAR:
        return None
    clear = len(scores) == 1 or scores[0][0] - scores[1][0] >= _APART
    return scores[0][1] if clear else None


def definitions(texts: tuple[bytes, bytes], old: Tree, new: Tree) -> Iterator[str]:
    """Yield sentences on where the defs and classes are now that a patch of a lost file changes.

    `texts`: the file below the patch, and with it.
    """
    wanted = _changed(*texts)
    if not wanted:
        return
    candidates = [
        path
        for path, blob in new.listing.items()
        if path.endswith(".py") and old.listing.get(path) != blob
    ]
    new.load(candidates)
    for name in wanted:
        pattern = re.compile(
            rb"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+" + name + rb"\b", re.MULTILINE
        )
        for path in candidates:
            found = pattern.search(new.read(path) or b"")
            had = pattern.search(old.read(path) or b"") if found else None
            if found and not had:
                line = (new.read(path) or b"")[: found.start()].count(b"\n") + 1
                yield f"`{name.decode(errors='replace')}` is in {path}:{line} now"


def _changed(before: bytes, after: bytes) -> list[bytes]:
    """Return the names of the defs and classes whose bodies two texts differ in."""
    here, there = _bodies(before), _bodies(after)
    return [name for name in here if there.get(name) != here[name]]


def _bodies(text: bytes) -> dict[bytes, bytes]:
    starts = list(_DEFINED.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return {match[1]: text[match.start() : end] for match, end in zip(starts, ends, strict=False)}


def _alike(one: bytes, other: bytes) -> float:
    """Return which part of the longer text's lines both have, each as often as it is there."""
    mine, theirs = (Counter(_telling(text)) for text in (one, other))
    return (mine & theirs).total() / max(mine.total(), theirs.total(), 1)


def _telling(text: bytes) -> list[bytes]:
    return [line.strip() for line in lines.split(text) if len(line.strip()) > 3]
