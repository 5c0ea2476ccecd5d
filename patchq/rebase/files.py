"""The files of one patch, each merged into the new release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from patchq.engine import apply, merge, merging
from patchq.engine.apply import File
from patchq.engine.merge import Merged
from patchq.model import FileDiff, Patch
from patchq.rebase import relocated
from patchq.rebase.memory import Memory
from patchq.rebase.step import Word
from patchq.rebase.tree import Tree


@dataclass(frozen=True, slots=True)
class Labels:
    """What the sides of a conflict are called: ``vllm 0.17.0``, ``vllm 0.16.0``, the patch."""

    ours: str
    base: str
    theirs: str


@dataclass(frozen=True, slots=True)
class FileMerge:
    """One file on the new release.

    `path` is its path there, `origin` the one before the patch where the patch renames it,
    `source` the one in the old release, below the patch. `offsets`: lines by which each
    hunk of a file that moved lies elsewhere.
    `file` is the result, or what the work tree gets where `word` is stuck. `upstream`: what
    the patch does is there already, all of it; `found` says which parts are.
    """

    path: str
    word: Word
    file: File | None
    upstream: bool = False
    origin: str = ""
    source: str = ""
    detail: str = ""
    found: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sides:
    """The three sides of one file; `source` is its path below the patch."""

    path: str
    source: str
    base: File | None
    ours: File | None
    theirs: File | None


def merged(
    patch: Patch, theirs: Mapping[str, File | None], old: Tree, new: Tree, memory: Memory | None
) -> Iterator[FileMerge]:
    """Yield the files of a patch on the new release; `theirs` are the old ones with it."""
    labels = Labels(
        f"{new.store.distribution} {new.release}",
        f"{old.store.distribution} {old.release}",
        patch.name,
    )
    renamed = renames(patch)
    left = set(renamed.values())
    for path, file in theirs.items():
        source = renamed.get(path, path)
        if file is None and path in left:
            if new.file(path) is not None:
                yield FileMerge(path, Word.EXACT, None)
            continue
        sides = _Sides(path, source, old.file(source), new.file(source), file)
        one = _file(sides, old, new, memory, labels)
        if one.word is Word.MERGED:
            one = _moved(one, patch, sides)
        yield replace(one, origin=source if source != path else "", source=source)


def renames(patch: Patch) -> dict[str, str]:
    """Return, for each path that the patch gives a file, the one that it takes it from."""
    pairs = ((diff.old, diff.new) for diff in patch.diffs if diff.renamed)
    return {
        (old if patch.reverse else new): (new if patch.reverse else old)
        for old, new in pairs
        if old is not None and new is not None
    }


def _file(sides: _Sides, old: Tree, new: Tree, memory: Memory | None, labels: Labels) -> FileMerge:
    base, ours, theirs = sides.base, sides.ours, sides.theirs
    if ours == base:
        return FileMerge(sides.path, Word.EXACT, theirs)
    if ours == theirs:
        said = "it is not there any more" if ours is None else "it has all of it"
        return FileMerge(sides.path, Word.EXACT, ours, True, found=(f"{sides.path}: {said}",))
    if base is None:
        return _stuck(sides, ours, f"{labels.ours} has a file of this name, and another one")
    if theirs is None:
        return _stuck(sides, ours, f"the patch deletes it, and {labels.ours} changed it")
    if ours is None:
        return _gone(sides, old, new, memory, labels)
    return _texts(sides, base, ours, theirs, memory, labels)


def _stuck(sides: _Sides, file: File | None, reason: str) -> FileMerge:
    return FileMerge(sides.path, Word.CONFLICT, file, reasons=(f"{sides.path}: {reason}",))


def _texts(
    sides: _Sides, base: File, ours: File, theirs: File, memory: Memory | None, labels: Labels
) -> FileMerge:
    """Merge a file that is on all three sides, its bytes and its mode."""
    mode = ours[1] if base[1] == theirs[1] else theirs[1]
    done = merging.merge(base[0], ours[0], theirs[0], path=sides.path)
    plain = merge.merge(base[0], ours[0], theirs[0])
    found = tuple(_found(sides.path, plain))
    if done.text is None:
        known = memory.recall(plain) if memory is not None else None
        if known is not None:
            said = f"{sides.path}: resolved as it was before, from memory"
            return FileMerge(sides.path, Word.REMEMBERED, (known, mode), flags=(said,))
        marked = plain if plain.conflicts else None
        text = ours[0] if marked is None else marked.render(_named(labels))
        reasons = tuple(f"{sides.path}: {why}" for why in done.reasons)
        return FileMerge(sides.path, Word.CONFLICT, (text, mode), found=found, reasons=reasons)
    file = done.text, mode
    flags = tuple(f"{sides.path}: {flag}" for flag in done.flags)
    if file == ours:
        found = found or (f"{sides.path}: merged, the patch brings nothing: all of it is there",)
        return FileMerge(sides.path, Word.EXACT, file, True, found=found, flags=flags)
    word = Word.STRUCTURAL if done.word == "structural" else Word.MERGED
    return FileMerge(sides.path, word, file, found=found, flags=flags)


def _named(labels: Labels) -> tuple[str, str, str]:
    return labels.ours, labels.base, labels.theirs


def _found(path: str, plain: Merged) -> Iterator[str]:
    """Yield what of the patch the new release has already, by the text."""
    for region in plain.regions:
        if region.side == "both":
            count = len(region.ours)
            what = f"its {count} line{'s' * (count != 1)}" if count else "that lines are gone"
            yield f"{path}:{region.line}: {what} there already"


def _gone(sides: _Sides, old: Tree, new: Tree, memory: Memory | None, labels: Labels) -> FileMerge:
    """Merge a file into where upstream moved it; else say where its definitions went."""
    base, theirs = sides.base, sides.theirs
    assert base is not None
    assert theirs is not None
    there = relocated.file(sides.source, old, new)
    if there is None:
        hints = relocated.definitions((base[0], theirs[0]), old, new)
        reasons = (f"{sides.source}: {labels.ours} has no such file", *hints)
        return FileMerge(sides.path, Word.GONE, theirs, reasons=reasons)
    ours = new.file(there)
    path = there if sides.path == sides.source else sides.path
    at = _Sides(path, there, base, ours, theirs)
    said = f"{sides.source} is {there} in {labels.ours}"
    if sides.source != sides.path:
        return _stuck(sides, theirs, f"the patch renames {sides.source}, and {said}")
    one = _file(at, old, new, memory, labels)
    word = Word.MERGED if one.word is Word.EXACT and not one.upstream else one.word
    return replace(one, word=word, detail=said, flags=(said, *one.flags))


def _moved(one: FileMerge, patch: Patch, sides: _Sides) -> FileMerge:
    """Say `moved`, or `exact`, where the same hunks fit and give the very same text."""
    diffs = [_turned(diff, patch) for diff in patch.diffs]
    mine = [diff for diff in diffs if diff.new == sides.path and diff.hunks]
    if len(mine) != 1 or sides.ours is None or one.file is None or one.detail:
        return one
    done = apply.apply(mine[0], sides.ours[0], search=True)
    if not isinstance(done, apply.Applied) or done.data != one.file[0]:
        return one
    if not any(done.offsets):
        return replace(one, word=Word.EXACT)
    said = ", ".join(f"{offset:+}" for offset in done.offsets)
    detail = f"{one.path}: {said} lines"
    return replace(one, word=Word.MOVED, detail=detail, offsets=done.offsets)


def _turned(diff: FileDiff, patch: Patch) -> FileDiff:
    return apply.reversed_diff(diff) if patch.reverse else diff
