"""What inventories say, as values: tables, groups, hosts, and where each of it stands.

Of two that speak of one host the nearer counts: its own table, then its groups (an inner
one before the one around it), then what Ansible says, then ``[all]``. Two groups of which
none is in the other and that say different things of a host are an error of that host.
`wanted` adds up, and a host's own replaces it.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from patchq.errors import UsageError

_PLACE = re.compile(r"\{([a-z_]+)}")
_PLACES = ("{name}", "{address}", "{user}", "{port}")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something is said: a file, the line at which a table of it begins, the table."""

    file: str
    line: int | None = None
    table: str = ""

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        return f"{self.file}{line}" + (f" [{self.table}]" if self.table else "")


@dataclass(frozen=True, slots=True)
class Environment:
    """Which environment of a host is meant: its interpreter, or a folder of packages."""

    python: str | None = None
    target: str | None = None

    def __str__(self) -> str:
        told = {"python": self.python, "target": self.target}
        return ", ".join(f"{key} {value}" for key, value in told.items() if value)


@dataclass(frozen=True, slots=True)
class Settings:
    """What is said of a host; None is what nobody says.

    `command` gives stdin and stdout of a shell there, with ``{name}`` and its like in it;
    `become` is True for root, False for nobody, or a user's name.
    """

    address: str | None = None
    user: str | None = None
    port: int | None = None
    command: str | None = None
    environment: Environment | None = None
    become: bool | str | None = None
    wanted: tuple[str, ...] | None = None


KEYS = tuple(one.name for one in fields(Settings))


@dataclass(frozen=True, slots=True)
class Table:
    """One place that says something; `problems` are keys that cannot be used, and why."""

    origin: Origin
    settings: Settings = field(default_factory=Settings)
    problems: Mapping[str, str] = field(default_factory=dict)

    def says(self, key: str) -> bool:
        """Return whether this table speaks of a key."""
        return getattr(self.settings, key) is not None or key in self.problems


@dataclass(frozen=True, slots=True)
class Group:
    """A set of hosts, the groups in it at any depth, and what is said of all of them.

    `together`: its hosts move together, as the ranks of one replica do.
    """

    name: str
    origin: Origin
    hosts: tuple[str, ...]
    inside: frozenset[str] = frozenset()
    table: Table | None = None
    together: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What an inventory says of one host, and where each key of it stands.

    `problem` is why it cannot be reached so, None where it can.
    """

    name: str
    origin: Origin
    groups: tuple[str, ...]
    settings: Settings
    origins: Mapping[str, Origin]
    problem: UsageError | None = None

    @property
    def address(self) -> str | None:
        """The host's address with its name in it where it says so."""
        address = self.settings.address
        return None if address is None else address.replace("{name}", self.name)

    def argv(self, user: str | None = None, port: int | None = None) -> tuple[str, ...] | None:
        """Return the words of the transport command, None where it is SSH.

        A word stays one word, whatever is put into it. `user` and `port` come before the
        inventory's.

        Raises:
            UsageError: it has a place that does not exist, or that nothing is said of.
        """
        if self.settings.command is None:
            return None
        values = {
            "name": self.name,
            "address": self.address or self.name,
            "user": user or self.settings.user,
            "port": port or self.settings.port,
        }

        def put(found: re.Match[str]) -> str:
            value = values.get(found[1])
            if value is not None and str(value).startswith("-"):
                raise UsageError(
                    f"{self.name}: {value!r} cannot be put into a command",
                    why=f"a program would take it for an option; it is said to be {found[0]}",
                    mend=f"correct it in {self.origins.get(found[1], self.origin).file}",
                )
            if value is not None:
                return str(value)
            known = found[0] in _PLACES
            raise UsageError(
                f"the command for {self.name} has {found[0]}, and that is not known",
                why=f"nobody says the {found[1]} of {self.name}"
                if known
                else f"the places are {', '.join(_PLACES)}",
                mend=f"correct 'command' in {self.origins.get('command', self.origin)}",
            )

        return tuple(_PLACE.sub(put, word) for word in shlex.split(self.settings.command))


