"""Two patches of a series, one on the other, in the other order: the files end up the same.

They commute where the lower one does not make what the upper one changes: no line of the two
is the same or a neighbour, and neither makes, removes or renames a file that the other has.
Whatever is returned was put on in the new order and gave the very same files. Of a file that
only one of them has, its diff stays byte for byte; of one that both have, the hunks are
written anew, since their lines and their context have moved. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from patchq.engine import alignment, apply, cuts, diff, lines, overlap, quiltdiff, textdiff
from patchq.engine.alignment import Change
from patchq.engine.apply import File
from patchq.errors import ConflictError
from patchq.model import FileDiff, Hunk, Patch

Tree = Mapping[str, "File | None"]


@dataclass(frozen=True, slots=True)
class InTheWay:
    """Why two patches can not trade places: `lower` has something that `upper` stands on.

    `places` are lines of `path` as the lower patch leaves it, counted from 0; none where
    the file as a whole is meant, as `why` then says.
    """

    lower: str
    upper: str
    path: str
    places: tuple[range, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        """Return it in words: the patch, and its lines that are in the way."""
        if self.why:
            return f"{self.path}: {self.why}"
        return (
            f"{self.path}{overlap.named(self.places)}, as {self.lower} leaves it:"
            f" {self.upper} changes the same or the next lines"
        )


def moved(
    patches: Sequence[Patch], start: int, goal: int, base: Tree, *, search: bool = False
) -> tuple[Patch, ...] | InTheWay:
    """Return patches with the one at `start` in the place `goal`, or what is in its way.

    `base` has the files below all of them; `search` as `apply.apply` has it.

    Raises:
        ConflictError: they do not fit in the order that they are in.
    """
    out = list(patches)
    trees: list[Tree] = [base]
    for patch in out[: max(start, goal)]:
        trees.append(_put(patch, trees[-1], search))
    while start != goal:
        at = min(start, start + (1 if goal > start else -1))
        found = swap(out[at], out[at + 1], trees[at], search=search)
        if isinstance(found, InTheWay):
            return found
        out[at : at + 2] = found
        trees[at + 1 :] = [_put(out[at], trees[at], search)]
        start += 1 if goal > start else -1
    return tuple(out)


def swap(
    lower: Patch, upper: Patch, below: Tree, *, search: bool = False
) -> tuple[Patch, Patch] | InTheWay:
    """Return the upper patch and the lower one, each as it is in the other's place.

    Raises:
        ConflictError: they do not fit in the order that they are in.
    """
    middle = _put(lower, below, search)
    top = _put(upper, middle, search)
    shared = [path for path in upper.paths if path in lower.paths]
    files: dict[str, File | None] = {}
    for path in shared:
        found = _between(path, (lower, upper), (below.get(path), middle[path], top[path]))
        if isinstance(found, InTheWay):
            return found
        files[path] = found
    first = _rewritten(upper, {path: below.get(path) for path in shared}, files)
    second = _rewritten(lower, files, {path: top[path] for path in shared})
    for patch, other in ((first, upper), (second, lower)):
        if isinstance(patch, str):
            return InTheWay(lower.name, upper.name, patch, why=f"{other.name} has it in two diffs")
    assert isinstance(first, Patch)
    assert isinstance(second, Patch)
    return _proven(first, second, (below, top), search)


def _proven(
    first: Patch, second: Patch, trees: tuple[Tree, Tree], search: bool
) -> tuple[Patch, Patch] | InTheWay:
    """Return both patches where they give the same files in this order, too."""
    below, top = trees
    again = _put(second, _put(first, below, search), search)
    for path in dict.fromkeys((*first.paths, *second.paths)):
        if again.get(path) != top.get(path):  # pragma: no cover  (no case is known)
            why = "in the other order it would be another file"
            return InTheWay(second.name, first.name, path, why=why)
    return first, second


def _put(patch: Patch, tree: Tree, search: bool) -> Tree:
    """Return files with a patch on them."""
    result = apply.apply_patch(patch, tree.get, search=search)
    if isinstance(result, apply.PatchRejected):
        raise ConflictError(
            f"Patch {patch.name} does not fit on what is below it",
            why=result.message,
            mend=f"patchq push {patch.name}   # says what is in its way",
        )
    return {**tree, **result.after}


def _between(
    path: str, patches: tuple[Patch, Patch], files: tuple[File | None, File | None, File | None]
) -> File | InTheWay | None:
    """Return a file as the upper patch alone makes it, of its three states with both."""
    lower, upper = patches
    below, middle, top = files
    names = lower.name, upper.name
    renamed = [
        one for one in patches if any(d.renamed and path in (d.old, d.new) for d in one.diffs)
    ]
    if renamed:
        return InTheWay(*names, path, why=f"{renamed[0].name} renames it")
    if below is None or middle is None or top is None:
        made = below is None
        who = lower.name if below is None or middle is None else upper.name
        return InTheWay(*names, path, why=f"{who} {'makes' if made else 'removes'} it")
    if below[1] != middle[1] and middle[1] != top[1]:
        return InTheWay(*names, path, why="both change whether it is executable")
    texts = tuple(lines.split(file[0]) for file in (below, middle, top))
    mine = alignment.changes(texts[0], texts[1])
    over = alignment.changes(texts[1], texts[2])
    met = [one for one in mine if any(_meet(one, other) for other in over)]
    if met:
        return InTheWay(*names, path, tuple(range(one.b0, one.b1) for one in met))
    text = b"".join(_without(mine, over, texts))
    return text, top[1] if middle[1] != top[1] else below[1]


def _meet(mine: Change, over: Change) -> bool:
    """Return whether two changes have no line between them, in the text that is between."""
    return not (mine.b1 < over.a0 or over.a1 < mine.b0)


def _without(
    mine: Sequence[Change], over: Sequence[Change], texts: tuple[list[bytes], ...]
) -> Iterator[bytes]:
    """Yield the lines of the text between with the upper changes, without the lower ones."""
    below, middle, top = texts
    spots = [(one.b0, one.b1, below[one.a0 : one.a1]) for one in mine]
    spots += [(one.a0, one.a1, top[one.b0 : one.b1]) for one in over]
    at = 0
    for start, stop, new in sorted(spots, key=lambda spot: spot[:2]):
        yield from middle[at:start]
        yield from new
        at = stop
    yield from middle[at:]


def _rewritten(patch: Patch, before: Tree, after: Tree) -> Patch | str:
    """Return a patch with new hunks for some files, or the one that it has in two diffs."""
    if not before:
        return patch
    if patch.reverse:
        before, after = after, before
    body = lines.split(patch.text[len(patch.header) :])
    found = cuts.cut(body, source=patch.name)
    out = [*body[: found[0].start]]
    seen: set[str] = set()
    for cut, one in zip(found, patch.diffs, strict=True):
        path = one.new or one.old or ""
        rows = body[cut.start : cut.end]
        if path in before and one.hunks:
            if path in seen:
                return path
            seen.add(path)
            rows = _section(rows, cut.last - cut.start, one, (before[path], after[path]))
        out += rows
    text = patch.header + b"".join(out)
    header, diffs = diff.parse(text, name=patch.name, strip=patch.strip)
    return replace(patch, text=text, header=header, diffs=diffs)


def _section(
    rows: list[bytes], last: int, one: FileDiff, sides: tuple[File | None, File | None]
) -> list[bytes]:
    """Return the lines of one file's diff: its names as they are, its hunks of two texts.

    git's ``index`` line goes: the blobs that it names are others now.
    """
    old, new = (file and file[0] for file in sides)
    begin = next(at for at, row in enumerate(rows) if row.startswith(b"@@ -"))
    head = rows[:begin]
    context = max(map(_context, one.hunks), default=0) or 3
    path = one.new or one.old or ""
    if any(row.startswith(b"diff --git ") for row in head):
        head = [row for row in head if not row.startswith(b"index ")]
        text = textdiff.unified(old, new, path, context=context)
    else:
        text = quiltdiff.render(old, new, path, context=context, index=False)
    fresh = lines.split(text)
    start = next(at for at, row in enumerate(fresh) if row.startswith(b"@@ -"))
    return [*head, *fresh[start:], *rows[last:]]


def _context(hunk: Hunk) -> int:
    """Return how many lines of context a hunk has above or below."""
    marks = [mark for mark, _ in hunk.lines]
    changed = [at for at, mark in enumerate(marks) if mark != " "]
    return max(changed[0], len(marks) - 1 - changed[-1]) if changed else 0
