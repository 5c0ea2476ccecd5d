"""`hosts --discover`: the interpreters that hosts have, as lines for a hosts.toml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import click

from patchq.cli import many, places
from patchq.cli.plain import plain
from patchq.cli.run import Target, outcomes
from patchq.errors import ExitCode, UsageError
from patchq.outcome import Outcome, exit_code

_BARE = re.compile(r"[A-Za-z0-9_-]+")
# Commas of a list of hosts, not those of a range.
_COMMAS = re.compile(r",(?![^\[]*])")


def discover(target: Target) -> int:
    """Ask the target's hosts, print what belongs into a hosts.toml; return the exit code.

    Raises:
        UsageError: no host is named, or no queue is in sight.
    """
    from patchq.conversation import discover as asking

    if not target.hosts:
        raise UsageError(
            "--discover needs hosts to ask",
            why="none is named",
            mend="patchq hosts --discover all",
        )
    queues = places.queues(target.queue)
    wanted = tuple(dict.fromkeys(queue.distribution for queue in queues))
    if not wanted:
        raise UsageError(
            "--discover looks for what a queue patches",
            why="no queue is in sight",
            mend="patchq queues",
        )
    done = outcomes(target, lambda aim: asking.discover(aim, wanted), record=True)
    code = ExitCode.INTERRUPTED if done.interrupted else exit_code(done.outcomes)
    if len(done.outcomes) == 1 and done.outcomes[0].report is not None:
        code = done.outcomes[0].report.exit_code
    if target.as_json:
        click.echo(json.dumps(many.document(done, "hosts", code), indent=1))
        return code
    click.echo(plain("\n".join(_tables(done.outcomes))), nl=any(map(_found, done.outcomes)))
    for note in _notes(done.outcomes):
        click.echo(plain(note), err=True)
    many.tell(done)
    return code


def _found(one: Outcome) -> list[dict[str, Any]]:
    found: Any = one.report.document["found"] if one.report is not None else ()
    return list(found)


def _notes(outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    """Yield what hosts have to say beside what they have, equal texts once."""
    from patchq.inventory.hostset import collapse

    alike: dict[str, list[str]] = {}
    for one in outcomes:
        for note in one.report.notes if one.report is not None else ():
            alike.setdefault(note, []).append(one.host)
    yield from (f"{collapse(hosts)}: {note}" for note, hosts in alike.items())


def _tables(outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    """Yield the lines of a hosts.toml; hosts of which the same is to be said have one table."""
    from patchq.inventory.hostset import collapse

    alike: dict[tuple[str, ...], list[str]] = {}
    for one in outcomes:
        if _found(one):
            name, lines = _named(one.host)
            alike.setdefault((*lines, *_environments(_found(one))), []).append(name)
    for said, names in alike.items():
        for name in _COMMAS.split(collapse(names)):
            yield f"[hosts.{name if _BARE.fullmatch(name) else _text(name)}]"
            yield from said
            yield ""


def _named(spec: str) -> tuple[str, list[str]]:
    """Return a name for a host, and the lines that say how it is reached."""
    from patchq.inventory.hostset import COMMAND
    from patchq.transport import hosts

    if spec.startswith(COMMAND):
        return "NAME", [f"command = {_text(spec.removeprefix(COMMAND))}  # give it a name"]
    host = hosts.parse(spec)
    lines = [f"user = {_text(host.user)}"] if host.user else []
    lines += [f"port = {host.port}"] if host.port else []
    if ":" in host.name:
        return "NAME", [f"address = {_text(host.name)}  # give it a name", *lines]
    return host.name, lines


def _environments(found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each interpreter; the one that is meant beyond doubt has no `#`."""
    pythons: dict[str, list[dict[str, Any]]] = {}
    for one in found:
        pythons.setdefault(one["python"], []).append(one)
    used = [path for path, some in pythons.items() if any(one["processes"] for one in some)]
    sure = next(iter(pythons if len(pythons) == 1 else used if len(used) == 1 else ()), None)
    for path, some in pythons.items():
        have = ", ".join(f"{one['distribution']} {one['version']}" for one in some)
        text = f"python = {_text(path)}  # {have}" + ", in use" * (path in used)
        yield text if path == sure else f"# {text}, in {some[0]['site']}"


def _text(value: str) -> str:
    """Return a text as TOML has it; bytes that are no text become question marks."""
    whole = value.encode(errors="replace").decode()
    return json.dumps(whole, ensure_ascii=False)
