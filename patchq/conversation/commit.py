"""The one request that changes an environment, and who asks for it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from patchq import plan
from patchq.conversation import explain, judging, view
from patchq.model import Patch
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
        id=os.urandom(8).hex(),
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
    blobs: dict[str, bytes] = {}
    for entry in intent.entries:
        file = tree.get(entry.path)
        if file and entry.after.sha256:
            blobs[entry.after.sha256] = file[0]
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