@dataclass(frozen=True)
class Inventory:
    """One inventory: its hosts in their order, its groups, and all tables.

    `own` are tables of single hosts, the nearest first; `listed` what Ansible says of each.
    """

    file: str
    hosts: Mapping[str, Origin]
    groups: Mapping[str, Group] = field(default_factory=dict)
    own: Mapping[str, tuple[Table, ...]] = field(default_factory=dict)
    listed: Mapping[str, Table] = field(default_factory=dict)
    defaults: Table | None = None
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def _around(self) -> dict[str, list[Group]]:
        """The groups that each host is in."""
        found: dict[str, list[Group]] = {}
        for group in self.groups.values():
            for name in group.hosts:
                found.setdefault(name, []).append(group)
        return found

    def find(self, name: str) -> Known | None:
        """Return what is said of a host, None where it is not in here."""
        if name not in self.hosts:
            return None
        groups = self._around.get(name, [])
        chosen: dict[str, object] = {}
        origins: dict[str, Origin] = {}
        problem = None
        for key in KEYS:
            try:
                found = self._chosen(name, key, groups)
            except UsageError as error:
                problem = problem or error
                continue
            if found is not None:
                origins[key] = found.origin
                chosen[key] = getattr(found.settings, key)
        if "wanted" in chosen and not _says(self.own.get(name, ()), "wanted"):
            chosen["wanted"] = self._wanted(groups)
        return Known(
            name,
            self.hosts[name],
            tuple(one.name for one in groups),
            replace(Settings(), **chosen),  # type: ignore[arg-type]  # keys are Settings' own
            origins,
            problem,
        )

    def _chosen(self, name: str, key: str, groups: Sequence[Group]) -> Table | None:
        """Return the table that decides a key.

        Raises:
            UsageError: it cannot be used, or two contradict each other.
        """
        own = _says(self.own.get(name, ()), key)
        speaking = [one for one in groups if one.table and one.table.says(key)]
        around = {outer.name for outer in speaking for one in speaking if one.name in outer.inside}
        inner = [one.table for one in speaking if one.name not in around and one.table]
        last = [one for one in (self.listed.get(name), self.defaults) if one and one.says(key)]
        level = own[:1] or inner or last[:1]
        if not level:
            return None
        found = {getattr(one.settings, key): one for one in level}
        if len(found) > 1 and key != "wanted":
            said = "; ".join(f"{one.origin} says {value!s}" for value, one in found.items())
            raise UsageError(
                f"{name}: two groups say different things of {key!r}",
                why=f"{said}; and none of them is in the other",
                mend=f"say it in [hosts.{name}] of {level[0].origin.file}",
            )
        if key in level[0].problems:
            raise UsageError(
                f"{name}: {level[0].problems[key]}",
                why=f"{level[0].origin} says so",
                mend=f"say {key!r} of it in [hosts.{name}] of a hosts.toml",
            )
        return level[0]

    def _wanted(self, groups: Iterable[Group]) -> tuple[str, ...]:
        tables = [one.table for one in groups] + [self.defaults]
        names = (table.settings.wanted or () for table in tables if table)
        return tuple(dict.fromkeys(name for some in names for name in some))


@dataclass(frozen=True, slots=True)
class Inventories:
    """All inventories in sight, the nearest first; of two with one host the nearer counts."""

    each: tuple[Inventory, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts, in their order."""
        return tuple(dict.fromkeys(name for one in self.each for name in one.hosts))

    @property
    def groups(self) -> dict[str, Group]:
        """All groups by name."""
        found: dict[str, Group] = {}
        for one in self.each:
            for name, group in one.groups.items():
                found.setdefault(name, group)
        return found

    def find(self, name: str) -> Known | None:
        """Return what the nearest inventory that has a host says of it."""
        return next((known for one in self.each if (known := one.find(name))), None)


def _says(tables: Iterable[Table], key: str) -> list[Table]:
    return [one for one in tables if one.says(key)]
