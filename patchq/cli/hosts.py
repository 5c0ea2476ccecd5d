"""`hosts`: which hosts a selection means, what is said of each, and where."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patchq.cli import discovering, many, selecting
from patchq.cli.plain import line, plain
from patchq.cli.run import Target, target_of, target_options
from patchq.errors import ExitCode, PatchqError
from patchq.report import SCHEMA

if TYPE_CHECKING:
    from patchq.inventory.values import Known, Origin
    from patchq.transport.hosts import Way
    from patchq.transport.route import Surroundings

_HEADINGS = ("HOST", "REACHED BY", "ENVIRONMENT", "WANTED", "FROM")
_NONE = "-"
# Said of the host by the command line or a file: as hosts.toml has them.
_SAID = ("address", "user", "port", "command", "environment", "become", "wanted")


@click.command(short_help="Show which hosts a selection means, and from where")
@click.argument("spec", nargs=-1)
@click.option("-v", "verbose", is_flag=True, help="Each setting, and the table that says it.")
@click.option("--discover", is_flag=True, help="Find interpreters that have the distribution.")
@target_options
def hosts(spec: tuple[str, ...], verbose: bool, discover: bool, **values: Any) -> int:
    """Show which hosts SPEC means, how each is reached, and which file says so.

    SPEC is as for -H: names, ranges, patterns, @groups, all, and !exceptions. Without one
    all hosts of ssh_config and of the inventories in sight are shown: the nearest hosts.toml
    upwards, those of PATCHQ_HOSTS, the one in the user's folder (~/.config/patchq). No host
    is asked anything. Exit code 2 where there is no host, 1 where one cannot be reached so.

    --discover asks the hosts: it looks through /proc and the usual places for interpreters
    that have the distribution of --queue, or of any queue in sight, runs nothing of what
    it finds, and prints lines for a hosts.toml. Exit code 2 where the one host has none.

    \b
    Examples:
      patchq hosts '@blackwell,!gpu07'
      patchq hosts --discover -H 'gpu[01-64]' --queue kimi-k2.5-eagle3
    """
    named = (*values["host"], *spec)
    target = target_of({**values, "host": named})
    if discover:
        return discovering.discover(target)
    if not named:
        target = replace(target, meant=selecting.everything(target.reach.inventory))
    rows = list(_rows(target))
    trouble = any(row["problem"] for row in rows)
    code = ExitCode.FAILED if trouble else ExitCode.DONE if rows else ExitCode.NOTHING_TO_DO
    if target.as_json:
        click.echo(json.dumps(_document(target, rows, code), indent=1))
        return code
    if verbose:
        click.echo(plain("\n".join(text for row in rows for text in _block(row))))
    elif rows:
        cells = [[line(cell) for cell in _cells(row)] for row in rows]
        click.echo("\n".join(one.rstrip() for one in many.table(_HEADINGS, cells).split("\n")))
    _tell(target, rows)
    return code


def _rows(target: Target) -> Iterator[dict[str, Any]]:
    """Yield what is known of each host, as ``--json`` has it."""
    from patchq.transport.route import Surroundings

    around = Surroundings.read(os.environ)
    for spec in target.meant.hosts:
        known = target.meant.known.get(spec)
        source, origin = ("inventory", known.origin) if known else _source(spec, around)
        row: dict[str, Any] = {
            "host": spec,
            "groups": list(known.groups) if known else [],
            "source": source,
            "from": _where(origin) if origin else None,
            **dict.fromkeys(("ssh", "through", "command", "python", "target", "become")),
            "wanted": list(known.settings.wanted or ()) if known else [],
            "said": {key: _where(known.origins[key]) for key in _SAID if key in known.origins}
            if known
            else {},
            "problem": None,
        }
        try:
            row |= _reached(_way(target, spec), around)
            row["target"] = _packages(target, known)
        except PatchqError as error:
            row["problem"] = {"what": error.what, "why": error.why, "mend": error.mend}
        yield row


def _way(target: Target, spec: str) -> Way:
    """Return how a host is reached, as a run would."""
    from patchq.fleet import Options

    known = target.meant.known.get(spec)
    become = target.reach.become_of(known.settings.become if known else None)
    if known is None:
        return Options(target.python, become=become).way(spec)
    return target.meant.way(spec, target.python, become)


def _reached(way: Way, around: Surroundings) -> dict[str, Any]:
    from patchq.transport import route

    python = way.python
    become = way.become.name if way.become else None
    if way.argv is not None:
        return {"command": list(way.argv), "python": python, "become": become}
    hops = route.resolve(way.host, around)
    through = [hop.alias for hop in hops[:-1]]
    return {"ssh": hops[-1].ssh, "through": through, "python": python, "become": become}


def _packages(target: Target, known: Known | None) -> str | None:
    """Return the folder of packages that a verb would mean, None for the interpreter's own."""
    said = known.settings.environment if known else None
    if target.target or target.python or said is None:
        return target.target
    return said.target


