"""From a command line to a report: a verb's run on all that its target means."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchq.cli import many, places, rolling
from patchq.cli.plain import plain, put
from patchq.cli.target import Target as Target  # what a verb needs of a command line, in one place
from patchq.cli.target import json_option as json_option
from patchq.cli.target import target_of as target_of
from patchq.cli.target import target_options as target_options
from patchq.conversation.view import Aim, Shared
from patchq.errors import ExitCode, Interrupted, PatchqError, QuiltError, UsageError
from patchq.outcome import Outcome, Run, named, word_for, word_of
from patchq.report import Report, brief
from patchq.transport.channel import Conversation

if TYPE_CHECKING:
    from patchq.queue.store import Queue

# Lines that say what to type.
_TYPED = re.compile(r"mend: |[`']patchq ")


def run(
    target: Target,
    make: Callable[[Aim], Conversation[Report]],
    *,
    writing: bool = False,
    quiet: bool = False,
    record: bool = False,
    printer: Callable[[Report], int] | None = None,
) -> int:
    """Hold a verb's conversation with the target and show its report.

    `record`: the verb can do with what the environment records, without a queue. `printer`
    shows one environment's report in another way than `show`, but for JSON.
    """
    done = outcomes(target, make, writing=writing, quiet=quiet, record=record)
    if target.several:
        verb = click.get_current_context().info_name or ""
        return many.show(done, verb, changes=writing, as_json=target.as_json, quiet=quiet)
    (one,) = done.outcomes
    for note in done.notes:
        click.echo(plain(note), err=True)
    if one.error is not None:
        if done.interrupted:
            one.error.exit_code = ExitCode.INTERRUPTED
        raise told(target, one.error)
    assert one.report is not None
    if printer is None or target.as_json:
        code = show(one.report, target.as_json, quiet=quiet)
    else:
        code = printer(one.report)
    return ExitCode.INTERRUPTED if done.interrupted else code


def told(target: Target, error: PatchqError) -> PatchqError:
    """Return an error as the target's user is told it: a script on a plain tree as by quilt."""
    if isinstance(error, QuiltError) and target.tree is not None:
        error.brief = not sys.stderr.isatty()
    return error


def outcomes(
    target: Target,
    make: Callable[[Aim], Conversation[Report]],
    *,
    writing: bool = False,
    quiet: bool = False,
    record: bool = False,
) -> Run:
    """Hold a verb's conversation with every environment of the target.

    An error of a host is its outcome; so is one of the environment here.

    Raises:
        Interrupted: ^C came where no host of a run waits for it.
    """
    shared = Shared()
    try:
        return _outcomes(target, make, shared, writing=writing, quiet=quiet, record=record)
    except KeyboardInterrupt as error:
        raise _interrupted(shared.asked) from error
    finally:
        shared.holds.release()


def _interrupted(asked: bool) -> Interrupted:
    if not asked:
        why = "^C came before anything was asked to change"
        return Interrupted("interrupted; nothing was changed", why=why, mend="run it again")
    return Interrupted(
        "interrupted; it is not known whether anything was changed",
        why="^C came within a change, or after it; a change is done whole, or not at all",
        mend="patchq status",
    )


def _outcomes(
    target: Target,
    make: Callable[[Aim], Conversation[Report]],
    shared: Shared,
    *,
    writing: bool,
    quiet: bool,
    record: bool,
) -> Run:
    where = target.target
    if target.tree is not None:
        root = places.tree(target.tree)
        where = str(root)
        queues: tuple[Queue, ...] = (places.tree_queue(root),)
    else:
        queues = places.queues(target.queue, needed=not record)
    if where is not None:
        where = _elsewhere(where) if target.hosts else str(_folder(where))
    aim = Aim(
        queues,
        places.cache,
        name=queues[0].name if target.queue is not None and queues else target.queue,
        target=where,
        explicit=target.python is not None or where is not None,
        remote=bool(target.hosts),
        several=len(target.hosts) > 1,
        tree=target.tree is not None,
        shared=shared,
    )
    if target.hosts:
        silent = quiet or not target.several or target.as_json
        done = rolling.hold(target, make, aim, writing=writing, silent=silent)
    else:
        done = Run((_here(target, make(aim), writing),))
        if target.tree is not None and writing and done.outcomes[0].error is None:
            places.remember(root, queues[0])
    outcomes = tuple(_aimed(target, one) for one in named(done.outcomes))
    notes = (*target.meant.notes, *shared.notes, *done.notes)
    return replace(done, outcomes=outcomes, notes=notes)


def _aimed(target: Target, one: Outcome) -> Outcome:
    """Return an outcome whose commands to type mean the environment that it is about."""
    if one.error is not None:
        one.error.mend = target.aimed(one.error.mend, one.host)
        if isinstance(one.error, QuiltError):  # quilt puts what to type into its one line
            one.error.what = target.aimed(one.error.what, one.host)
    if one.report is None:
        return one
    lines, notes = (
        tuple(target.aimed(line, one.host) if _TYPED.search(line) else line for line in some)
        for some in (one.report.lines, one.report.notes)
    )
    return replace(one, report=replace(one.report, lines=lines, notes=notes))


def _elsewhere(name: str) -> str:
    if name.startswith("/"):
        return name
    raise UsageError(
        f"--target {name} is not an absolute path",
        why="on a host it would count from wherever the login shell starts",
        mend=f"patchq VERB -H HOST --target /path/to/{name}",
    )


def _folder(name: str) -> Path:
    path = Path(name)
    if path.is_dir():
        return path.absolute()
    raise UsageError(
        f"--target {name} is not a folder",
        why="it must be a folder that has packages in it",
        mend=f"patchq fetch vllm==0.16.0 --into {shlex.quote(name)}",
    )


def _here(target: Target, conversation: Conversation[Report], writing: bool) -> Outcome:
    """Hold a conversation with the environment of this machine that the target names."""
    from patchq.transport import local
    from patchq.transport.acquaintance import Acquaintance

    try:
        folder = target.target is not None or target.tree is not None
        own = places.own_python() if folder else None
        python = target.python or own or places.interpreter()
        if Path(python).is_dir():
            inside = next((p for p in ("bin/python", "python") if Path(python, p).exists()), "")
            raise UsageError(
                f"--python {python} is a folder",
                why="it must be the environment's interpreter",
                mend=f"patchq VERB --python {Path(python, inside or 'bin/python')}",
            )
        known = Acquaintance(places.agents())
        try:
            report = local.converse(python, conversation, writing=writing, known=known)
        finally:
            known.keep()
    except PatchqError as error:
        return Outcome("", word_for(error), None, error)
    return Outcome("", word_of(report), report)


def show(report: Report, as_json: bool, *, quiet: bool = False) -> int:
    """Print a report: results to stdout, the rest to stderr; return its exit code."""
    out = sys.stdout
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="surrogateescape")
    if as_json:
        put(json.dumps(report.to_json(), indent=1))
        return report.exit_code
    lines = report.lines
    if quiet:  # quilt -q: no file names, no blank lines
        lines = brief(lines)
    asis = report.document.get("verb") in ("diff", "header", "export")
    raw = asis and not out.isatty()  # a patch for a file or pipe
    for warning in report.warnings:
        click.echo(plain(warning), err=True)
    if lines:
        text = "\n".join(lines)
        put(text if raw else plain(text))
    for note in report.notes:
        click.echo(plain(note), err=True)
    return report.exit_code
