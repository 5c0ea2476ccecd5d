"""Moving along the stack: push, pop, goto.

Every writing verb recovers an interrupted transaction first, plans by hashes,
applies and judges on bytes, and sends one commit. Nothing is changed before
the whole plan holds.
"""

from __future__ import annotations

from dataclasses import replace

from patchq import plan, standing
from patchq.conversation import (
    aftermath,
    answers,
    drift,
    explain,
    files,
    forward,
    look,
    plain,
    telling,
    upstream,
    view,
)
from patchq.conversation.commit import Ground, commit
from patchq.conversation.goal import Upto
from patchq.errors import ExitCode, PatchqError, QuiltError
from patchq.queue import store, undoing
from patchq.report import Report
from patchq.transport.channel import AgentError, Conversation, Request


def ready(
    aim: view.Aim, ground: Ground, want: view.Want, need: view.Need = view.Need.SERIES
) -> Conversation[view.Sight]:
    """Survey for a writing verb: refusals are raised, an interrupted transaction recovered."""
    if not ground.dry_run:
        whole(aim)
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
        reply = yield recovery(aim, ground, seen.queue.distribution)
        aim.shared.recovered = True
        seen = yield from look.again(aim, seen, want)
        more = {**seen.extra, "recovered": reply.message["ok"]["outcome"]}
        seen = replace(seen, survey=replace(seen.survey, orphaned=orphaned), extra=more)
    if seen.survey.refusal:
        raise answers.refused(seen.survey.refusal)
    return seen


def whole(aim: view.Aim) -> None:
    """Take back edits of the queues in sight that were cut short.

    Raises:
        PatchqError: one can not be taken back.
    """
    for queue in aim.queues:
        if undoing.is_cut_short(queue.folder):
            aim.shared.holds.take(queue.folder)  # whoever edits now comes to an end first
            aim.shared.notes += undoing.take_back(queue.folder)
            aim.shared.forget()


def recovery(
    aim: view.Aim, ground: Ground, distribution: str, force: str | None = None
) -> Request:
    """Return the request to recover, which tells who asks, as a commit does."""
    asks = {"who": ground.who, "whence": ground.whence}
    return aim.request("recover", distribution, force=force, **asks)


def push(
    aim: view.Aim,
    ground: Ground,
    upto: Upto,
    how: plain.How | None = None,
    *,
    adopt: bool = False,
) -> Conversation[Report]:
    """Apply patches of the series that fits, up to a goal; `how` is for a plain tree.

    `adopt`: take over files that hold the result of the patches already.
    """
    seen = yield from ready(aim, ground, forward.wanted(aim))
    if seen.tree:
        return (yield from _up(aim, ground, seen, upto, how or plain.How()))
    if seen.choice is None:
        proof = yield from upstream.proof(aim, seen.queue, seen.survey)
        if proof is not None:
            return explain.report("push", seen, (explain.needless(seen, proof),))
    names = list(seen.names)
    start = plan.position(seen.lock, seen.queue.name, seen.survey)
    if isinstance(start, plan.Conflict):
        return (yield from refused("push", aim, seen, (start,)))
    if upto.everything or (start == len(names) and upto.count(names) is not None):
        goal = len(names)
        if start == goal:
            forward.fresh(seen, store.verify(seen.queue, seen.release))
            word = f"File series fully applied, ends at patch {names[-1]}" if names else ""
            return (yield from still("push", aim, seen, word or "No patches in series"))
    else:
        steps = upto.count(names)
        if steps is not None and steps > len(names) - start:
            raise _fewer("push", steps, names[start:])
        goal = start + steps if steps is not None else upto.index(names, "in series") + 1
        if steps == 0:
            return (yield from still("push", aim, seen, "No patch applied"))
        if goal <= start:
            forward.fresh(seen, store.verify(seen.queue, seen.release))
            word = f"Patch {names[goal - 1]} is currently applied"
            return (yield from still("push", aim, seen, word))
    goal = min(goal, len(names))
    return (yield from forward.forward(aim, ground, seen, goal, adopt=adopt))


def _up(
    aim: view.Aim, ground: Ground, seen: view.Sight, upto: Upto, how: plain.How
) -> Conversation[Report]:
    """Put a plain tree's patches on, as quilt counts them."""
    if seen.applied and seen.applied[-1].forced:
        top = seen.applied[-1].patch
        raise QuiltError(
            f"The topmost patch {top} needs to be refreshed first.",
            why="a part of it did not fit; what is there now is yet to be written into it",
            mend=f"patchq refresh   # or: patchq pop -f, without {top}",
        )
    goal = up(seen, upto)
    if isinstance(goal, str):
        return nothing("push", seen, goal)
    return (yield from plain.push(aim, ground, seen, goal, how))


def up(seen: view.Sight, upto: Upto) -> int | str:
    """Return how many patches of a plain tree are to be on, or why none is put on."""
    names, start = list(seen.names), len(seen.applied)
    steps = upto.count(names)
    if start == len(names) and (upto.everything or steps is not None):
        return (
            f"File series fully applied, ends at patch {names[-1]}"
            if names
            else "No patches in series"
        )
    if steps == 0:
        return "No patch applied"
    if upto.everything:
        return len(names)
    goal = start + steps if steps is not None else upto.index(names, "in series") + 1
    if goal <= start:
        return f"Patch {names[goal - 1]} is currently applied"
    return min(goal, len(names))


