"""Taking back: the last transaction by its receipt, or one that was cut short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from patchq.conversation import answers, commit, forward, ledger, look, move, view
from patchq.errors import ExitCode, PatchqError, UsageError
from patchq.report import Report
from patchq.transport.channel import Conversation


def undo(aim: view.Aim, ground: commit.Ground, receipt: str | None = None) -> Conversation[Report]:
    """Take the environment back to before its last receipt.

    `receipt`: only where that one is the last; nothing of anybody else's is taken back.
    """
    first = yield from ledger.last(aim)
    if receipt is not None and (first is None or first["id"] != receipt):
        raise _overtaken(first)
    if first is not None:
        _in_sight(aim, first)
        aim = replace(aim, name=first["queue"])
    known = forward.wanted(aim).known
    want = view.Want(True, known, more=("patches", "ledger"), series="any")
    seen = yield from move.ready(aim, ground, want, view.Need.RECORD)
    last = ledger.newest(answers.receipts_of(seen.extra))
    if last is None:
        return move.nothing("undo", seen, "No receipt to undo")
    if last["queue"] != seen.queue.name:  # what was recovered just now
        raise _of_another(last, seen.queue.name)
    names = [applied.patch for applied in seen.applied]
    pushed, popped = (last["patches"].get(verb, ()) for verb in ("push", "pop"))
    if not pushed and not popped:
        raise _of_the_queue(seen, last)
    if pushed:
        undone = [one["patch"] for one in pushed]
        if names[-len(undone) :] != undone:
            raise _moved_on(seen, last)
        return (yield from move.backward(aim, ground, seen, len(names) - len(undone), "undo"))
    again = [(one["patch"], one["sha256"]) for one in reversed(popped)]
    here = [(patch.name, patch.patch) for patch in seen.lock.patches]
    if here[len(names) : len(names) + len(again)] != again:
        raise _moved_on(seen, last)
    return (yield from forward.forward(aim, ground, seen, len(names) + len(again), "undo"))


def _overtaken(last: dict[str, Any] | None) -> PatchqError:
    said = f"{last['verb']}, {last['time']}, {last.get('who')}" if last else "none"
    return PatchqError(
        "somebody has changed the environment since",
        why=f"its last receipt is not the one that is to be taken back: {said}",
        mend="patchq log",
    )


def _in_sight(aim: view.Aim, last: dict[str, Any]) -> None:
    """Raise where the receipt is not of the named queue, or needs one that is not in sight."""
    name = last["queue"]
    if aim.name not in (None, name):
        raise _of_another(last, str(aim.name))
    popped = [one["patch"] for one in last["patches"].get("pop") or ()]
    if popped and not any(queue.name == name for queue in aim.queues):
        raise PatchqError(
            f"the last receipt ({last['verb']}, {last['time']}) needs queue {name} to be undone",
            why=f"{', '.join(popped)} came off, and the texts of patches that are not on are"
            f" with their queue; no queue {name} is in sight",
            mend=f"patchq undo --queue /path/to/{name}"
            "   # where it has another name now: patchq push -a --queue THAT",
        )


def _of_another(last: dict[str, Any], name: str) -> UsageError:
    return UsageError(
        f"the last receipt is of queue {last['queue']}, not of {name}",
        why="undo takes back the environment's last transaction, whatever its queue",
        mend=f"patchq undo --queue {last['queue']}",
    )


def _of_the_queue(seen: view.Sight, last: dict[str, Any]) -> PatchqError:
    """Return the error for a receipt of a verb that edits: it is the queue that it changed."""
    names = [one["patch"] for some in last["patches"].values() for one in some or ()]
    return PatchqError(
        f"the last receipt is a {last['verb']} of {', '.join(names)}; undo does not take it back",
        why="it changed the queue's own files, whose history is git's",
        mend=f"git -C {seen.queue.folder} diff   # shows it; patchq revert FILE drops an edit",
    )


def _moved_on(seen: view.Sight, last: dict[str, object]) -> PatchqError:
    return PatchqError(
        f"the last receipt ({last['verb']}, {last['time']}) can not be undone",
        why="the stack or the queue is not what it was then",
        mend=f"patchq log; then: patchq goto PATCH --queue {seen.queue.name}",
    )


def recover(
    aim: view.Aim, ground: commit.Ground, force: str | None = None
) -> Conversation[Report]:
    """Finish or undo a transaction that was interrupted."""
    seen = yield from look.sight(aim, need=view.Need.GONE)
    reply = yield move.recovery(aim, ground, seen.queue.distribution, force)
    ok = reply.message["ok"]
    document = {"verb": "recover", "outcome": ok["outcome"], "paths": ok["paths"]}
    if ok["outcome"] == "nothing":
        return Report((), ("Nothing to recover",), document, ExitCode.NOTHING_TO_DO)
    if ok["outcome"] == "set aside":
        where = ok.get("where")
        first = "The record of patches that are gone was set aside" + (
            f" in {where}" if where else ""
        )
    else:
        first = f"The interrupted transaction was {ok['outcome']}"
    left = [f"Removing {path}, which no installer took away" for path in ok.get("removed") or ()]
    return Report((first, *ok["paths"], *left), (), document)
