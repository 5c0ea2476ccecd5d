"""The way up: plan by hashes, apply and judge on bytes, then one commit.

What is equal for several hosts is done once (`view.Shared`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

from patchq import plan, standing
from patchq.conversation import (
    drift,
    explain,
    files,
    footing,
    judging,
    look,
    plain,
    pristine,
    view,
)
from patchq.conversation.commit import Ground, commit
from patchq.errors import PatchqError
from patchq.model import FileState, Series, Sha256, effect_id, sha256
from patchq.queue import lock as locks
from patchq.queue import store
from patchq.report import Report
from patchq.transport.channel import Conversation


def wanted(aim: view.Aim) -> view.Want:
    """Return what a survey for a push is to bring along; the same for all hosts of a run."""
    return aim.shared.once("wanted", lambda: _wanted(aim))


def _wanted(aim: view.Aim) -> view.Want:
    """Ask for every content but those that are surely not needed.

    A file that holds a patch's result already is not read, nor a neighbour
    whose verdict is in the cache; the rest travels with the survey, so that no
    release needs to be fetched, and drift can be shown. Several hosts need not all send
    the same text: it is taken from the store of releases, where that has it.
    """
    before: set[str] = set()
    known: set[str] = set()
    for queue in aim.queues:
        for lock in aim.locks(queue).values():
            if lock is None:
                continue
            if aim.several:
                texts = pristine.texts(aim.cache(), lock.distribution, lock.release, lock.base)
                aim.shared.contents.update((sha256(data), data) for data in texts.values())
            good = judging.cached(aim.cache(), lock)
            for patch in lock.patches:
                before.update(c.before.sha256 for c in patch.changes if c.before.sha256)
                known.update(c.after.sha256 for c in patch.changes if c.after.sha256)
                if patch.name in good:
                    known.update(digest for digest in patch.reads.values() if digest)
    return view.Want(True, frozenset(known - before))


def fresh(seen: view.Sight, stale: str | None) -> None:
    """Raise where the lock is not of the series: what it says is done might not be."""
    if stale and not seen.tree:
        raise PatchqError(
            f"series.lock of {seen.queue.name} {seen.release} is stale: {stale}",
            why="a push compares every file with the hashes that the lock holds",
            mend=f"patchq lint --write --queue {seen.queue.folder}",
        )


def forward(
    aim: view.Aim,
    ground: Ground,
    seen: view.Sight,
    goal: int,
    verb: str = "push",
    *,
    adopt: bool = False,
) -> Conversation[Report]:
    """Plan, apply, judge and commit the patches up to `goal`.

    `adopt`: take over files that hold the result already, with the release's text as original.
    """
    if seen.tree:
        return (yield from plain.push(aim, ground, seen, goal, plain.How(), verb))
    whole, stale = aim.shared.once(
        ("series", seen.queue.folder, seen.release), lambda: _series(seen)
    )
    if not locks.covers(seen.lock, whole, goal):
        if not locks.covers(seen.lock, whole, len(seen.lock.patches)):
            fresh(seen, stale)
        raise _unlocked(seen, stale)
    under = yield from footing.find(aim, seen, whole, goal)
    seen, whole = under.seen, under.series
    intent = plan.push(seen.lock, seen.queue.name, seen.survey, goal, adopt=adopt)
    conflicts = under.against(intent.conflicts)
    if conflicts:
        conflicts = yield from drift.shown(aim, seen, drift.dated(aim, seen, conflicts))
        paths = [one.path for one in conflicts if one.path is not None]
        base = pristine.texts(aim.cache(), seen.queue.distribution, seen.release, paths)
        return explain.report(verb, seen, conflicts, series=whole, base={**base, **under.below})
    patches = tuple(p for p in whole.patches if p.name in intent.patches)
    touched = tuple(dict.fromkeys(path for patch in patches for path in patch.paths))
    adopted = yield from _adopted(aim, seen, intent)
    rest = tuple(path for path in touched if path not in adopted)
    below = {**judging.tree_of(seen.survey, rest), **adopted}
    steps, tree = aim.shared.once(
        ("walk", _key(seen, intent.patches, touched)),
        lambda: judging.walk(patches, seen.lock, below),
    )
    conflicts = yield from _judged(aim, seen, steps)
    if conflicts:
        return explain.report(verb, seen, conflicts)
    done = yield from commit(aim, ground, seen, intent, tree, patches, verb, adopted)
    return under.noted(done)


def _adopted(aim: view.Aim, seen: view.Sight, intent: plan.Plan) -> Conversation[judging.Tree]:
    """Return what is below the patches at paths that hold their result already.

    Raises:
        PatchqError: the release is not here, so a pop would have nothing to give back.
    """
    held = standing.recorded(seen.survey.stack)
    stacked = [path for path in intent.adopted if path in held]
    out: judging.Tree = {}
    if stacked:
        want = view.Want(more=("patches",))
        _, reply = yield from look.survey(aim, seen.queue.distribution, (), want)
        seen = replace(seen, texts=reply.blobs)
        out.update((yield from files.rebuild(aim, seen, seen.survey.stack, stacked)))
    distribution = seen.queue.distribution
    rest = [path for path in intent.adopted if path not in held]
    found = pristine.files(aim.cache(), distribution, seen.release, rest)
    for path in rest:
        file = found.get(path)
        if FileState.of(*(file or (None,))) != intent.adopted[path]:
            raise pristine.unknown(distribution, seen.release)
        out[path] = file
    return out


def _unlocked(seen: view.Sight, stale: str | None) -> PatchqError:
    """Return the error for a patch above the last one that the lock has."""
    name = seen.names[len(seen.lock.patches)]
    below = seen.lock.patches[-1].name if seen.lock.patches else None
    goes = f"; up to {below} all is well" if below else ""
    return PatchqError(
        f"series.lock of {seen.queue.name} {seen.release} is stale: {stale}",
        why=f"{name} was put into the series by hand, or does not fit any more on what is"
        f" below it{goes}",
        mend=f"patchq lint --write --queue {seen.queue.folder}"
        "   # locks it, or says which lines do not fit",
    )


def _series(seen: view.Sight) -> tuple[Series, str | None]:
    whole = store.load(seen.queue, seen.release)
    return whole, locks.stale(seen.lock, whole)


def _key(seen: view.Sight, names: Iterable[str], paths: Iterable[str]) -> Hashable:
    """Return what decides an outcome: the queue's patches, and what the environment has there."""
    effect = effect_id(change for patch in seen.lock.patches for change in patch.changes)
    there = tuple(standing.live(seen.survey, path) for path in paths)
    return seen.queue.folder, seen.release, effect, tuple(names), there


