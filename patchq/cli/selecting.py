"""Which hosts the command line means, and what the inventories in sight say of each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cli import places
from patchq.errors import UsageError
from patchq.inventory.values import Inventories

if TYPE_CHECKING:  # of a run that names hosts only
    from patchq.conversation.view import Aim
    from patchq.inventory.values import Known
    from patchq.transport.become import Become
    from patchq.transport.hosts import Way


@dataclass(frozen=True, slots=True)
class Selection:
    """The hosts of a run; `known` are those that an inventory has, by the names of the run."""

    hosts: tuple[str, ...] = ()
    known: Mapping[str, Known] = field(default_factory=dict)
    inventories: Inventories = field(default_factory=Inventories)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be told of the inventories."""
        return tuple(note for one in self.inventories.each for note in one.notes)

    def way(self, spec: str, python: str | None, become: Become | None) -> Way:
        """Return how a host of an inventory is reached; `python` is the command line's.

        Raises:
            UsageError: the inventory says what cannot be, or contradicts itself.
        """
        from patchq.transport import hosts

        known = self.known[spec]
        if known.problem is not None:
            raise known.problem
        written, settings = hosts.parse(spec), known.settings
        environment = settings.environment
        python = python or (environment.python if environment else None)
        argv = known.argv(written.user, written.port)
        if argv is not None:
            return hosts.Way(hosts.Host(spec, called=spec), argv, python, become)
        user, address = written.user or settings.user, known.address or known.name
        text = f"[{address}]" if ":" in address else address
        try:
            found = hosts.parse(f"{user}@{text}" if user else text)
        except UsageError as error:
            where = known.origins.get("address") or known.origins.get("user") or known.origin
            raise UsageError(
                f"{where}: {error.what}", why=error.why, mend=f"correct it in {where.file}"
            ) from error
        port = written.port or settings.port
        host = replace(found, port=port, python=python, called=spec)
        return hosts.Way(host, None, python, become)

    def aim(self, aim: Aim, spec: str) -> Aim:
        """Return what a verb is about on one host; what the command line says counts first."""
        known = self.known.get(spec)
        if known is None:
            return aim
        aim = replace(aim, wanted=known.settings.wanted or ())
        environment = known.settings.environment
        if environment is None or aim.explicit:
            return aim
        return replace(aim, target=environment.target, explicit=True)


def select(named: Sequence[str], files: Sequence[str] = ()) -> Selection:
    """Return the hosts that the user's ``-H`` options mean; `files` are ``--inventory``.

    Raises:
        UsageError: an inventory cannot be read, or a name fits nothing.
    """
    if not named:
        return Selection()
    from patchq.inventory import hostset

    if all(spec.startswith(hostset.COMMAND) for spec in named):  # nothing more is to be said
        return Selection(hostset.expand(named, ()))
    found = inventories(files)
    names: tuple[str, ...] = ()
    if any(set(spec) & set("*?") for spec in named):
        names = config_names()
    groups = None
    if found.each:
        groups = {one.name: one.hosts for one in found.groups.values()}
        groups[hostset.ALL] = found.hosts
    hosts = hostset.expand(named, tuple(dict.fromkeys((*found.hosts, *names))), groups)
    each = ((host, found.find(hostset.forms(host)[-1])) for host in hosts)
    known = {host: one for host, one in each if one is not None}
    return Selection(hosts, known, found)


def everything(files: Sequence[str] = ()) -> Selection:
    """Return all hosts of the inventories in sight, and of ssh_config."""
    found = inventories(files)
    hosts = tuple(dict.fromkeys((*found.hosts, *config_names())))
    known = {name: one for name in hosts if (one := found.find(name)) is not None}
    return Selection(hosts, known, found)


def inventories(files: Sequence[str] = ()) -> Inventories:
    """Return the inventories in sight, or those of ``--inventory``."""
    from patchq.inventory import files as reading

    return reading.load(Path.cwd(), os.environ, places.config(), files)


def config_names() -> tuple[str, ...]:
    """Return the hosts that ssh_config names."""
    from patchq.transport.route import Surroundings

    return Surroundings.read(os.environ).config.names


def check_wanted(selection: Selection, queues: Sequence[str]) -> None:
    """Refuse a wanted queue that is not in sight: nobody could say whether it is there."""
    from patchq.inventory.hostset import nearest

    for known in selection.known.values():
        for name in known.settings.wanted or ():
            if name not in queues:
                near = nearest(name, queues)
                raise UsageError(
                    f"{known.name} wants a queue {name}, which is not in sight",
                    why=f"{known.origins['wanted']} says so; in sight: {', '.join(queues)}"
                    + (f"; {near} comes nearest" if near else ""),
                    mend="patchq queues",
                )
