"""The environment's receipts: what was done there, by whom, whatever queue it was of."""

from __future__ import annotations

import re
from typing import Any

from patchq.conversation import answers, look, selection, view
from patchq.errors import ExitCode
from patchq.report import Report
from patchq.transport.channel import Conversation

# How the log marks patches, by the direction in which they went.
SIGNS = (("push", "+"), ("pop", "-"))
Receipts = list[dict[str, Any]]


def receipts(aim: view.Aim) -> Conversation[tuple[Receipts, str | None]]:
    """Return all receipts, oldest first, and why a ledger is not whole, if one is not.

    Asked for are the distributions of the queues in sight, and those that have a ledger.

    Raises:
        PatchqError: none of them is there.
    """
    named = [one for one in aim.queues if aim.name in (None, one.name)]
    todo = dict.fromkeys(queue.distribution for queue in named)
    if aim.name is None or not todo:
        reply = yield aim.request("records", "", ledgers=True)
        known = {_normal(name) for name in todo}
        listed = map(str, reply.message["ok"]["records"])
        todo.update(dict.fromkeys(one for one in listed if _normal(one) not in known))
    found: Receipts = []
    broken: str | None = None
    there = not todo
    for distribution in todo:
        survey, reply = yield from look.survey(aim, distribution, (), view.Want(more=("ledger",)))
        there = there or survey.installed is not None or bool(survey.orphaned)
        found += answers.receipts_of(reply.message["ok"])
        broken = broken or reply.message["ok"].get("ledger_broken")
    if not named and aim.name and not any(one["queue"] == aim.name for one in found):
        raise selection.none(aim, [])
    if not there and not found:
        seen = yield from look.sights(aim, next(iter(todo)), view.Want())
        raise selection.none(aim, seen)
    return sorted(found, key=lambda one: str(one["time"])), broken


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def last(aim: view.Aim) -> Conversation[dict[str, Any] | None]:
    """Return the last receipt of something that was done, None where there is none."""
    found, _ = yield from receipts(aim)
    return newest(found)


def newest(found: Receipts) -> dict[str, Any] | None:
    """Return the last of some receipts that is not one of a commit that never was."""
    done = [one for one in found if one.get("outcome") != "abandoned"]
    return next(reversed(done or found), None)


def log(aim: view.Aim) -> Conversation[Report]:
    """Show the environment's receipts, newest first, and whether the ledger is whole."""
    found, broken = yield from receipts(aim)
    document = {"verb": "log", "receipts": found, "ledger_broken": broken}
    if not found and not broken:
        told = {**document, "message": "No receipts"}
        return Report((), ("No receipts",), told, ExitCode.NOTHING_TO_DO)
    lines = [line for one in reversed(found) for line in _receipt(one)]
    notes = (f"the ledger is not whole: {broken}",) if broken else ()
    code = ExitCode.FINDING if broken else ExitCode.DONE
    return Report(tuple(lines), notes, document, code)


def _receipt(one: dict[str, Any]) -> list[str]:
    """Return one receipt as lines: who and when, what of, which files, which patches."""
    there = one.get("user")
    as_ = "" if there == one.get("who") else f" as {there or 'user'} (uid {one.get('uid')})"
    first = f"{one['id']}  {one['time']}  {one['verb']}  {one.get('who')}"
    text = f", commit {str(one['commit'])[:12]}" if one.get("commit") else ""
    text += " (with uncommitted changes)" if one.get("dirty") else ""
    text += f", {one['outcome']}" if one.get("outcome") else ""
    lines = [
        f"{first} from {one.get('whence')}{as_}",
        f"    queue {one['queue']}, series {one.get('release')}{text}",
    ]
    effect = one.get("effect")
    if isinstance(effect, dict):
        before, after = (str(effect.get(key))[:12] for key in ("before", "after"))
        lines[1] += f", effect {before} -> {after}"
    moves = [(sign, p) for verb, sign in SIGNS for p in one["patches"].get(verb) or ()]
    return lines + [f"    {sign} {patch['patch']}" for sign, patch in moves]
