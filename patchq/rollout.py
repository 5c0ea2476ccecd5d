"""In which order the hosts of a rollout move, and what stops it. Pure.

A *wave* is what moves at once: the next begins when all of the last are healthy. Hosts that
move together are one *unit*, and a unit is never in two waves. The canary is the first wave.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from patchq.errors import UsageError

_SHARE = re.compile(r"([0-9]{1,6})(%?)")
Unit = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """A number of hosts, or a part of all hosts of a run in percent."""

    number: int
    percent: bool = False

    def of(self, total: int) -> int:
        """Return how many hosts of `total` it is; a part is rounded down.

        Example:
            >>> Share(10, percent=True).of(29)
            2
        """
        return total * self.number // 100 if self.percent else self.number

    def __str__(self) -> str:
        return f"{self.number}{'%' * self.percent}"


def share(text: str, option: str, *, least: int = 0) -> Share:
    """Return what an option that takes ``N`` or ``N%`` says.

    Raises:
        UsageError: it says neither, less than `least`, or more than all.
    """
    found = _SHARE.fullmatch(text)
    number = int(found[1]) if found else -1
    if found and number >= least and not (found[2] and number > 100):
        return Share(number, bool(found[2]))
    raise UsageError(
        f"{option} {text} is no number of hosts",
        why=f"it must be a number from {least}, or a part of all hosts: {least}% to 100%",
        mend=f"patchq VERB {option} 4, or: {option} 25%",
    )


@dataclass(frozen=True, slots=True)
class Order:
    """How a run is to go over its hosts.

    `canary`: so many hosts alone first; `serial`: hosts at a time after that, None for all
    the others; `fail_limit`: how many may fail until no further wave begins, though a canary
    that fails always ends the run. Each set of `together` moves together.
    """

    canary: int = 0
    serial: Share | None = None
    fail_limit: Share = Share(0)
    together: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Wave:
    """What moves at once: whole units."""

    units: tuple[Unit, ...]
    canary: bool = False

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts of the wave."""
        return tuple(host for unit in self.units for host in unit)


def units(hosts: Sequence[str], together: Iterable[Collection[str]]) -> tuple[Unit, ...]:
    """Return the hosts in units: sets that share a host are one, all others stand alone.

    A unit stands where its first host does.

    Example:
        >>> units(["a", "b", "c", "d"], [{"d", "b"}])
        (('a',), ('b', 'd'), ('c',))
    """
    lead = {host: host for host in hosts}
    members = {host: [host] for host in hosts}
    place = {host: number for number, host in enumerate(hosts)}
    for some in together:
        leads = sorted({lead[host] for host in some if host in lead}, key=place.__getitem__)
        for other in leads[1:]:
            moved = members.pop(other)
            members[leads[0]] += moved
            lead.update(dict.fromkeys(moved, leads[0]))
    return tuple(tuple(sorted(some, key=place.__getitem__)) for some in members.values())


def waves(hosts: Sequence[str], order: Order) -> tuple[Wave, ...]:
    """Return the waves: each host once, units whole, the canary first, in the hosts' order.

    A wave takes units as long as they fit; one that is larger than a wave has its own. The
    canary takes units until it has its number. A part of all hosts is at least one.
    """
    size = len(hosts) if order.serial is None else max(1, order.serial.of(len(hosts)))
    out: list[Wave] = []
    now: list[Unit] = []
    number, canary = 0, order.canary > 0
    for unit in units(hosts, order.together):
        full = number >= order.canary if canary else number + len(unit) > size
        if now and full:
            out.append(Wave(tuple(now), canary))
            now, number, canary = [], 0, False
        now.append(unit)
        number += len(unit)
    return (*out, Wave(tuple(now), canary)) if now else ()


def stops(order: Order, wave: Wave, *, failed: int, before: int, total: int) -> bool:
    """Return whether no further wave begins: `failed` in this one, `before` in the earlier ones.

    Example:
        >>> ten = Order(canary=1, fail_limit=Share(10, percent=True))
        >>> [stops(ten, Wave((), one), failed=1, before=0, total=20) for one in (True, False)]
        [True, False]
    """
    if wave.canary and failed:
        return True
    return failed + before > order.fail_limit.of(total)


def fallen(bad: Collection[str], together: Iterable[Unit]) -> tuple[str, ...]:
    """Return the hosts that are not to stay as they are: the bad ones, and who moves with one.

    Example:
        >>> fallen({"b"}, [("a", "b"), ("c",)])
        ('a', 'b')
    """
    return tuple(host for unit in together if any(one in bad for one in unit) for host in unit)