def _judged(
    aim: view.Aim, seen: view.Sight, steps: list[judging.Step]
) -> Conversation[tuple[plan.Conflict, ...]]:
    """Judge the steps, once for all hosts whose files are equal as far as the judge reads."""
    paths = (path for patch in seen.lock.patches for path in (*patch.paths, *patch.reads))
    key = _key(seen, (step.patch.name for step in steps), paths)
    known = aim.shared.judged.setdefault(key, [])
    for reads, found in known:
        if not reads or (yield from _holds(aim, seen, reads)):
            return found
    around = judging.Neighbours(seen.survey)
    conflicts = yield from _judge(aim, seen, steps, around)
    more = {path: FileState.of(data).sha256 for path, data in around.more.items()}
    known.append((more, conflicts))
    return conflicts


def _holds(
    aim: view.Aim, seen: view.Sight, reads: Mapping[str, Sha256 | None]
) -> Conversation[bool]:
    """Return whether the environment's files at these paths have these digests."""
    want = view.Want(extra=tuple(reads))
    found, _ = yield from look.survey(aim, seen.queue.distribution, (), want)
    return all(standing.live(found, path).sha256 == digest for path, digest in reads.items())


def _judge(
    aim: view.Aim, seen: view.Sight, steps: list[judging.Step], around: judging.Neighbours
) -> Conversation[tuple[plan.Conflict, ...]]:
    """Judge each step, from the cache where the text around it is what the lock read."""
    good = judging.cached(aim.cache(), seen.lock)
    pinned = {patch.name: patch for patch in seen.lock.patches}
    tree: judging.Tree = {}
    for step in reversed(steps):
        tree.update(step.before)  # what is below the lowest
    around.tree = tree
    conflicts: list[plan.Conflict] = []
    for step in steps:
        mine = pinned[step.patch.name]
        same = all(
            standing.live(seen.survey, path).sha256 == digest
            for path, digest in mine.reads.items()
            if path not in tree
        )
        if step.patch.name not in good or not same:
            while True:
                around.missing.clear()
                verdict = judging.judge_step(step, seen.release, around.read)
                if not around.missing:
                    break
                around.more.update((yield from files.read(aim, seen, list(around.missing))))
            conflicts += judging.conflicts_of(step, verdict)
            if same and set(verdict.reads) <= {*mine.reads, *tree}:
                judging.keep(aim.cache(), mine, seen.release, verdict)
        tree.update(step.after)
    return tuple(conflicts)
