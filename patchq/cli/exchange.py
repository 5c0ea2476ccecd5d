"""The verb that gives a series to others, and the way back of `import --git`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patchq.cli import places, reaching
from patchq.cli.making import one
from patchq.cli.move import dry_run, ground
from patchq.cli.plain import plain
from patchq.cli.run import run, show
from patchq.cli.target import Target, json_option
from patchq.errors import ExitCode, PatchqError, UsageError
from patchq.report import Report

if TYPE_CHECKING:
    from patchq.conversation.view import Aim
    from patchq.exchange.source import Source
    from patchq.transport.channel import Conversation

# Options of `import` that say how one file is read: what a command has as names -> in words.
_OF_FILES = {
    "name": "-P",
    "strip": "-p",
    "reverse": "-R",
    "force": "-f",
    "keep": "-d",
    "fuzz": "--fuzz",
    "leave_out": "--leave-out",
}


@click.command(short_help="Give the series to git, to mail, or as one diff")
@click.option("--git", "folder", metavar="DIR", help="A branch there: a commit for each patch.")
@click.option("--mbox", metavar="FILE", help="A mailbox that git am reads; - is stdout.")
@click.option("--combined", is_flag=True, help="One diff of the whole series, on stdout.")
@click.option("--release", metavar="RELEASE", help="This one's series; the newest if not given.")
@click.option("-f", "force", is_flag=True, help="With --git: replace a branch that was edited.")
@click.option("--queue", metavar="QUEUE", help="A queue's name or folder.")
@click.option("--tree", metavar="DIR", help="A plain tree with quilt's folder of patches.")
@dry_run
@json_option
def export(
    folder: str | None,
    mbox: str | None,
    combined: bool,
    release: str | None,
    force: bool,
    queue: str | None,
    tree: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Give a series to others; the queue is not changed, nor any environment.

    With --git the branch patchq/QUEUE/RELEASE of the repository DIR, which is made if it is
    not there, begins with the pristine files and has a commit for each patch. Edit it with
    git; patchq import --git DIR brings it back.

    \b
    Examples:
      patchq export --git ../work --queue queues/mine
      patchq export --mbox mine.mbox --release 0.16.0 --queue queues/mine
      patchq export --combined --tree . > all.diff
    """
    ways = [name for name, value in (("--git", folder), ("--mbox", mbox)) if value]
    ways += ["--combined"] * combined
    if len(ways) != 1:
        raise UsageError(
            "export needs one of --git, --mbox and --combined",
            why=f"given: {', '.join(ways) or 'none'}",
            mend="patchq export --git DIR",
        )

    made = partial(_made, folder=folder, mbox=mbox, force=force, dry_run=dry_run)
    if tree is not None:
        places.alone(tree, {"--queue": queue, "--release": release})
        return run(_target(tree, as_json), lambda aim: _of_tree(aim, made))
    from patchq.exchange import source

    found = source.of_queue(places.one_queue(queue, "export"), release, places.cache())
    return show(made(found), as_json)


def _made(
    source: Source, *, folder: str | None, mbox: str | None, force: bool, dry_run: bool
) -> Report:
    """Give a series away in the way that is named: --git, --mbox, else --combined."""
    from patchq.exchange import outgoing

    if folder is not None:
        return outgoing.to_git(source, Path(folder), force=force, dry_run=dry_run)
    if mbox is None:
        return _text(outgoing.combined(source), source)
    data, notes = outgoing.to_mails(source)
    return _mails(mbox, data, notes, source, dry_run)


def bring(
    folder: str | None,
    release: str | None,
    files: tuple[str, ...],
    values: dict[str, Any],
    dry: bool,
) -> int:
    """Bring an edited branch back as the series: `import --git`.

    Raises:
        UsageError: a file, an option of it, or an environment is named, too.
    """
    from patchq.exchange import returning, source
    from patchq.queue import holding

    given = {"FILE": files, **{word: values.pop(name) for name, word in _OF_FILES.items()}}
    target = one(values)
    folder = _alone(folder, release, given)
    if target.tree is not None:
        places.alone(target.tree, {"--release": release})
        return run(
            target,
            lambda aim: _back_to_tree(aim, Path(folder), dry),
            writing=True,
        )
    _queue_only(folder, target)
    queue = places.one_queue(target.queue, "import")
    for note in () if dry else holding.settled(queue.folder):
        click.echo(plain(note), err=True)
    found = source.of_queue(queue, release, places.cache())
    report = returning.bring(found, Path(folder), dry_run=dry)
    if report.exit_code is not ExitCode.DONE or dry:
        return show(report, target.as_json)
    return show(_judged(report, found), target.as_json)


