"""The first question of every verb: what is there, and which series fits it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from patchq import standing
from patchq.conversation import answers, pool, selection
from patchq.conversation.view import Aim, Need, Sight, Want
from patchq.errors import QuiltError, UsageError
from patchq.model import Lock, LockedPatch, Survey, sha256
from patchq.queue import store
from patchq.transport.channel import Conversation, Reply


def survey(
    aim: Aim, distribution: str, locks: Iterable[Lock | None], want: Want
) -> Conversation[tuple[Survey, Reply]]:
    """Ask for the facts about all paths that the locks name."""
    paths = dict.fromkeys(want.extra)
    for lock in locks:
        for patch in lock.patches if lock else ():
            paths.update(dict.fromkeys(change.path for change in patch.changes))
            paths.update(dict.fromkeys(patch.reads))
    held = aim.shared.contents
    known = sorted(want.known | held.keys()) if want.contents else None
    reply = yield aim.request(
        "survey", distribution, paths=list(paths), known=known, want=list(want.more)
    )
    found = answers.survey_of(reply)
    asked = (one.state.sha256 for one in found.files.values()) if want.contents else ()
    found = replace(found, contents=pool.keep(aim, reply.blobs, asked))
    if found.refusal and found.refusal.get("word") in ("damaged-state", "newer-state"):
        # Without its record nothing can be said of an environment, not even "none applied".
        raise answers.refused(found.refusal)
    return found, reply


def sight(aim: Aim, want: Want | None = None, *, need: Need = Need.SERIES) -> Conversation[Sight]:
    """Survey the environment and find the one queue that the verb means."""
    want = want or Want()
    record, gone = need is not Need.SERIES, need is Need.GONE
    seen: list[Sight] = []
    for distribution in dict.fromkeys(queue.distribution for queue in aim.queues):
        seen += yield from sights(aim, distribution, want)
    found = selection.only(aim, seen, record=record, gone=gone)
    if found is None and record:
        reply = yield aim.request("records", "")
        surveyed = {one.queue.distribution for one in seen}
        for distribution in reply.message["ok"]["records"]:
            if distribution not in surveyed:
                seen += yield from sights(aim, str(distribution), want)
        found = selection.only(aim, seen, record=record, gone=gone)
    if found is None:
        raise selection.none(aim, seen)
    return found


def sights(aim: Aim, distribution: str, want: Want) -> Conversation[list[Sight]]:
    """Survey one distribution: a sight per queue in view, and per queue on its stack."""
    queues = [queue for queue in aim.queues if queue.distribution == distribution]
    if aim.tree:
        return [(yield from _tree(aim, queues[0], want))]
    locks = {queue.name: aim.locks(queue) for queue in queues}
    every = [lock for one in locks.values() for lock in one.values()]
    found, reply = yield from survey(aim, distribution, every, want)
    for name in dict.fromkeys(applied.queue for applied in found.stack):
        if name not in locks and (aim.name is None or aim.name == name):
            queues.append(store.Queue(name, Path(name), distribution, summary=""))
    return [
        Sight(
            queue,
            found,
            standing.choose(locks.get(queue.name, {}), queue.name, found),
            locks.get(queue.name, {}),
            reply.message["ok"],
            reply.blobs,
            aim.target,
            aim.remote,
        )
        for queue in queues
    ]


def again(aim: Aim, before: Sight, want: Want) -> Conversation[Sight]:
    """Survey once more for a queue that is known already."""
    if aim.tree:
        return (yield from _tree(aim, before.queue, want))
    found, reply = yield from survey(aim, before.queue.distribution, before.locks.values(), want)
    choice = standing.choose(before.locks, before.queue.name, found)
    told = {key: word for key, word in before.extra.items() if key == "recovered"}
    extra = {**reply.message["ok"], **told}
    return replace(before, survey=found, choice=choice, extra=extra, texts=reply.blobs)


def _tree(aim: Aim, queue: store.Queue, want: Want) -> Conversation[Sight]:
    """Survey a plain tree. Its lock is what is on, and the names of what is not.

    What a patch of a quilt series changes shows only when it is put on what is there.
    """
    found, reply = yield from survey(aim, queue.distribution, (), want)
    release = queue.releases[0]
    held = {one.patch: one for one in found.stack}
    try:
        listed = [one.name for one in store.series(queue, release).entries]
    except UsageError:  # no series yet
        listed = list(held)
    nothing = sha256(b"")
    pinned = tuple(
        LockedPatch(
            name,
            "",
            held[name].sha256 if name in held else nothing,
            None,
            held[name].changes if name in held else (),
        )
        for name in listed
    )
    lock = Lock(queue.distribution, release, "", pinned)
    choice = standing.Choice(release, "tree")
    ok = reply.message["ok"]
    locks = {release: lock}
    seen = Sight(queue, found, choice, locks, ok, reply.blobs, aim.target, aim.remote, True)
    _check_series(seen, want)
    return seen


def _check_series(seen: Sight, want: Want) -> None:
    """Raise where a plain tree's series is not what a verb needs.

    Raises:
        QuiltError: there is none, or it was changed under the patches that are on.
    """
    path = store.listing(seen.queue, seen.release)
    held = [one.patch for one in seen.applied]
    if want.series != "made" and not held and not path.exists():
        raise QuiltError(
            "No series file found",
            why=f"there is no {path}",
            mend="patchq new NAME.patch --tree .   # begins one",
        )
    if want.series == "ordered" and list(seen.names[: len(held)]) != held:
        raise QuiltError(
            "The series file no longer matches the applied patches. Please run 'patchq pop -a'.",
            why=f"applied are {', '.join(held)}; the series has {', '.join(seen.names)}",
            mend="patchq pop -a",
        )
