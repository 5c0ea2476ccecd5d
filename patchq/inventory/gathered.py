"""From what a hosts.toml and Ansible say to one inventory. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from patchq.errors import UsageError
from patchq.inventory import hostset, ranges
from patchq.inventory.ansible import Listed
from patchq.inventory.table import Document
from patchq.inventory.values import Group, Inventory, Origin, Table

# Hosts of one inventory, and of all its groups together; more than one machine should hold.
_MOST, _MEMBERS = 50_000, 200_000
# Groups in groups in groups.
_DEPTH = 50


def gather(document: Document, listed: Listed) -> Inventory:
    """Return the inventory that a hosts.toml and the Ansible inventories it names make.

    Raises:
        UsageError: a group that does not exist, that holds itself, or more hosts than can be.
    """
    hosts: dict[str, Origin] = {}
    own: dict[str, tuple[Table, ...]] = {}
    # A table of one host is nearer than a range that has it.
    for spec, table in sorted(document.hosts.items(), key=lambda one: "[" in one[0]):
        for name in ranges.expand(spec):
            own[name] = (*own.get(name, ()), table)
        _check_number(document.file, len(own), _MOST)
    for spec, table in document.hosts.items():
        hosts.update(dict.fromkeys(ranges.expand(spec), table.origin))
    for name, table in listed.hosts.items():
        hosts.setdefault(name, table.origin)
    groups = {one.name: one for one in _Groups(document, listed, tuple(hosts)).every()}
    for group in groups.values():
        for name in group.hosts:
            hosts.setdefault(name, group.origin)
    _check_number(document.file, len(hosts), _MOST)
    _check_twice(own)
    return Inventory(
        document.file, hosts, groups, own, listed.hosts, document.defaults, listed.notes
    )


class _Groups(Mapping[str, tuple[str, ...]]):
    """The hosts of each group, found out when first asked for, inner groups first."""

    def __init__(self, document: Document, listed: Listed, known: tuple[str, ...]) -> None:
        self._document, self._listed, self._known = document, listed, known
        self._done: dict[str, Group] = {}
        self._through: list[str] = []
        self._inside: list[set[str]] = []
        self._members = 0

    def every(self) -> Iterator[Group]:
        """Yield all groups."""
        for name in self:
            yield self._group(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._document.groups, *self._listed.groups)))

    def __len__(self) -> int:
        return len({*self._document.groups, *self._listed.groups})

    def __contains__(self, name: object) -> bool:
        return name in self._document.groups or name in self._listed.groups

    def __getitem__(self, name: str) -> tuple[str, ...]:
        group = self._group(name)
        if self._inside:
            self._inside[-1] |= {name, *group.inside}
        return group.hosts

    def _group(self, name: str) -> Group:
        if name not in self._done:
            self._done[name] = self._found(name)
            self._members += len(self._done[name].hosts)
            _check_number(self._document.file, self._members, _MEMBERS)
        return self._done[name]

    def _found(self, name: str) -> Group:
        """Return a group of hosts.toml, of Ansible, or of both."""
        listed = self._listed.groups.get(name, ())
        inside = self._listed.inside.get(name, frozenset())
        if name not in self._document.groups:
            file = next((self._listed.hosts[one].origin.file for one in listed), "Ansible")
            return Group(name, Origin(file, None, name), listed, inside)
        table, parts = self._document.groups[name]
        if parts is None and name not in self._listed.groups:
            near = hostset.nearest(name, self._listed.groups)
            raise UsageError(
                f"{table.origin}: the group has no 'hosts'",
                why="and no Ansible inventory has a group of that name"
                + (f"; {near!r} comes nearest" if near else ""),
                mend='write hosts = ["gpu[01-08]", "@another-group"] into it',
            )
        self._check_depth(name, table.origin)
        self._through.append(name)
        self._inside.append(set())
        try:
            members = hostset.members(parts or (), self._known, self)
        except UsageError as error:
            if str(error).startswith(self._document.file):  # of a group in this one
                raise
            raise UsageError(
                f"{table.origin}: {error.what}",
                why=error.why,
                mend=f"correct 'hosts' in {table.origin}",
            ) from error
        finally:
            self._through.pop()
            inner = self._inside.pop()
        hosts = tuple(dict.fromkeys((*listed, *members)))
        together = name in self._document.together
        return Group(name, table.origin, hosts, inside | inner, table, together)

    def _check_depth(self, name: str, origin: Origin) -> None:
        """Refuse a group that holds itself, or that lies too deep in others."""
        if name in self._through:
            circle = " -> ".join((*self._through[self._through.index(name) :], name))
            raise UsageError(
                f"{origin}: the group holds itself",
                why=circle,
                mend=f"take one of them out of 'hosts' in {origin.file}",
            )
        if len(self._through) > _DEPTH:
            raise UsageError(
                f"{origin}: groups are in groups more than {_DEPTH} deep",
                why=" -> ".join((*self._through[:5], "...")),
                mend=f"name hosts in 'hosts' of {origin.file}, not groups of groups",
            )


def _check_number(file: str, number: int, most: int) -> None:
    if number > most:
        raise UsageError(
            f"{file} has more hosts than are taken",
            why=f"there are {number}, each counted in each of its groups; the limit is {most}",
            mend="look for a range with a digit too many",
        )


def _check_twice(own: Mapping[str, tuple[Table, ...]]) -> None:
    """Refuse two ranges that speak of one host: neither is nearer."""
    for name, tables in own.items():
        several = [one for one in tables if "[" in one.origin.table]
        if len(several) > 1:
            raise UsageError(
                f"{name} is in two tables: {several[0].origin} and {several[1].origin}",
                why="each speaks of a range of hosts, and neither is nearer",
                mend=f"write [hosts.{name}], and take it out of a range",
            )