def _alone(folder: str | None, release: str | None, given: dict[str, Any]) -> str:
    """Return the folder of `import --git`, where it is named and nothing else is."""
    if folder is None:
        raise UsageError(
            "import needs FILE, or --git DIR",
            why="--release goes with --git" if release else "nothing was named",
            mend="patchq import FILE",
        )
    for name, value in given.items():
        if value or (name == "-p" and value is not None):
            raise UsageError(
                f"--git and {name} do not go together",
                why="a branch is brought back as the whole series",
                mend=f"patchq import --git {folder}",
            )
    return folder


def _queue_only(folder: str, target: Target) -> None:
    """Raise where an environment is named: only the queue's files change."""
    named = {"--python": target.python, "--target": target.target, "-H": target.hosts}
    for option, value in named.items():
        if value:
            raise UsageError(
                f"--git and {option} do not go together",
                why="a branch is brought back into the queue's files; no environment is asked",
                mend=f"patchq import --git {folder} --queue NAME",
            )


def _judged(report: Report, source: Source) -> Report:
    """Return a report with the verdict on the series as it is now; its lock is made anew.

    A patch without a sketch is told, and no failure: a push judges again.
    """
    from patchq import lint
    from patchq.queue import store

    fresh = store.open(source.queue.folder)
    judged = lint.lint(fresh, source.release, cache=places.cache(), write=True)
    document = {**report.document, "lint": judged.document}
    lock = store.lock(fresh, source.release)
    whole = lock is not None and len(lock.patches) == len(
        store.series(fresh, source.release).entries
    )
    code = ExitCode.DONE if whole else ExitCode.FAILED
    notes = (*judged.lines, *judged.notes, *report.notes)
    return replace(report, notes=notes, document=document, exit_code=code)


def _target(tree: str, as_json: bool) -> Target:
    reach = reaching.Reach(reaching.JOBS, False, None, False, None, False)
    return Target(None, None, (), False, None, as_json, reach, tree)


def _of_tree(aim: Aim, made: Any) -> Conversation[Report]:
    from patchq.editing import exchanging

    source = yield from exchanging.tree(aim, ground(False))
    report: Report = made(source)
    return report


def _back_to_tree(aim: Aim, folder: Path, dry: bool) -> Conversation[Report]:
    from patchq.editing import exchanging
    from patchq.exchange import returning

    source = yield from exchanging.unapplied(aim, ground(dry))
    return returning.bring(source, folder, dry_run=dry)


def _mails(
    file: str, data: bytes, notes: tuple[str, ...], source: Source, dry_run: bool
) -> Report:
    """Write a mailbox, or show it."""
    count = len(source.patches)
    if file == "-":
        return replace(_text(data, source), notes=notes)
    word = f"{count} patch{'es' * (count != 1)}"
    if dry_run:
        return Report((f"Would write {word} to {file}",), notes, _document(source))
    try:
        Path(file).write_bytes(data)
    except OSError as error:
        raise PatchqError(
            f"{file} can not be written",
            why=error.strerror or str(error),
            mend="name another file: patchq export --mbox FILE",
        ) from error
    return Report((f"Wrote {word} to {file}",), notes, {**_document(source), "file": file})


def _text(data: bytes, source: Source) -> Report:
    text = data.decode("utf-8", "surrogateescape")
    shown = tuple(text.removesuffix("\n").split("\n")) if text else ()
    return Report(shown, (), {**_document(source), "text": data.decode("utf-8", "replace")})


def _document(source: Source) -> dict[str, object]:
    names = [patch.name for patch in source.patches]
    return {
        "verb": "export",
        "queue": source.queue.name,
        "release": source.release,
        "patches": names,
    }


COMMANDS: dict[str, Any] = {"export": export}
