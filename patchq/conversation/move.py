"""Moving along the stack: push, pop, goto, undo, recover.

Every writing verb recovers an interrupted transaction first, plans by hashes,
applies and judges on bytes, and sends one commit. Nothing is changed before
the whole plan holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from patchq import plan
from patchq.conversation import explain, judging, look, pristine
from patchq.errors import ExitCode, PatchqError, UsageError
from patchq.model import AppliedPatch, Patch, sha256
from patchq.queue import lock as locks
from patchq.queue import series, store
from patchq.report import Report
from patchq.conversation.goal import Upto
from patchq.transport.channel import Conversation, Request


@dataclass(frozen=True, slots=True)
class Ground:
    """Who asks, from where, and whether to write."""

    who: str
    whence: str
    dry_run: bool = False


def ready(aim: look.Aim, ground: Ground, want: look.Want) -> Conversation[look.Sight]:
    """Survey for a writing verb: refusals are raised, an interrupted transaction recovered."""
    seen = yield from look.sight(aim, want)
    if seen.survey.interrupted and not ground.dry_run:
        yield aim.request("recover", seen.queue.distribution, force=None)
        seen = yield from look.again(aim, seen, want)
    if seen.survey.refusal:
        raise PatchqError(**seen.survey.refusal)
    return seen


def push(aim: look.Aim, ground: Ground, upto: Upto) -> Conversation[Report]:
    """Apply patches of the series that fits, up to a goal."""
    seen = yield from ready(aim, ground, _wanted(aim))
    names = [patch.name for patch in seen.lock.patches]
    start = plan.position(seen.lock, seen.queue.name, seen.survey)
    if isinstance(start, plan.Conflict):
        return explain.report("push", seen, (start,))
    if upto.everything or (start == len(names) and upto.count(names) is not None):
        goal = len(names)
        if start == goal:
            word = f"File series fully applied, ends at patch {names[-1]}" if names else ""
            return _nothing("push", seen, word or "No patches in series")
    else:
        steps = upto.count(names)
        goal = start + steps if steps is not None else upto.index(names, "in series") + 1
        if goal <= start:
            return _nothing("push", seen, f"Patch {names[goal - 1]} is currently applied")
    return (yield from forward(aim, ground, seen, min(goal, len(names))))


def forward(
    aim: look.Aim, ground: Ground, seen: look.Sight, goal: int, verb: str = "push"
) -> Conversation[Report]:
    """Plan, apply, judge and commit the patches up to `goal`."""
    wanted = store.load(seen.queue, seen.release)
    stale = locks.stale(seen.lock, wanted)
    if stale:
        raise PatchqError(
            f"series.lock of {seen.queue.name} {seen.release} is stale: {stale}",
            why="a push compares every file with the hashes that the lock holds",
            mend=f"patchq lint --write --queue {seen.queue.folder}",
        )
    intent = plan.push(seen.lock, seen.queue.name, seen.survey, goal)
    if intent.conflicts:
        paths = [one.path for one in intent.conflicts if one.path is not None]
        base = pristine.texts(aim.cache(), seen.queue.distribution, seen.release, paths)
        return explain.report(verb, seen, intent.conflicts, series=wanted, base=base)
    patches = tuple(p for p in wanted.patches if p.name in intent.patches)
    touched = tuple(dict.fromkeys(path for patch in patches for path in patch.paths))
    tree = judging.tree_of(seen.survey, touched)
    steps = judging.walk(patches, seen.lock, tree)
    conflicts = yield from _judged(aim, seen, steps)
    if conflicts:
        return explain.report(verb, seen, conflicts)
    return (yield from commit(aim, ground, seen, intent, tree, patches, verb))


def _judged(
    aim: look.Aim, seen: look.Sight, steps: list[judging.Step]
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
            plan.live(seen.survey, path).sha256 == digest
            for path, digest in mine.reads.items()
            if path not in tree
        )
        if step.patch.name not in good or not same:
            while True:
                around.missing.clear()
                verdict = judging.judge_step(step, seen.release, around.read)
                if not around.missing:
                    break
                around.more.update((yield from read(aim, seen, list(around.missing))))
            conflicts += judging.conflicts_of(step, verdict)
            if same:
                judging.keep(aim.cache(), mine, seen.release, verdict)
        tree.update(step.after)
    return tuple(conflicts)


def read(
    aim: look.Aim, seen: look.Sight, paths: list[str], originals: bool = False
) -> Conversation[dict[str, bytes | None]]:
    """Fetch the bytes of files, or of the originals kept for them."""
    request = aim.request(
        "read",
        seen.queue.distribution,
        paths=[] if originals else paths,
        originals=paths if originals else [],
    )
    reply = yield request
    listed = reply.message["ok"]["originals" if originals else "files"]
    return {path: None if name is None else reply.blobs[name] for path, name in listed.items()}


def pop(aim: look.Aim, ground: Ground, upto: Upto) -> Conversation[Report]:
    """Take patches off the top, until a goal."""
    seen = yield from ready(aim, ground, look.Want(more=("patches",)))
    names = [applied.patch for applied in seen.applied]
    if not names:
        return _nothing("pop", seen, "No patch removed")
    if upto.everything:
        keep = 0
    else:
        steps = upto.count(names)
        keep = (
            max(0, len(names) - steps) if steps is not None else upto.index(names, "applied") + 1
        )
        if keep == len(names):
            return _nothing("pop", seen, "No patch removed")
    return (yield from backward(aim, ground, seen, keep))


def backward(
    aim: look.Aim, ground: Ground, seen: look.Sight, keep: int, verb: str = "pop"
) -> Conversation[Report]:
    """Plan and commit the way back to `keep` patches of this queue."""
    intent = plan.pop(seen.queue.name, seen.survey, keep)
    if intent.conflicts:
        return explain.report(verb, seen, intent.conflicts)
    between = [c.path for c in intent.entries if c.path not in intent.restored]
    tree = yield from rebuild(aim, seen, intent.stack, between)
    return (yield from commit(aim, ground, seen, intent, tree, (), verb))


def rebuild(
    aim: look.Aim, seen: look.Sight, stack: tuple[AppliedPatch, ...], paths: list[str]
) -> Conversation[judging.Tree]:
    """Return files as a lower part of the stack has them.

    They are made from the originals and the patch texts that the environment
    keeps, so this needs no queue.
    """
    from patchq.engine import apply, diff

    if not paths:
        return {}
    wanted = set(paths)
    touching = [a for a in stack if any(c.path in wanted for c in a.changes)]
    involved = {c.path for a in touching for c in a.changes}
    originals = yield from read(aim, seen, sorted(involved), originals=True)
    tree: judging.Tree = {}
    for path in involved:
        data = originals.get(path)
        tree[path] = None if data is None else (data, plan.pristine(seen.survey, path).executable)
    for applied in touching:
        text = seen.texts[applied.sha256]
        entry = series.parse(f"{applied.patch} {applied.options}\n".encode()).entries[0]
        header, diffs = diff.parse(text, name=applied.patch, strip=entry.strip)
        patch = Patch(applied.patch, text, header, diffs, entry.strip, entry.reverse)
        result = apply.apply_patch(patch, tree.get)
        if isinstance(result, apply.PatchRejected) or tuple(result.changes) != applied.changes:
            raise PatchqError(
                f"the state of {seen.survey.site} does not add up at {applied.patch}",
                why="its original with the patches that it keeps gives other bytes than recorded",
                mend="patchq pop -a",
            )
        tree.update(result.after)
    return {path: tree[path] for path in paths}


def commit(
    aim: look.Aim,
    ground: Ground,
    seen: look.Sight,
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
    head, dirty = store.commit(seen.queue) if patches else (None, False)
    named = {applied.patch: applied for applied in (*seen.survey.stack, *intent.stack)}
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
        receipt={
            "verb": verb,
            "queue": seen.queue.name,
            "release": intent.release,
            "chosen": seen.choice.how if seen.choice else "record",
            "commit": head,
            "dirty": dirty,
            "who": ground.who,
            "whence": ground.whence,
            "patches": {
                intent.verb: [
                    {"patch": name, "sha256": named[name].sha256} for name in intent.patches
                ]
            },
        },
        compile=bool(patches),
    )
    blobs: dict[str, bytes] = {sha256(file[0]): file[0] for file in tree.values() if file is not None}
    blobs |= judging.texts(patches) | {
        a.sha256: seen.texts[a.sha256] for a in intent.stack if a.sha256 in seen.texts
    }
    reply = yield Request(request.message, blobs)
    return explain.moved(verb, seen, intent, reply.message["ok"])


def goto(aim: look.Aim, ground: Ground, name: str) -> Conversation[Report]:
    """Push or pop until the named patch is on top."""
    want = _wanted(aim)
    seen = yield from ready(aim, ground, look.Want(True, want.known, more=("patches",)))
    applied = [one.patch for one in seen.applied]
    names = [patch.name for patch in seen.lock.patches]
    index = Upto(name).index(names, "in series")
    start = plan.position(seen.lock, seen.queue.name, seen.survey)
    if isinstance(start, plan.Conflict):
        return explain.report("goto", seen, (start,))
    if index + 1 == len(applied):
        return _nothing("goto", seen, f"Patch {names[index]} is on top")
    if index < len(applied):
        return (yield from backward(aim, ground, seen, index + 1, "goto"))
    return (yield from forward(aim, ground, seen, index + 1, "goto"))


def undo(aim: look.Aim, ground: Ground) -> Conversation[Report]:
    """Take the environment back to before its last receipt."""
    want = _wanted(aim)
    seen = yield from ready(aim, ground, look.Want(True, want.known, more=("patches", "ledger")))
    ledger = seen.extra["ledger"]
    assert isinstance(ledger, list)
    if not ledger:
        return _nothing("undo", seen, "No receipt to undo")
    last = ledger[-1]
    if last["queue"] != seen.queue.name:
        raise UsageError(
            f"the last receipt is of queue {last['queue']}, not of {seen.queue.name}",
            why="undo takes back the environment's last transaction, whatever its queue",
            mend=f"patchq undo --queue {last['queue']}",
        )
    names = [applied.patch for applied in seen.applied]
    pushed, popped = (last["patches"].get(verb, ()) for verb in ("push", "pop"))
    if pushed:
        undone = [one["patch"] for one in pushed]
        if names[-len(undone) :] != undone:
            raise _moved_on(seen, last)
        return (yield from backward(aim, ground, seen, len(names) - len(undone), "undo"))
    again = [(one["patch"], one["sha256"]) for one in reversed(popped)]
    here = [(patch.name, patch.patch) for patch in seen.lock.patches]
    if here[len(names) : len(names) + len(again)] != again:
        raise _moved_on(seen, last)
    return (yield from forward(aim, ground, seen, len(names) + len(again), "undo"))


def _moved_on(seen: look.Sight, last: dict[str, object]) -> PatchqError:
    return PatchqError(
        f"the last receipt ({last['verb']}, {last['time']}) can not be undone",
        why="the stack or the queue is not what it was then",
        mend=f"patchq log; then: patchq goto PATCH --queue {seen.queue.name}",
    )


def recover(aim: look.Aim, force: str | None) -> Conversation[Report]:
    """Finish or undo a transaction that was interrupted."""
    seen = yield from look.sight(aim)
    reply = yield aim.request("recover", seen.queue.distribution, force=force)
    ok = reply.message["ok"]
    document = {"verb": "recover", "outcome": ok["outcome"], "paths": ok["paths"]}
    if ok["outcome"] == "nothing":
        return Report((), ("Nothing to recover",), document, ExitCode.NOTHING_TO_DO)
    lines = (f"The interrupted transaction was {ok['outcome']}", *ok["paths"])
    return Report(lines, (), document)


def _wanted(aim: look.Aim) -> look.Want:
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
    return look.Want(True, frozenset(known - before))


def _nothing(verb: str, seen: look.Sight, message: str) -> Report:
    document = {"verb": verb, "queue": seen.queue.name, "patches": [], "message": message}
    return Report((), (message,), document, ExitCode.NOTHING_TO_DO)
