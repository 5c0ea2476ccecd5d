"""Moving along the stack: push, pop, goto.

Every writing verb recovers an interrupted transaction first, plans by hashes,
applies and judges on bytes, and sends one commit. Nothing is changed before
the whole plan holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from patchq import plan, standing
from patchq.conversation import answers, explain, files, judging, look, pristine, view
from patchq.conversation.goal import Upto
from patchq.errors import ExitCode, PatchqError
from patchq.model import Patch, sha256
from patchq.queue import lock as locks
from patchq.queue import store
from patchq.queue.heads import Heads
from patchq.report import Report
from patchq.transport.channel import Conversation, Request


@dataclass(frozen=True, slots=True)
class Ground:
    """Who asks, from where, and whether to write.

    `heads` has the commits of the queues, for verbs that may push.
    """

    who: str
    whence: str
    heads: Heads | None = None
    dry_run: bool = False


def ready(
    aim: view.Aim, ground: Ground, want: view.Want, need: view.Need = view.Need.SERIES
) -> Conversation[view.Sight]:
    """Survey for a writing verb: refusals are raised, an interrupted transaction recovered."""
    seen = yield from look.sight(aim, want, need=need)
    if seen.survey.interrupted and ground.dry_run:
        raise PatchqError(
            f"a transaction in {seen.survey.site} was cut short",
            why="its journal is there, so nobody can say yet what the files will be",
            mend="patchq recover",
        )
    if seen.survey.orphaned and need is not view.Need.SERIES:
        raise PatchqError(
            f"the patches that were applied in {seen.survey.site} are gone",
            why=seen.survey.orphaned,
            mend="patchq recover   # sets their record aside",
        )
    if (seen.survey.interrupted or (seen.survey.orphaned and seen.lock)) and not ground.dry_run:
        orphaned = seen.survey.orphaned
        yield aim.request("recover", seen.queue.distribution, force=None)
        seen = yield from look.again(aim, seen, want)
        seen = replace(seen, survey=replace(seen.survey, orphaned=orphaned))
    if seen.survey.refusal:
        raise answers.refused(seen.survey.refusal)
    return seen


def push(aim: view.Aim, ground: Ground, upto: Upto) -> Conversation[Report]:
    """Apply patches of the series that fits, up to a goal."""
    seen = yield from ready(aim, ground, wanted(aim))
    names = [patch.name for patch in seen.lock.patches]
    start = plan.position(seen.lock, seen.queue.name, seen.survey)
    if isinstance(start, plan.Conflict):
        return explain.report("push", seen, (start,))
    if upto.everything or (start == len(names) and upto.count(names) is not None):
        goal = len(names)
        if start == goal:
            _fresh(seen, store.verify(seen.queue, seen.release))
            word = f"File series fully applied, ends at patch {names[-1]}" if names else ""
            return nothing("push", seen, word or "No patches in series")
    else:
        steps = upto.count(names)
        if steps is not None and steps > len(names) - start:
            raise _fewer("push", steps, names[start:])
        goal = start + steps if steps is not None else upto.index(names, "in series") + 1
        if steps == 0:
            return nothing("push", seen, "No patch applied")
        if goal <= start:
            _fresh(seen, store.verify(seen.queue, seen.release))
            return nothing("push", seen, f"Patch {names[goal - 1]} is currently applied")
    return (yield from forward(aim, ground, seen, min(goal, len(names))))


def _fresh(seen: view.Sight, stale: str | None) -> None:
    """Raise where the lock is not of the series: what it says is done might not be."""
    if stale:
        raise PatchqError(
            f"series.lock of {seen.queue.name} {seen.release} is stale: {stale}",
            why="a push compares every file with the hashes that the lock holds",
            mend=f"patchq lint --write --queue {seen.queue.folder}",
        )


def forward(
    aim: view.Aim, ground: Ground, seen: view.Sight, goal: int, verb: str = "push"
) -> Conversation[Report]:
    """Plan, apply, judge and commit the patches up to `goal`."""
    whole = store.load(seen.queue, seen.release)
    _fresh(seen, locks.stale(seen.lock, whole))
    intent = plan.push(seen.lock, seen.queue.name, seen.survey, goal)
    if intent.conflicts:
        paths = [one.path for one in intent.conflicts if one.path is not None]
        base = pristine.texts(aim.cache(), seen.queue.distribution, seen.release, paths)
        return explain.report(verb, seen, intent.conflicts, series=whole, base=base)
    patches = tuple(p for p in whole.patches if p.name in intent.patches)
    touched = tuple(dict.fromkeys(path for patch in patches for path in patch.paths))
    tree = judging.tree_of(seen.survey, touched)
    steps = judging.walk(patches, seen.lock, tree)
    conflicts = yield from _judged(aim, seen, steps)
    if conflicts:
        return explain.report(verb, seen, conflicts)
    return (yield from commit(aim, ground, seen, intent, tree, patches, verb))


def _judged(
    aim: view.Aim, seen: view.Sight, steps: list[judging.Step]
) -> Conversation[tuple[plan.Conflict, ...]]:
    """Judge each step, from the cache where the text around it is what the lock read."""
    good = judging.cached(aim.cache(), seen.lock)
    pinned = {patch.name: patch for patch in seen.lock.patches}
    tree = judging.tree_of(seen.survey, tuple({p: None for s in steps for p in s.before}))
    around = judging.Neighbours(seen.survey, tree)
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
            if same:
                judging.keep(aim.cache(), mine, seen.release, verdict)
        tree.update(step.after)
    return tuple(conflicts)


def pop(aim: view.Aim, ground: Ground, upto: Upto) -> Conversation[Report]:
    """Take patches off the top, until a goal."""
    seen = yield from ready(aim, ground, view.Want(more=("patches",)), view.Need.RECORD)
    names = [applied.patch for applied in seen.applied]
    if not names:
        return nothing("pop", seen, "No patch removed")
    if upto.everything:
        keep = 0
    else:
        steps = upto.count(names)
        if steps is not None and steps > len(names):
            raise _fewer("pop", steps, names)
        keep = (
            max(0, len(names) - steps) if steps is not None else upto.index(names, "applied") + 1
        )
        if keep == len(names):
            return nothing("pop", seen, "No patch removed")
    return (yield from backward(aim, ground, seen, keep))


def _fewer(verb: str, steps: int, names: list[str]) -> PatchqError:
    """Return the error for a number that is too large: often it begins a name."""
    near = [name for name in names if name.startswith(str(steps))]
    return PatchqError(
        f"{steps} patches can not be {'pushed' if verb == 'push' else 'taken off'}",
        why=f"there are {len(names)}: {', '.join(names)}",
        mend=f"patchq {verb} {near[0]}" if near else f"patchq {verb} -a",
    )


def backward(
    aim: view.Aim, ground: Ground, seen: view.Sight, keep: int, verb: str = "pop"
) -> Conversation[Report]:
    """Plan and commit the way back to `keep` patches of this queue."""
    intent = plan.pop(seen.queue.name, seen.survey, keep)
    if intent.conflicts:
        return explain.report(verb, seen, intent.conflicts)
    between = [c.path for c in intent.entries if c.path not in intent.restored]
    tree = yield from files.rebuild(aim, seen, intent.stack, between)
    return (yield from commit(aim, ground, seen, intent, tree, (), verb))


def commit(
    aim: view.Aim,
    ground: Ground,
    seen: view.Sight,
    intent: plan.Plan,
    tree: judging.Tree,
    patches: tuple[Patch, ...],
    verb: str,
) -> Conversation[Report]:
    """Send the transaction and report its receipt; `tree` has the new bytes."""
    if ground.dry_run:
        return explain.moved(verb, seen, intent, None)
    installed = seen.survey.installed
    assert installed is not None
    request = aim.request(
        "commit",
        seen.queue.distribution,
        expect={
            "dist_info": installed.dist_info,
            "record": installed.record,
            "generation": seen.survey.generation,
        },
        entries=[
            {
                "path": entry.path,
                "before": entry.before.to_json(),
                "after": entry.after.to_json(),
                "original": entry.path in intent.restored,
            }
            for entry in intent.entries
        ],
        stack=[applied.to_json() for applied in intent.stack],
        patches=[applied.sha256 for applied in intent.stack],
        receipt=_receipt(ground, seen, intent, verb),
        compile=intent.verb == "push",
    )
    blobs: dict[str, bytes] = {sha256(file[0]): file[0] for file in tree.values() if file}
    blobs |= {a.sha256: seen.texts[a.sha256] for a in intent.stack if a.sha256 in seen.texts}
    reply = yield Request(request.message, blobs | judging.texts(patches))
    return explain.moved(verb, seen, intent, reply.message["ok"])


def _receipt(ground: Ground, seen: view.Sight, intent: plan.Plan, verb: str) -> dict[str, object]:
    """Return what the environment's ledger is to say beside what the agent knows."""
    asked = ground.heads if intent.verb == "push" else None
    head, dirty = asked.of(seen.queue) if asked else (None, False)
    texts = {a.patch: a.sha256 for a in (*seen.survey.stack, *intent.stack)}
    return {
        "verb": verb,
        "queue": seen.queue.name,
        "release": intent.release,
        "chosen": seen.choice.how if seen.choice else "record",
        "commit": head,
        "dirty": dirty,
        "who": ground.who,
        "whence": ground.whence,
        "patches": {intent.verb: [{"patch": n, "sha256": texts[n]} for n in intent.patches]},
    }


