"""The one request that changes an environment, and who asks for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from patchq import plan
from patchq.conversation import explain, judging, view
from patchq.model import AppliedPatch, FileState, Patch, PathChange
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


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one path.

    `how` is "write" the bytes, give the "original" back, "adopt" what is there already,
    "detach" it: give the same bytes a file of their own, or "restore" the release's bytes where
    no patch has the file. `pristine` is the state of the original, where the file that is
    there is none.
    """

    change: PathChange
    how: str = "write"
    pristine: FileState | None = None

    def to_json(self) -> dict[str, object]:
        """Return the entry of the request."""
        entry: dict[str, object] = {
            "path": self.change.path,
            "before": self.change.before.to_json(),
            "after": self.change.after.to_json(),
            "original": self.how == "original",
        }
        if self.how in ("adopt", "detach", "restore"):
            entry[self.how] = True
        if self.pristine is not None:
            entry["pristine"] = self.pristine.to_json()
        return entry


@dataclass(frozen=True, slots=True)
class Change:
    """All that a transaction is to do: each path, and the stack that it leaves.

    `moved` names what the receipt is to tell: patches by what was done to them.
    `blobs` has new contents, originals and texts of patches by their digest.
    """

    verb: str
    release: str
    steps: tuple[Step, ...]
    stack: tuple[AppliedPatch, ...]
    moved: Mapping[str, tuple[str, ...]]
    blobs: Mapping[str, bytes]
    compiled: bool = False


def send(
    aim: view.Aim, ground: Ground, seen: view.Sight, change: Change
) -> Conversation[Mapping[str, object]]:
    """Send a transaction; return what the agent says of it: receipt, kept, pending."""
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
        entries=[step.to_json() for step in change.steps],
        stack=[applied.to_json() for applied in change.stack],
        patches=[applied.sha256 for applied in change.stack],
        receipt=_receipt(ground, seen, change),
        compile=change.compiled,
        running=True,
    )
    blobs = dict(change.blobs)
    blobs |= {a.sha256: seen.texts[a.sha256] for a in change.stack if a.sha256 in seen.texts}
    reply = yield Request(request.message, blobs)
    ok: Mapping[str, object] = reply.message["ok"]
    return ok


def commit(
    aim: view.Aim,
    ground: Ground,
    seen: view.Sight,
    intent: plan.Plan,
    tree: judging.Tree,
    patches: tuple[Patch, ...],
    verb: str,
    adopted: judging.Tree | None = None,
) -> Conversation[Report]:
    """Send the transaction of a push or pop and report it; `tree` has the new bytes.

    `adopted` has what was below at paths that hold the new bytes already.
    """
    adopted = adopted or {}
    if ground.dry_run:
        return explain.moved(verb, seen, intent, None)
    blobs = dict(judging.texts(patches))
    for entry in intent.entries:
        file = tree.get(entry.path)
        if file and entry.after.sha256:
            blobs[entry.after.sha256] = file[0]
    steps = tuple(_step(intent, entry, seen.survey.stack) for entry in intent.entries)
    for path, state in intent.adopted.items():
        file = adopted.get(path)
        if file is not None and state.sha256 is not None:
            blobs[state.sha256] = file[0]
    moved = {intent.verb: intent.patches}
    compiled = intent.verb == "push" and not aim.tree
    change = Change(verb, intent.release, steps, intent.stack, moved, blobs, compiled)
    return explain.moved(verb, seen, intent, (yield from send(aim, ground, seen, change)))


def _step(intent: plan.Plan, entry: PathChange, held: tuple[AppliedPatch, ...]) -> Step:
    if entry.path in intent.adopted:
        there = PathChange(entry.path, entry.after, entry.after)
        known = any(c.path == entry.path for one in held for c in one.changes)
        return Step(there, "adopt", None if known else intent.adopted[entry.path])
    return Step(entry, "original" if entry.path in intent.restored else "write")


def _receipt(ground: Ground, seen: view.Sight, change: Change) -> dict[str, object]:
    """Return what the environment's ledger is to say beside what the agent knows."""
    asked = None if set(change.moved) == {"pop"} else ground.heads
    head, dirty = asked.of(seen.queue) if asked else (None, False)
    texts = {a.patch: a.sha256 for a in (*seen.survey.stack, *change.stack)}
    return {
        "verb": change.verb,
        "queue": seen.queue.name,
        "release": change.release,
        "chosen": seen.choice.how if seen.choice else "record",
        "commit": head,
        "dirty": dirty,
        "who": ground.who,
        "whence": ground.whence,
        "patches": {
            what: [{"patch": name, "sha256": texts[name]} for name in names]
            for what, names in change.moved.items()
        },
    }
