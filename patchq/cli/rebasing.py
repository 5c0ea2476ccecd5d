"""What `patchq rebase` does for each of its options."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import click

from patchq.cli import places, run
from patchq.errors import PatchqError, UsageError
from patchq.queue import store
from patchq.rebase import beginning, finish, progress, road, told
from patchq.rebase.beginning import Places
from patchq.rebase.progress import Progress
from patchq.rebase.road import Done
from patchq.rebase.step import Step
from patchq.report import Report

_ACTIONS = {"go_on": "continue", "skip": "skip", "abort": "abort", "leave": "quit"}
_ACTIONS |= {"show": "show-current-patch"}


def rebase(
    *, onto: str | None, source: str | None, queue: str | None, as_json: bool, **flags: bool
) -> int:
    """Begin a rebase, or do what an option says with the one in progress."""
    action = _action(onto, source, flags)
    found = Places(_queue(queue, beginning=action is None), places.cache(), places.state())
    if action is None:
        assert onto is not None
        force, dry = flags["force"], flags["dry"]
        with contextlib.nullcontext() if dry else found.folder.alone():
            asked = beginning.begin(found, onto, source, replace_it=force or dry, partial=force)
            return _walk(found, asked, as_json, dry=dry)
    with found.folder.alone():
        return _go_on(found, action, as_json, force=flags["force"])


def _go_on(found: Places, action: str, as_json: bool, *, force: bool) -> int:
    """Do what an option says with the rebase in progress."""
    try:
        asked = found.folder.load()
    except PatchqError:
        if action != "abort":
            raise
        return run.show(_abort(found, ""), as_json)
    if asked is None:
        raise progress.none(found.queue.folder)
    if action in ("abort", "quit", "show-current-patch"):
        return run.show(_other(found, asked, action), as_json)
    return _walk(found, asked, as_json, action=action, force=force)


def _action(onto: str | None, source: str | None, flags: dict[str, bool]) -> str | None:
    """Return what is to be done with a rebase in progress; None to begin one."""
    given = [_ACTIONS[name] for name, on in flags.items() if on and name in _ACTIONS]
    if len(given) == 1 and onto is None and source is None and not flags["dry"]:
        return given[0]
    if not given and onto is not None:
        return None
    raise UsageError(
        "rebase needs --onto RELEASE, or one of its other actions",
        why="given: " + (" ".join(f"--{one}" for one in given) or "no --onto"),
        mend="patchq rebase --onto RELEASE",
    )


def _queue(named: str | None, *, beginning: bool) -> store.Queue:
    """Return the queue; without a name, the one that has a rebase in progress."""
    if named is None and not beginning:
        state = places.state()
        waiting = [one for one in places.queues(None) if progress.Folder(state, one.folder).there]
        if len(waiting) == 1:
            return waiting[0]
    return places.one_queue(named, "rebase")


def _walk(
    found: Places,
    asked: Progress,
    as_json: bool,
    *,
    action: str = "",
    force: bool = False,
    dry: bool = False,
) -> int:
    """Carry the patches that are left, telling each as it is done."""
    if not dry:
        beginning.writable(found.queue)
    waiting: Step | None = None

    def tell(step: Step) -> None:
        for line in told.lines(step) if not as_json else ():
            click.echo(line)

    with road.walking(found, asked) as walk:
        if action == "skip":
            tell(walk.skip())
        elif action and asked.waiting is not None:
            tell(walk.resolve(force=force))
        for step in walk.go(dry=dry):
            tell(step)
            waiting = step if step.word.stuck and not dry else None
        left = dry or waiting is not None
        done = Done(walk.progress, waiting=waiting) if left else walk.end()
    report = told.report(done, found.folder, dry=dry)
    stale = () if left else tuple(_stale(found.queue))
    return run.show(replace(report, notes=(*report.notes, *stale)), as_json)


def _stale(queue: store.Queue) -> Iterator[str]:
    """Say which series were locked with another sketch: one may be edited while it waits."""
    fresh = store.open(queue.folder)
    differs = {release: store.verify(fresh, release) for release in fresh.releases}
    stale = [release for release, why in differs.items() if why and store.lock(fresh, release)]
    if stale:
        yield (
            f"series.lock of {', '.join(stale)} is stale, since a sketch or a patch was edited: "
            f"patchq lint --write --queue {queue.folder}"
        )


def _other(found: Places, asked: Progress, action: str) -> Report:
    folder = found.folder
    document = {"verb": "rebase", "action": action, "onto": asked.onto}
    if action == "show-current-patch":
        if asked.waiting is None:
            raise progress.none(found.queue.folder)
        path = found.queue.folder / asked.source / asked.waiting.step.name
        text = path.read_bytes().decode(errors="surrogateescape")
        return Report(tuple(text.rstrip("\n").split("\n")), document=document | {"text": text})
    if action == "quit":
        kept = folder.set_aside()
        return Report((f"The rebase is forgotten; its work tree is in {kept}",), (), document)
    return _abort(found, asked.onto)


def _abort(found: Places, onto: str) -> Report:
    """Forget a rebase, also one whose state cannot be read (`onto` is "")."""
    if onto:
        finish.heal(found.queue, onto)
    found.folder.remove()
    what = f"The rebase onto {onto}" if onto else "The rebase"
    said = f"{what} is forgotten; {found.queue.folder} is as it was"
    return Report((said,), (), {"verb": "rebase", "action": "abort", "onto": onto})
