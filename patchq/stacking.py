"""On what a push stands where another queue's patches have changed the same files.

A series.lock is made on the pristine release. Where the recorded stack changed a
file that the patches to be pushed touch, they are laid on the stack, and a lock is
derived whose before and after are those of this environment. Pure, like `plan`,
which then judges by that lock as by any other. Whoever calls brings the texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from patchq import plan, standing
from patchq.engine import apply, layers, overlap
from patchq.engine.layers import Clash, Footing, Laid, Layer
from patchq.model import AppliedPatch, Lock, LockedPatch, Series, Sha256, Survey, sha256
from patchq.plan import Conflict, Kind

Tree = Mapping[str, "apply.File | None"]


@dataclass(frozen=True, slots=True)
class Note:
    """What one patch was put on, in one file; `moved` by so many lines per hunk."""

    patch: str
    path: str
    queue: str
    on: str
    gap: int | None
    moved: tuple[int, ...]

    def __str__(self) -> str:
        """Return the note as push says it."""
        text = f"{self.patch} is stacked on {self.on} of queue {self.queue} in {self.path}"
        if self.gap is not None:
            text += " (1 line apart)" if self.gap == 1 else f" ({self.gap} lines apart)"
        moves = dict.fromkeys(by for by in self.moved if by)
        if moves:
            word = "line" if list(moves) in ([1], [-1]) else "lines"
            text += f", moved by {', '.join(f'{by:+}' for by in moves)} {word}"
        return text

    def to_json(self) -> dict[str, object]:
        """Return the note as ``--json`` shows it."""
        return {
            "patch": self.patch,
            "path": self.path,
            "on": {"queue": self.queue, "patch": self.on},
            "gap": self.gap,
            "moved": list(self.moved),
        }


@dataclass(frozen=True, slots=True)
class Stacked:
    """A lock and a series for this environment, or why there is none."""

    lock: Lock
    series: Series
    notes: tuple[Note, ...]
    conflicts: tuple[Conflict, ...]


def below(stack: Sequence[AppliedPatch], paths: Iterable[str]) -> tuple[AppliedPatch, ...]:
    """Return those of a stack that decide what is at `paths`, directly or by another file."""
    wanted = set(paths)
    while True:
        touching = tuple(one for one in stack if any(c.path in wanted for c in one.changes))
        found = wanted.union(c.path for one in touching for c in one.changes)
        if found == wanted:
            return touching
        wanted = found


def needed(lock: Lock, queue: str, survey: Survey, goal: int) -> tuple[AppliedPatch, ...]:
    """Return the part of the stack that a push stands on, none where a lock holds as it is.

    That is so where no other queue changed a file that the push touches, and where
    the files below the stack are not those that the lock was made on: `plan.push` then
    says what is wrong.
    """
    start = plan.position(lock, queue, survey)
    if isinstance(start, Conflict):
        return ()
    paths = {path for patch in lock.patches[start:goal] for path in patch.paths}
    stack = below(survey.stack, paths)
    shared = paths.intersection(
        change.path for one in stack if one.queue != queue for change in one.changes
    )
    base = lock.base
    if any(standing.pristine(survey, path) != base[path] for path in shared):
        return ()
    return stack if shared else ()


def derive(
    seen: tuple[Lock, Series, Survey], queue: str, goal: int, pile: Sequence[Layer], tree: Tree
) -> Stacked:
    """Return lock and series as they are on `pile`, the part of the stack that is `needed`.

    `seen` are lock, series and survey; `tree` has the files as `pile` leaves them, and
    those that only the push touches.
    """
    lock, series, survey = seen
    start = sum(applied.queue == queue for applied in survey.stack)
    todo = tuple(Layer(queue, patch) for patch in series.patches[start:goal])
    pinned = {patch.name: patch for patch in lock.patches}
    placed = {patch.name: patch for patch in series.patches}
    files = dict(tree)
    notes: list[Note] = []
    conflicts: list[Conflict] = []
    for one in layers.lay((*pile, *todo), tree, len(pile)):
        name = one.layer.patch.name
        if isinstance(one, Clash):
            conflicts += _conflicts(one)
            continue
        pinned[name] = _pinned(pinned[name], one, files, survey)
        placed[name] = one.patch
        files.update(one.result.after)
        notes += [_note(name, footing) for footing in one.footings]
    return Stacked(
        replace(lock, patches=tuple(pinned.values())),
        replace(series, patches=tuple(placed.values())),
        tuple(notes),
        tuple(conflicts),
    )


def _pinned(pinned: LockedPatch, one: Laid, files: Tree, survey: Survey) -> LockedPatch:
    """Return a lock's patch with this environment's before, after and neighbours."""
    reads: dict[str, Sha256 | None] = {}
    for path in pinned.reads:
        if path in files:
            file = files[path]
            reads[path] = None if file is None else sha256(file[0])
        else:
            reads[path] = standing.live(survey, path).sha256
    return replace(pinned, changes=one.result.changes, reads=reads)


def _note(name: str, footing: Footing) -> Note:
    on, relation = footing.on, footing.relation
    return Note(name, footing.path, on.queue, on.patch.name, relation.gap, footing.moved)


def _conflicts(clash: Clash) -> list[Conflict]:
    """Return why a patch can not be laid: whose lines are in the way, or what does not fit."""
    name = clash.layer.patch.name
    if clash.rejected is None:
        return [_clash(name, footing) for footing in clash.footings]
    out = []
    for path, rejected in ((clash.rejected.path, clash.rejected.rejected), *clash.rejected.others):
        under = [one.on for one in clash.footings if one.path == path]
        if under:  # else the file is not as the lock has it, which the plan tells
            on = under[-1]
            message = f"{path} is changed by {on.patch.name} of queue {on.queue} below {name}"
            kind, why = Kind.ANOTHER_QUEUE, rejected.message
            out.append(Conflict(kind, name, path, message, detail=why, other=on.queue))
    return out


def _clash(name: str, footing: Footing) -> Conflict:
    on, relation, path = footing.on, footing.relation, footing.path
    below_it = f"{on.patch.name} of queue {on.queue}"
    mine, its = (overlap.named(places) for places in relation.lines)
    if relation.word is overlap.Word.CLOSE:
        message = f"{path}: {name} is too close to {below_it} below it"
        detail = f"the context of one of them has lines that the other changes ({relation})"
    else:
        what = "lines that" if relation.lines[0] else "the file as a whole, and"
        message = f"{path}: {name} changes {what} {below_it} below it changes, too"
        detail = "one on the other would be a guess"
    if relation.lines[0]:
        detail += f"; in the release's file: {name}{mine}, {on.patch.name}{its}"
    return Conflict(Kind.ANOTHER_QUEUE, name, path, message, detail=detail, other=on.queue)
