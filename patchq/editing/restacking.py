"""The stack of an environment with its own patches in another order, or with other texts.

What each patch is on what is now below it is found by putting all of them on anew, in
thought, other queues' patches between them; the judge looks at every patch whose ground changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchq import plan
from patchq.conversation import desk, files, judging, plain
from patchq.conversation.desk import Desk
from patchq.engine import apply
from patchq.engine import layers as laying
from patchq.engine.layers import Layer
from patchq.errors import ConflictError, PatchqError
from patchq.model import AppliedPatch, FileState, Patch, PathChange, sha256
from patchq.queue import editing, reading, store
from patchq.transport.channel import Conversation

Tree = Mapping[str, "apply.File | None"]


def patches(at: Desk, count: int) -> tuple[Patch, ...]:
    """Return the lowest patches of a series, read; in a plain tree one without a file is empty.

    Raises:
        PatchqError: one of them can not be read.
    """
    queue, release = desk.queue_at(at, at.seen.release), at.seen.release
    out: list[Patch] = []
    for entry, (_, one) in zip(
        store.series(queue, release).entries, store.each(queue, release), strict=True
    ):
        if len(out) == count:
            break
        missing = reading.read(queue.folder / release / entry.name) is None
        if at.seen.tree and missing:
            one = Patch(entry.name, b"", b"", (), entry.strip, entry.reverse)
        if isinstance(one, PatchqError):
            raise one
        out.append(one)
    return tuple(out)


def check_texts(at: Desk, found: Sequence[Patch], read: editing.Read) -> None:
    """Raise where a patch that is on is not what its file says: what would be moved is the file.

    Raises:
        PatchqError: it was changed in the queue, or its files were edited.
    """
    tree: dict[str, apply.File | None] = {}
    for applied, patch in zip(at.seen.applied, found, strict=False):
        edited = [c.path for c in applied.changes if at.edited(c.path)]
        if edited:
            raise PatchqError(
                f"{edited[0]} has edits that are in no patch yet",
                why=f"it is a file of {applied.patch}, and they belong to the topmost one",
                mend=f"patchq refresh, or: patchq revert {edited[0]}",
            )
        if at.seen.tree:
            result = apply.apply_patch(
                patch, lambda path: tree[path] if path in tree else read(path), search=True
            )
            changes = result.changes if isinstance(result, apply.PatchApplied) else None
            same = changes is not None and set(changes) == _real(applied)
            tree.update(result.after if isinstance(result, apply.PatchApplied) else {})
        else:
            text = at.seen.texts.get(applied.sha256, b"")
            same = sha256(patch.text) == applied.sha256 or _says(text, patch) == patch.diffs
        if not same:
            raise PatchqError(
                f"Patch {applied.patch} is not as it was applied",
                why="its file was changed after that, or it was not refreshed",
                mend=f"patchq refresh {applied.patch}",
            )


def _real(applied: AppliedPatch) -> set[PathChange]:
    return {change for change in applied.changes if change.before != change.after}


def _says(text: bytes, patch: Patch) -> object:
    from patchq.engine import diff

    return diff.parse(text, name=patch.name, strip=patch.strip)[1]


def restacked(
    at: Desk, mine: Sequence[Patch]
) -> Conversation[tuple[tuple[AppliedPatch, ...], dict[str, bytes]]]:
    """Return the stack with the queue's patches in this order, and their texts by digest.

    Raises:
        ConflictError: they do not fit so on what other queues have there.
    """
    paths = list(dict.fromkeys(change.path for one in at.stack for change in one.changes))
    tree = dict((yield from desk.texts(at, 0, paths)))
    fresh = iter(mine)
    held = {one.patch: one for one in at.seen.applied}
    layers: list[Layer] = []
    rows: list[AppliedPatch] = []
    exact = dict(tree)
    for applied in at.stack:
        if applied.queue != at.seen.queue.name:
            layers += files.layers_of(at.survey, at.seen.texts, (applied,))
            rows.append(applied)
            continue
        patch = next(fresh)
        rows.append(replace(held[patch.name]))
        layers.append(Layer(applied.queue, _exact(patch, exact) if at.seen.tree else patch))
    stack = []
    blobs: dict[str, bytes] = {}
    for applied, one in zip(rows, laying.lay(layers, tree), strict=False):
        if isinstance(one, laying.Clash):
            raise ConflictError(
                f"Patch {one.layer.patch.name} does not fit in this order",
                why=one.rejected.message if one.rejected else "another queue's lines are there",
                mend="patchq overlap",
            )
        stack.append(_entry(applied, one, tree))
        blobs[stack[-1].sha256] = one.layer.patch.text
        tree.update(one.result.after)
    return tuple(stack), blobs


def _exact(patch: Patch, tree: dict[str, apply.File | None]) -> Patch:
    """Return a patch of a plain tree as its record has it; `tree` goes on with it."""
    result = apply.apply_patch(patch, tree.get, search=True)
    if isinstance(result, apply.PatchRejected):
        raise ConflictError(
            f"Patch {patch.name} does not fit in this order", why=result.message, mend="patchq top"
        )
    exact = plain.recorded(patch.name, tree, result.after, result.changes)
    tree.update(result.after)
    return exact


def _entry(applied: AppliedPatch, one: laying.Laid, tree: Tree) -> AppliedPatch:
    """Return what is recorded of a patch in its new place; files only added to it stay."""
    changed = [change.path for change in one.result.changes]
    added = [c.path for c in applied.changes if c.path not in changed]
    states = {path: FileState.of(*(tree.get(path) or (None,))) for path in added}
    changes = (*one.result.changes, *(PathChange(p, states[p], states[p]) for p in added))
    if applied.sha256 == sha256(one.layer.patch.text) and set(changes) == set(applied.changes):
        return applied
    return replace(applied, sha256=sha256(one.layer.patch.text), changes=changes)


def judged(
    at: Desk, old: Sequence[Patch], new: Sequence[Patch], read: editing.Read
) -> Conversation[None]:
    """Judge the patches that lie on something else than before.

    Raises:
        ConflictError: one is bad there, and was not where it was.
    """
    other = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a.name != b.name]
    part = slice(other[0], other[-1] + 1)
    paths = [path for patch in old for path in patch.paths]
    paths += [change.path for one in at.stack for change in one.changes]
    base = {path: read(path) for path in paths}
    known: set[str] = set()
    found: list[plan.Conflict] = []
    for step, below in _steps(new, base)[part]:
        found += yield from _verdict(at, step, below)
    if found:
        for step, below in _steps(old, base)[part]:
            known |= {_said(one) for one in (yield from _verdict(at, step, below))}
    found = [one for one in found if _said(one) not in known]
    if found:
        why = [f"{one.message}" + f" ({one.detail})" * bool(one.detail) for one in found]
        raise ConflictError(
            f"Patch {found[0].patch} would not be good on what is below it then",
            why="\n".join(why),
            mend="patchq check   # judges what is there now",
        )


def _steps(
    found: Sequence[Patch], base: Tree
) -> list[tuple[judging.Step, dict[str, apply.File | None]]]:
    """Return each patch as a step, with the files below it."""
    tree, out = dict(base), []
    for patch in found:
        result = apply.apply_patch(patch, tree.get)
        assert isinstance(result, apply.PatchApplied)  # commute has put them on
        before = {change.path: tree.get(change.path) for change in result.changes}
        step = judging.Step(patch, tuple(result.changes), before, dict(result.after))
        out.append((step, dict(tree)))
        tree.update(result.after)
    return out


def _verdict(at: Desk, step: judging.Step, below: Tree) -> Conversation[list[plan.Conflict]]:
    """Judge one step on the text around it."""
    if not step.changes:
        return []
    around = judging.Neighbours(at.survey, below)
    while True:
        around.missing.clear()
        verdict = judging.judge_step(step, at.seen.release, around.read)
        if not around.missing:
            return judging.conflicts_of(step, verdict)
        around.more.update((yield from files.read(at.aim, at.seen, list(around.missing))))


def _said(one: plan.Conflict) -> str:
    """Return what a finding says, without the line that it is at."""
    return f"{one.patch} " + re.sub(r":\d+", "", one.message)