def down(seen: view.Sight, upto: Upto) -> int:
    """Return how many patches are to stay on."""
    names = [applied.patch for applied in seen.applied]
    if upto.everything:
        return 0
    steps = upto.count(names)
    if steps is None:
        listed = seen.names if seen.choice is not None else ()
        return upto.index(names, "applied", listed) + 1
    if steps > len(names) and not seen.tree:
        raise _fewer("pop", steps, names)
    return max(0, len(names) - steps)


def pop(aim: view.Aim, ground: Ground, upto: Upto, force: bool = False) -> Conversation[Report]:
    """Take patches off the top, until a goal; with `force` edits of their files go, too."""
    seen = yield from ready(
        aim, ground, view.Want(more=("patches",), series="any"), view.Need.RECORD
    )
    names = [applied.patch for applied in seen.applied]
    if not names:
        if seen.tree and upto.count(names) is None and not upto.everything:
            down(seen, upto)  # says which patch is not there
        return nothing("pop", seen, "No patch removed")
    keep = down(seen, upto)
    if keep == len(names):
        return nothing("pop", seen, "No patch removed")
    if seen.applied[-1].forced and not force:
        raise QuiltError(
            f"Patch {names[-1]} needs to be refreshed first.",
            why="a part of it did not fit; what is there now is yet to be written into it",
            mend="patchq refresh   # or: patchq pop -f, which drops what is there",
        )
    return (yield from backward(aim, ground, seen, keep, force=force))


def _fewer(verb: str, steps: int, names: list[str]) -> PatchqError:
    """Return the error for a number that is too large: often it begins a name."""
    near = [name for name in names if name.startswith(str(steps))]
    return PatchqError(
        f"{steps} patches can not be {'pushed' if verb == 'push' else 'taken off'}",
        why=f"there are {len(names)}: {', '.join(names)}",
        mend=f"patchq {verb} {near[0]}" if near else f"patchq {verb} -a",
    )


def backward(
    aim: view.Aim,
    ground: Ground,
    seen: view.Sight,
    keep: int,
    verb: str = "pop",
    *,
    force: bool = False,
) -> Conversation[Report]:
    """Plan and commit the way back to `keep` patches of this queue."""
    intent = plan.pop(seen.queue.name, seen.survey, keep, loose=seen.tree, force=force)
    if intent.conflicts and seen.tree:
        return (yield from _part_of_the_way(aim, ground, seen, intent.conflicts, verb))
    if intent.conflicts:
        conflicts = yield from drift.shown(aim, seen, intent.conflicts)
        return explain.report(verb, seen, conflicts)
    between = [c.path for c in intent.entries if c.path not in intent.restored]
    tree = yield from files.rebuild(aim, seen, intent.stack, between)
    try:
        return (yield from commit(aim, ground, seen, intent, tree, (), verb))
    except AgentError as error:
        if error.word != "original-damaged":
            raise
    back = [entry.path for entry in intent.entries if entry.path in intent.restored]
    for path, data in (yield from files.originals(aim, seen, back)).items():
        tree[path] = (
            None if data is None else (data, standing.pristine(seen.survey, path).executable)
        )
    return (yield from commit(aim, ground, seen, intent, tree, (), verb))


def _part_of_the_way(
    aim: view.Aim,
    ground: Ground,
    seen: view.Sight,
    conflicts: tuple[plan.Conflict, ...],
    verb: str,
) -> Conversation[Report]:
    """Take off what lies above the highest patch that has edits, as quilt does."""
    held = [one.patch for one in seen.applied]
    highest = max(held.index(one.patch) for one in conflicts)
    mine = [one for one in conflicts if one.patch == held[highest]]
    if highest == len(held) - 1 or ground.dry_run:
        return telling.unclean(verb, mine)
    done = yield from backward(aim, ground, seen, highest + 1, verb)
    return telling.unclean(verb, mine, done)


def goto(aim: view.Aim, ground: Ground, name: str) -> Conversation[Report]:
    """Push or pop until the named patch is on top."""
    want = forward.wanted(aim)
    seen = yield from ready(aim, ground, view.Want(True, want.known, more=("patches",)))
    applied = [one.patch for one in seen.applied]
    names = list(seen.names)
    index = Upto(name).index(names, "in series")
    start = plan.position(seen.lock, seen.queue.name, seen.survey)
    if isinstance(start, plan.Conflict):
        return (yield from refused("goto", aim, seen, (start,)))
    if index + 1 == len(applied):
        return (yield from still("goto", aim, seen, f"Patch {names[index]} is on top"))
    if index < len(applied):
        return (yield from backward(aim, ground, seen, index + 1, "goto"))
    return (yield from forward.forward(aim, ground, seen, index + 1, "goto"))


def still(verb: str, aim: view.Aim, seen: view.Sight, message: str) -> Conversation[Report]:
    """Return "nothing to do" where the files are as the record says, else the drift."""
    if plan.drift(seen.queue.name, seen.survey):
        return (yield from refused(verb, aim, seen))
    return nothing(verb, seen, message)


def refused(
    verb: str, aim: view.Aim, seen: view.Sight, why: tuple[plan.Conflict, ...] = ()
) -> Conversation[Report]:
    """Return the outcome of a stack that does not move: what drifted is told with the rest."""
    conflicts = (*why, *plan.drift(seen.queue.name, seen.survey))
    return explain.report(verb, seen, (yield from drift.shown(aim, seen, conflicts)))


def nothing(verb: str, seen: view.Sight, message: str) -> Report:
    """Return the outcome "nothing to do", in quilt's words."""
    more = aftermath.recovered(seen)
    document = {"verb": verb, "queue": seen.queue.name, "patches": [], "message": message}
    notes, known = (message, *more.notes), {**document, **more.document}
    return Report((), notes, known, ExitCode.NOTHING_TO_DO)
