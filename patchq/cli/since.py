"""`audit --since FILE`: what changed since an earlier `audit --json`, told in lines."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from patchq.audit import document
from patchq.audit.changes import Change, Changes
from patchq.audit.document import Audit, Receipt
from patchq.audit.serving import Served
from patchq.cli import many
from patchq.cli.plain import line
from patchq.conversation.restart import RESTART
from patchq.errors import UsageError
from patchq.inventory.hostset import collapse

# Files, patches and processes named in a line.
_MOST = 3


def read(file: str) -> Audit:
    """Return the audit that a file has.

    Raises:
        UsageError: it cannot be read, or is no audit of this schema.
    """
    mend = f"patchq audit --json > {shlex.quote(file)}   # then, later: --since"
    try:
        with open(file, "rb") as opened:
            return document.read(opened.read())
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"--since {file} cannot be read", why=why, mend=mend) from error
    except document.NotAnAudit as error:
        why = str(error)
        raise UsageError(f"--since {file} is no earlier audit", why=why, mend=mend) from error


def lines(changes: Changes, file: str) -> list[str]:
    """Return what changed: a line for equal changes of many hosts, then what is not compared."""
    compared = _hosts(len(changes.compared))
    head = f"since {changes.time or 'an earlier audit'} ({file}): {compared} compared"
    told: dict[tuple[str, str], list[str]] = {}
    receipts: dict[tuple[str, str], dict[str, Receipt]] = {}
    processes: dict[tuple[str, str], dict[str, None]] = {}
    for one in changes.changes:
        for text in _texts(one):
            told.setdefault((one.queue or "-", text), []).append(one.host)
        for text in _running(one.running):  # one for all queues of a distribution
            processes.setdefault((one.distribution or "-", text), {})[one.host] = None
        if one.receipt is not None:  # as well
            key = one.distribution or "-", _by(one.receipt)
            receipts.setdefault(key, {})[one.host] = one.receipt
    rows = [(*what, _named(hosts)) for what, hosts in told.items()]
    for (distribution, text), found in receipts.items():
        times = sorted({one.time for one in found.values()})
        when = times[0] if len(times) == 1 else f"{times[0]} to {times[-1]}"
        rows.append((distribution, f"receipt: {text}, {when}", _named(found)))
    rows += [(*what, _named(hosts)) for what, hosts in processes.items()]
    cells = [[line(cell) for cell in row] for row in rows]
    table = many.table(("OF", "CHANGED", "HOSTS"), cells).split("\n") if rows else []
    if not rows and changes.compared:
        table = ["nothing changed"]
    return [line(head), *table, *map(line, _apart(changes, file))]


def _texts(one: Change) -> Iterator[str]:
    """Yield what changed in a queue on a host, but for its receipt."""
    if one.word is not None:
        yield _pair(one.word)
    if one.version is not None:
        yield f"version {_pair(one.version)}"
    if one.behind is not None:
        yield f"commits behind {_pair(one.behind)}"
    for word, names in (
        ("drift came", one.came),
        ("drift went", one.went),
        ("on", one.on),
        ("off", one.off),
    ):
        if names:
            yield f"{word}: {_few(names)}"
    if one.forgotten:
        yield "the ledger has no receipt any more"
    for then, now in one.broken:
        yield f"broken: {now}" if now else f"whole again; it was: {then}"


def _running(one: Served | None) -> Iterator[str]:
    """Yield what changed of running processes; equal names are counted."""
    if one is None:
        return
    doubt = ""
    if one.hidden:
        doubt = " (or not seen: /proc does not show other users' processes now)"
    elif one.unread:
        count = f"{one.unread} process{'es' if one.unread != 1 else ''}"
        doubt = f" (or not seen: {count} more cannot be looked into)"
    for word, names in (
        (f"{RESTART} no more{doubt}", one.went.restart),
        (RESTART, one.came.restart),
        (f"mixed code no more{doubt}", one.went.mixed),
        ("mixed code", one.came.mixed),
    ):
        counted = [
            f"{number} x {name}" if number > 1 else name for name, number in Counter(names).items()
        ]
        if counted:
            yield f"{word}: {_few(counted)}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"{', '.join(names[:_MOST])}{more}"


def _apart(changes: Changes, file: str) -> Iterator[str]:
    """Yield which hosts were not compared, and why."""
    if changes.appeared:
        yield f"not compared: {_named(changes.appeared)}: not in {file}"
    if changes.vanished:
        yield f"not compared: {_named(changes.vanished)}: not asked now"


def _named(hosts: Iterable[str]) -> str:
    return collapse(hosts) or "here"


def _pair(pair: tuple[object, object]) -> str:
    then, now = ("-" if one is None else str(one) for one in pair)
    return f"{then} -> {now}"


def _by(receipt: Receipt) -> str:
    return f"{receipt.verb} by {receipt.who} from {receipt.whence}"


def _hosts(count: int) -> str:
    return f"{count} host{'' if count == 1 else 's'}"
