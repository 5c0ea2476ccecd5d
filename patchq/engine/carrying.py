"""The patches above one that was edited, carried onto what it makes now.

What lay below a patch before, what it made of that, and what lies below it now are three texts:
their merge by lines is what it should make. Only what they decide is carried: the same hunks
at the same places or moved, or merged where the changes do not touch. Anything else waits
for the user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from patchq.engine import apply, diff, merging, patchtext
from patchq.engine.apply import File
from patchq.model import Patch

Files = Mapping[str, "File | None"]


@dataclass(frozen=True, slots=True)
class Carried:
    """A series as it is to be written: `words` says which patches are written anew, and how.

    `patches` ends below the first that does not fit; `unfit` is its name, and `why`.
    """

    patches: tuple[Patch, ...]
    words: Mapping[str, str]
    unfit: str | None = None
    why: str = ""


def carry(
    old: Sequence[Patch], new: Sequence[Patch], read: Callable[[str], File | None]
) -> Carried:
    """Return the patches of `new`, those that `old` has, too, carried where they must be.

    `read` returns the files below both.
    """
    known = _steps(old, read)
    files: dict[str, File | None] = {}
    out: list[Patch] = []
    words: dict[str, str] = {}
    for patch in new:
        below = {path: files[path] if path in files else read(path) for path in patch.paths}
        was = known.get(patch.name)
        if was is None or was[0].text != patch.text or was[1] == below:
            laid, word = patch, ""
        else:
            laid, word = _laid(patch, was[1], was[2], below)
        done = apply.apply_patch(laid, below.get)
        if isinstance(done, apply.PatchRejected):
            return Carried(tuple(out), words, patch.name, word or done.message)
        if laid is not patch:
            words[patch.name] = word
        out.append(laid)
        files.update(done.after)
    return Carried(tuple(out), words)


def _steps(
    old: Sequence[Patch], read: Callable[[str], File | None]
) -> dict[str, tuple[Patch, Files, Files]]:
    """Return of each patch that fitted what lay below it, and what it made of that."""
    files: dict[str, File | None] = {}
    out: dict[str, tuple[Patch, Files, Files]] = {}
    for patch in old:
        below = {path: files[path] if path in files else read(path) for path in patch.paths}
        done = apply.apply_patch(patch, below.get)
        if isinstance(done, apply.PatchRejected):
            break
        out[patch.name] = (patch, below, {**below, **done.after})
        files.update(done.after)
    return out


def _laid(patch: Patch, base: Files, theirs: Files, ours: Files) -> tuple[Patch, str]:
    """Return a patch that makes of `ours` what it made of `base`, and what had to be done.

    Where that can not be told, it is the patch as it is, and the word says why not.
    """
    goal: dict[str, File | None] = {}
    for path in ours:
        merged = _merged(path, base[path], theirs[path], ours[path])
        if isinstance(merged, str):
            return patch, f"{path}: {merged}"
        goal[path] = merged[0]
    for search in (False, True):
        done = apply.apply_patch(patch, ours.get, search=search)
        if not isinstance(done, apply.PatchRejected) and {**ours, **done.after} == goal:
            if not search:
                return patch, ""
            return _read(patch, patchtext.shifted(patch, done.offsets)), "its lines moved"
    if any(one.renamed for one in patch.diffs):
        return patch, "it renames a file, and what it names was changed below it"
    before = {path: ours[path] for path in goal}
    text = patchtext.patch(patch.header, before, goal, {})
    plain = replace(patch, strip=1, reverse=False)
    return _read(plain, text), "merged with what is below it"


def _merged(
    path: str, base: File | None, theirs: File | None, ours: File | None
) -> tuple[File | None] | str:
    """Return what a patch makes of a file that was changed below it, or why nobody can tell."""
    if ours == base:
        return (theirs,)
    if base is None or theirs is None or ours is None:
        return "it was made or taken away below it"
    found = merging.merge(base[0], ours[0], theirs[0], path=path)
    if found.text is None:
        return "; ".join(found.reasons)
    if found.flags:
        return "it can be merged with a choice only: " + "; ".join(found.flags)
    return ((found.text, theirs[1] if base[1] != theirs[1] else ours[1]),)


def _read(patch: Patch, text: bytes) -> Patch:
    header, diffs = diff.parse(text, name=patch.name, strip=patch.strip)
    return replace(patch, text=text, header=header, diffs=diffs)
