"""Taking back: the last transaction by its receipt, or one that was cut short."""

from __future__ import annotations

from patchq.conversation import answers, commit, forward, look, move, view
from patchq.errors import ExitCode, PatchqError, UsageError
from patchq.report import Report
from patchq.transport.channel import Conversation


def undo(aim: view.Aim, ground: commit.Ground) -> Conversation[Report]:
    """Take the environment back to before its last receipt."""
    known = forward.wanted(aim).known
    want = view.Want(True, known, more=("patches", "ledger"))
    seen = yield from move.ready(aim, ground, want, view.Need.RECORD)
    ledger = answers.receipts_of(seen.extra)
    if not ledger:
        return move.nothing("undo", seen, "No receipt to undo")
    last = next((one for one in reversed(ledger) if one.get("outcome") != "abandoned"), ledger[-1])
    if last["queue"] != seen.queue.name:
        raise UsageError(
            f"the last receipt is of queue {last['queue']}, not of {seen.queue.name}",
            why="undo takes back the environment's last transaction, whatever its queue",
            mend=f"patchq undo --queue {last['queue']}",
        )
    names = [applied.patch for applied in seen.applied]
    pushed, popped = (last["patches"].get(verb, ()) for verb in ("push", "pop"))
    if not pushed and not popped:
        raise _moved_on(seen, last)
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


def _moved_on(seen: view.Sight, last: dict[str, object]) -> PatchqError:
    return PatchqError(
        f"the last receipt ({last['verb']}, {last['time']}) can not be undone",
        why="the stack or the queue is not what it was then",
        mend=f"patchq log; then: patchq goto PATCH --queue {seen.queue.name}",
    )


def recover(aim: view.Aim, force: str | None) -> Conversation[Report]:
    """Finish or undo a transaction that was interrupted."""
    seen = yield from look.sight(aim, need=view.Need.GONE)
    reply = yield aim.request("recover", seen.queue.distribution, force=force)
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
    return Report((first, *ok["paths"]), (), document)