def goto(aim: view.Aim, ground: Ground, name: str) -> Conversation[Report]:
    """Push or pop until the named patch is on top."""
    want = wanted(aim)
    seen = yield from ready(aim, ground, view.Want(True, want.known, more=("patches",)))
    applied = [one.patch for one in seen.applied]
    names = [patch.name for patch in seen.lock.patches]
    index = Upto(name).index(names, "in series")
    start = plan.position(seen.lock, seen.queue.name, seen.survey)
    if isinstance(start, plan.Conflict):
        return explain.report("goto", seen, (start,))
    if index + 1 == len(applied):
        return nothing("goto", seen, f"Patch {names[index]} is on top")
    if index < len(applied):
        return (yield from backward(aim, ground, seen, index + 1, "goto"))
    return (yield from forward(aim, ground, seen, index + 1, "goto"))


def wanted(aim: view.Aim) -> view.Want:
    """Ask for every content but those that are surely not needed.

    A file that holds a patch's result already is not read, nor a neighbour
    whose verdict is in the cache; the rest travels with the survey, so that no
    release needs to be fetched, and drift can be shown.
    """
    before: set[str] = set()
    known: set[str] = set()
    for queue in aim.queues:
        for release in queue.releases:
            lock = store.lock(queue, release)
            if lock is None:
                continue
            good = judging.cached(aim.cache(), lock)
            for patch in lock.patches:
                before.update(c.before.sha256 for c in patch.changes if c.before.sha256)
                known.update(c.after.sha256 for c in patch.changes if c.after.sha256)
                if patch.name in good:
                    known.update(digest for digest in patch.reads.values() if digest)
    return view.Want(True, frozenset(known - before))


def nothing(verb: str, seen: view.Sight, message: str) -> Report:
    """Return the outcome "nothing to do", in quilt's words."""
    document = {"verb": verb, "queue": seen.queue.name, "patches": [], "message": message}
    return Report((), (message,), document, ExitCode.NOTHING_TO_DO)