def _source(spec: str, around: Surroundings) -> tuple[str, Origin | None]:
    """Return who names a host that no inventory has, and the line that does."""
    from patchq.inventory.hostset import forms
    from patchq.inventory.values import Origin

    name = forms(spec)[-1]
    if name not in around.config.places:
        return "command line", None
    file, number = around.config.places[name]
    return "ssh_config", Origin(str(file), number)


def _where(origin: Origin) -> dict[str, Any]:
    return asdict(origin)


def _document(target: Target, rows: list[dict[str, Any]], code: ExitCode) -> dict[str, Any]:
    found = target.meant.inventories
    return {
        "schema": SCHEMA,
        "verb": "hosts",
        "inventories": [one.file for one in found.each],
        "groups": {
            name: {
                "hosts": list(group.hosts),
                "together": group.together,
                "from": _where(group.origin),
            }
            for name, group in found.groups.items()
        },
        "hosts": rows,
        "notes": list(target.meant.notes),
        "exit_code": int(code),
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        many.name(row["host"]),
        _by(row),
        row["target"] or row["python"] or _NONE,
        ", ".join(row["wanted"]) or _NONE,
        _told(row["from"]) if row["from"] else row["source"],
    )


def _by(row: dict[str, Any]) -> str:
    """Return in words how a host is reached."""
    if row["problem"]:
        return "not as it is written"
    text: str = row["ssh"] or shlex.join(row["command"])
    text += f" through {', '.join(row['through'])}" if row["through"] else ""
    user = row["become"]
    return text + (f", sudo -u {user}" if user not in (None, "root") else ", sudo" * bool(user))


def _told(where: dict[str, Any]) -> str:
    """Return where something stands, its file as short as it can be from here."""
    from patchq.inventory.values import Origin

    origin = Origin(**where)
    path = Path(origin.file)
    if path.is_relative_to(Path.cwd()):
        origin = replace(origin, file=str(path.relative_to(Path.cwd())))
    return str(origin)


def _block(row: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of ``-v`` for one host."""
    yield row["host"]
    told = {
        "reached by": _by(row),
        "interpreter": row["python"],
        "packages": row["target"],
        "wanted": ", ".join(row["wanted"]),
        "groups": ", ".join(row["groups"]),
        "from": _told(row["from"]) if row["from"] else row["source"],
        **{f"{key} by": _told(where) for key, where in row["said"].items()},
    }
    width = max(map(len, told))
    yield from (f"  {key.ljust(width)}  {value}" for key, value in told.items() if value)


def _tell(target: Target, rows: list[dict[str, Any]]) -> None:
    """Say on stderr what is wrong, which groups there are, and how many hosts."""
    for row in rows:
        if row["problem"]:
            problem = row["problem"]
            text = f"{row['host']}: {problem['what']}\n  why: {problem['why']}"
            click.echo(plain(f"{text}\n  mend: {problem['mend']}"), err=True)
    for note in target.meant.notes:
        click.echo(plain(note), err=True)
    found = target.meant.inventories
    if not target.hosts and found.groups:
        groups = (
            f"@{name} ({len(group.hosts)}{', together' * group.together})"
            for name, group in found.groups.items()
        )
        click.echo(plain(f"groups: {', '.join(groups)}"), err=True)
    if not found.each:
        click.echo("no inventory is in sight", err=True)
    click.echo(f"{len(rows)} host{'' if len(rows) == 1 else 's'}", err=True)


COMMANDS = {"hosts": hosts}
