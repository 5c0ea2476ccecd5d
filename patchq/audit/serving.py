"""What two audits say of running processes: who needs a restart, which servers are mixed.

Pure. A process is known by its name, and never by its number: a worker that was started
again and is as old as the one before is no change, and a new number is none either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Serving:
    """The names of processes that need a restart, and of servers that are mixed.

    A name is there as often as there are processes of it; `unread` counts those that could
    not be looked into, or not in time. `hidden`: /proc does not show other users' at all.
    """

    restart: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    unread: int = 0
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """How it differs from what it was: what `came`, and what `went`.

    `unread` is how many processes more than before were not looked into, `hidden` whether
    others are not shown that were before: what went may be among them.
    """

    came: Serving = Serving()
    went: Serving = Serving()
    unread: int = 0
    hidden: bool = False

    def to_json(self) -> dict[str, object]:
        """Return it as ``--json`` has it."""
        return {
            "restart": {"came": self.came.restart, "went": self.went.restart},
            "mixed": {"came": self.came.mixed, "went": self.went.mixed},
            "unread": self.unread,
            "hidden": self.hidden,
        }


def read(found: Mapping[str, Any]) -> Serving:
    """Return what a row's ``running`` says (docs/formats.md, "Audit rows").

    Raises:
        ValueError: it has not the form of one.

    Example:
        >>> one = {"pid": 7, "name": "VLLM::Worker", "server": 7}
        >>> read({"processes": [one], "restart": [7], "mixed": []}).restart
        ('VLLM::Worker',)
    """
    try:
        names = {int(one["pid"]): one["name"] for one in found["processes"]}
        servers = {int(one["pid"]): int(one["server"]) for one in found["processes"]}
        restart = tuple(names[pid] for pid in found["restart"])
        mixed = tuple(names[servers[tree[0]]] for tree in found["mixed"])
        unread = int(found.get("unreadable", 0)) + int(found.get("unseen", 0))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise ValueError('has no list of processes for "running"') from None
    if not all(isinstance(name, str) for name in (*restart, *mixed)):
        raise ValueError('has a process without a name in "running"')
    return Serving(restart, mixed, unread, bool(found.get("hidden")))


def compare(then: Serving | None, now: Serving | None) -> Served | None:
    """Return what changed, None for nothing, or where one of them was not asked."""
    if then is None or now is None:
        return None
    came = Serving(_beyond(now.restart, then.restart), _beyond(now.mixed, then.mixed))
    went = Serving(_beyond(then.restart, now.restart), _beyond(then.mixed, now.mixed))
    if came == went == Serving():
        return None
    unread = max(0, now.unread - then.unread)
    return Served(came, went, unread, now.hidden and not then.hidden)


def _beyond(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that `some` have more often than `others`, in order."""
    return tuple(sorted((Counter(some) - Counter(others)).elements()))
