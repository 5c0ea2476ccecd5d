"""One tree on several hosts is one environment: it is changed once in a run.

That it is one tree is proven by a change of this run that another host sees: as the last
receipt, or as the transaction that holds the lock there. An equal environment id proves
nothing, since a copied environment has its original's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchq.conversation import answers, ledger
from patchq.errors import ExitCode, PatchqError
from patchq.report import Report
from patchq.transport.channel import AgentError, Conversation, Reply, Request

# How often a commit is tried again while another holds the lock; each waits 0.2 s for it.
_TRIES = 10
# What an agent says where another was faster, or is at work.
_OVERTAKEN = ("changed", "locked")


class Alone:
    """What the conversations of a run have asked to change: the ids of their commits."""

    def __init__(self) -> None:
        self.commits: set[str] = set()


def once(conversation: Conversation[Report], run: Alone | None) -> Conversation[Report]:
    """Hold a conversation, unless another of the run has changed this environment already.

    `run`: what is the same for all conversations of the run; None where there is no other.
    """
    return conversation if run is None else _once(conversation, run.commits)


def _once(conversation: Conversation[Report], commits: set[str]) -> Conversation[Report]:
    mine: set[str] = set()
    reply: Reply | PatchqError | None = None
    try:
        while True:
            try:
                request = _step(conversation, reply)
            except StopIteration as stop:
                report: Report = stop.value
                return report
            message = dict(request.message)
            if message["op"] == "survey":
                message["want"] = [*(message.get("want") or ()), "last"]
            if message["op"] == "commit":
                commits.add(message["id"])
                mine.add(message["id"])
            try:
                reply = yield Request(message, request.blobs)
                found = _changed(reply.message["ok"], commits - mine)
            except PatchqError as error:
                reply = error
                found = None
                if message["op"] == "commit" and commits - mine:
                    reply, found = yield from _overtaken(request, error, commits - mine)
            if found is not None:
                return _report(found)
    finally:
        conversation.close()


def _step(conversation: Conversation[Report], reply: Reply | PatchqError | None) -> Request:
    if reply is None:
        return next(conversation)
    if isinstance(reply, PatchqError):
        return conversation.throw(reply)
    return conversation.send(reply)


def _overtaken(
    request: Request, error: PatchqError, others: set[str]
) -> Conversation[tuple[Reply | PatchqError, str | None]]:
    """Return what a commit came to that was not the first, and whose change was, if known."""
    keys = ("distribution", "target", "explicit")
    asked = {key: request.message.get(key) for key in keys}
    for _ in range(_TRIES):
        if not isinstance(error, AgentError) or error.word not in _OVERTAKEN:
            break
        try:
            seen = yield Request({"op": "survey", **asked, "paths": [], "want": ["last"]})
            found = _changed(seen.message["ok"], others)
            if found is not None or error.word == "changed":
                return error, found
            return (yield request), None
        except PatchqError as again:
            error = again
    return error, None


def _changed(ok: Mapping[str, Any], others: set[str]) -> str | None:
    """Return the change of another of the run that an answer tells of, None for none."""
    last = ledger.newest(answers.receipts_of(ok))
    if last is not None and last.get("outcome") != "abandoned" and last["id"] in others:
        return str(last["id"])
    busy = ok.get("busy")
    return str(busy["id"]) if isinstance(busy, dict) and busy.get("id") in others else None


def _report(found: str) -> Report:
    message = "same environment as another host of this run, which changes it"
    document = {"patches": [], "message": message, "same_as": found}
    return Report((), (message,), document, ExitCode.NOTHING_TO_DO)
