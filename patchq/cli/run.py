"""From a command line to a report: the options that every verb has, and its run."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from patchq.cli import many, places, reaching
from patchq.cli.plain import plain
from patchq.conversation.view import Aim, Shared
from patchq.errors import ExitCode, Interrupted, PatchqError, UsageError
from patchq.outcome import Outcome, Run, word_for, word_of
from patchq.report import Report
from patchq.transport.channel import Conversation

F = TypeVar("F", bound=Callable[..., Any])

# The verbs that have the options of `target_options`, as a mend names them.
_VERBS = re.compile(
    r"\bpatchq (push|pop|goto|undo|recover|status|series|diff|log|check|audit|VERB)\b"
    r"(?! (--python|--target|-H))"
)


@dataclass(frozen=True, slots=True)
class Target:
    """The environments that the user named, how to reach them, and how to answer.

    `hosts` is empty for the environment here; `several` is true where the user named
    more than one host, or a pattern that might be more.
    """

    python: str | None
    target: str | None
    hosts: tuple[str, ...]
    several: bool
    queue: str | None
    as_json: bool
    reach: reaching.Reach

    def aimed(self, mend: str, host: str = "") -> str:
        """Return a command to type with this target's options, so that it means this target."""
        named = None if "--queue" in mend else self.queue
        options = {
            "--python": self.python,
            "--target": self.target,
            "-H": host,
            "--queue": named,
        }
        words = [f" {name} {shlex.quote(value)}" for name, value in options.items() if value]
        return _VERBS.sub(lambda found: found[0] + "".join(words), mend)


def target_options(function: F) -> F:
    """Add the options of every verb that looks at an environment."""
    for option in reversed(
        (
            click.option("--python", metavar="PATH", help="The environment's interpreter."),
            click.option(
                "--target", metavar="DIR", help="A folder made by pip --target or fetch --into."
            ),
            click.option(
                "-H",
                "--host",
                metavar="HOST",
                multiple=True,
                help="user@host[:port], names of ~/.ssh/config, lists and ranges "
                "(gpu[01-64],!gpu07), or 'command:docker exec -i NAME sh -c'.",
            ),
            *reaching.OPTIONS,
            click.option("--queue", metavar="QUEUE", help="A queue's name or folder."),
            json_option,
        )
    ):
        function = option(function)
    return function


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Answer with one JSON document."
)


def target_of(values: dict[str, Any]) -> Target:
    """Take the options of `target_options` out of a command's values."""
    named = values.pop("host")
    python, target, queue, as_json = (
        values.pop(name) for name in ("python", "target", "queue", "as_json")
    )
    reach = reaching.Reach.take(values, remote=bool(named))
    hosts = reaching.hosts(named)
    return Target(python, target, hosts, hosts != named[:1], queue, as_json, reach)


def run(
    target: Target,
    make: Callable[[Aim], Conversation[Report]],
    *,
    writing: bool = False,
    quiet: bool = False,
    record: bool = False,
) -> int:
    """Hold a verb's conversation with the target and show its report.

    `record`: the verb can do with what the environment records, without a queue.
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
        raise one.error
    assert one.report is not None
    code = show(one.report, target.as_json, quiet=quiet)
    return ExitCode.INTERRUPTED if done.interrupted else code


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
    queues = places.queues(target.queue, needed=not record)
    where = target.target
    if where is not None:
        where = _elsewhere(where) if target.hosts else str(_folder(where))
    aim = Aim(
        queues,
        places.cache,
        name=queues[0].name if target.queue is not None and queues else target.queue,
        target=where,
        explicit=target.python is not None or target.target is not None,
        remote=bool(target.hosts),
        several=len(target.hosts) > 1,
        shared=shared,
    )
    if target.hosts:
        from patchq import fleet

        options = target.reach.options(target.python, writing=writing)
        silent = quiet or not target.several or target.as_json
        total = len(target.hosts)
        done = None
        try:
            with many.progress(total, changes=writing, quiet=silent) as tell:
                done = fleet.hold(target.hosts, lambda: make(aim), options, tell)
        except OSError:  # stderr has gone: the outcomes are still told
            if done is None:
                raise
    else:
        done = Run((_here(target, make(aim), writing),))
    return replace(done, outcomes=tuple(_aimed(target, one) for one in done.outcomes))


def _aimed(target: Target, one: Outcome) -> Outcome:
    """Return an outcome whose commands to type mean the environment that it is about."""
    if one.error is not None:
        one.error.mend = target.aimed(one.error.mend, one.host)
    if one.report is None:
        return one
    lines, notes = (
        tuple(target.aimed(line, one.host) if "mend: " in line else line for line in some)
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

    try:
        own = places.own_python() if target.target is not None else None
        python = target.python or own or places.interpreter()
        if Path(python).is_dir():
            inside = next((p for p in ("bin/python", "python") if Path(python, p).exists()), "")
            raise UsageError(
                f"--python {python} is a folder",
                why="it must be the environment's interpreter",
                mend=f"patchq VERB --python {Path(python, inside or 'bin/python')}",
            )
        report = local.converse(python, conversation, writing=writing)
    except PatchqError as error:
        return Outcome("", word_for(error), None, error)
    return Outcome("", word_of(report), report)


def show(report: Report, as_json: bool, *, quiet: bool = False) -> int:
    """Print a report: results to stdout, the rest to stderr; return its exit code."""
    out = sys.stdout
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="surrogateescape")
    if as_json:
        _print(json.dumps(report.to_json(), indent=1))
        return report.exit_code
    lines = report.lines
    if quiet:  # quilt -q: no file names, no blank lines
        lines = tuple(
            line
            for line in lines
            if line and not line.startswith(("patching file ", "Restoring ", "would change "))
        )
    raw = report.document.get("verb") == "diff" and not out.isatty()  # a patch for a file or pipe
    if lines:
        text = "\n".join(lines)
        _print(text if raw else plain(text))
    for note in report.notes:
        click.echo(plain(note), err=True)
    return report.exit_code


def _print(text: str) -> None:
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stdout = None  # or Python flushes it again at the end
        raise PatchqError(
            "the answer could not be written to stdout; what the verb did is done",
            why=error.strerror or str(error),
            mend="patchq status",
        ) from error
