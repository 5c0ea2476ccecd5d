"""From a command line to a report: the options that every verb has, and its run."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from patchq.cli import places
from patchq.conversation.look import Aim
from patchq.errors import UsageError
from patchq.report import Report
from patchq.transport.channel import Conversation

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Target:
    """The environment that the user named, and how to answer."""

    python: str | None
    target: str | None
    host: str | None
    queue: str | None
    as_json: bool


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
                help="user@host[:port], a name of ~/.ssh/config, "
                "or 'command:docker exec -i NAME sh -c'.",
            ),
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
    return Target(*(values.pop(name) for name in ("python", "target", "host", "queue", "as_json")))


def run(
    target: Target,
    make: Callable[[Aim], Conversation[Report]],
    *,
    writing: bool = False,
    quiet: bool = False,
) -> int:
    """Hold a verb's conversation with the target and show its report."""
    queues = places.queues(target.queue)
    where = target.target
    if where is not None and target.host is None:
        where = str(_folder(where))
    aim = Aim(
        queues,
        places.cache,
        named=target.queue is not None,
        target=where,
        explicit=target.python is not None or target.target is not None,
    )
    return show(_converse(target, make(aim), writing), target.as_json, quiet=quiet)


def _folder(name: str) -> Path:
    path = Path(name)
    if path.is_dir():
        return path.absolute()
    raise UsageError(
        f"--target {name} is not a folder",
        why="it must be a folder that has packages in it",
        mend=f"patchq fetch vllm==0.16.0 --into {shlex.quote(name)}",
    )


def _converse(target: Target, conversation: Conversation[Report], writing: bool) -> Report:
    if target.host is None:
        from patchq.transport import local

        own = places.own_python() if target.target is not None else None
        python = target.python or own or places.interpreter()
        return local.converse(python, conversation, writing=writing)
    if target.host.startswith("command:"):
        from patchq.transport import command

        argv = shlex.split(target.host.removeprefix("command:"))
        return command.converse(argv, target.python, conversation, writing=writing)
    from patchq import fleet

    return fleet.one(target.host, target.python, conversation, writing=writing)


def show(report: Report, as_json: bool, *, quiet: bool = False) -> int:
    """Print a report: results to stdout, the rest to stderr; return its exit code."""
    out = sys.stdout
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="surrogateescape")
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=1))
        return report.exit_code
    lines = report.lines
    if quiet:  # quilt -q: no file names, no blank lines
        lines = tuple(
            line
            for line in lines
            if line and not line.startswith(("patching file ", "Restoring ", "would change "))
        )
    if lines:
        click.echo("\n".join(lines))
    for note in report.notes:
        click.echo(note, err=True)
    return report.exit_code
