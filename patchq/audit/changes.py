"""What changed between two audits: words, receipts, drift, processes, and which hosts.

Pure. A queue on a host is compared where both audits have it; the processes of a
distribution there (`serving`), where both looked at them. A host that only one of the audits
has is named, and nothing is said of it: it may be new, or was not asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from patchq.audit import serving
from patchq.audit.document import Audit, Receipt, Row
from patchq.audit.finding import Word
from patchq.audit.serving import Served, Serving

# Where a row's paths are files that somebody edited.
_DRIFT = (Word.DRIFTED.value, Word.UNMANAGED.value)


@dataclass(frozen=True, slots=True)
class Change:
    """How one queue on one host differs from what it was.

    Pairs are (then, now); a word is None where that audit has no row of the queue. `came`
    and `went` are files that are edited now, or were; `on` and `off` are patches. `receipt`
    is a new last one; `forgotten`: there was one, and there is none. `broken` is what is
    said of the ledger and of RECORD, pairs again. `running` is of the distribution: the same
    for all of its queues on the host.
    """

    host: str
    queue: str | None
    distribution: str | None
    word: tuple[str | None, str | None] | None = None
    version: tuple[str | None, str | None] | None = None
    behind: tuple[int | None, int | None] | None = None
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    receipt: Receipt | None = None
    forgotten: bool = False
    broken: tuple[tuple[str | None, str | None], ...] = ()
    running: Served | None = None

    @property
    def is_change(self) -> bool:
        """False where all is as it was."""
        nothing = Change(self.host, self.queue, self.distribution)
        return self != nothing

    def to_json(self) -> dict[str, object]:
        """Return it as ``--json`` has it."""
        return {
            "host": self.host,
            "queue": self.queue,
            "distribution": self.distribution,
            "word": self.word,
            "version": self.version,
            "behind": self.behind,
            "drift": {"came": self.came, "went": self.went},
            "patches": {"on": self.on, "off": self.off},
            "receipt": self.receipt.to_json() if self.receipt else None,
            "receipt_gone": self.forgotten,
            "broken": self.broken,
            "running": self.running.to_json() if self.running else None,
        }


@dataclass(frozen=True, slots=True)
class Changes:
    """All that changed since `time`; hosts in the order of the later audit."""

    changes: tuple[Change, ...]
    compared: tuple[str, ...]
    appeared: tuple[str, ...]
    vanished: tuple[str, ...]
    time: str | None = None

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts on which something changed."""
        return frozenset(one.host for one in self.changes)

    def to_json(self) -> dict[str, object]:
        """Return it as ``--json`` has it."""
        return {
            "time": self.time,
            "compared": self.compared,
            "appeared": self.appeared,
            "vanished": self.vanished,
            "changes": [one.to_json() for one in self.changes],
        }


def compare(then: Audit, now: Audit) -> Changes:
    """Return what changed from one audit to another."""
    before, after = _by_host(then.rows), _by_host(now.rows)
    compared = tuple(host for host in after if host in before)
    found = (one for host in compared for one in _of_host(host, before[host], after[host]))
    return Changes(
        tuple(one for one in found if one.is_change),
        compared,
        tuple(host for host in after if host not in before),
        tuple(host for host in before if host not in after),
        then.time,
    )


def _by_host(rows: Iterable[Row]) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {}
    for row in rows:
        out.setdefault(row.host, []).append(row)
    return out


def _of_host(host: str, before: list[Row], after: list[Row]) -> Iterable[Change]:
    """Yield a change for each queue of a host; it may be one in which nothing changed."""
    old = {row.key: row for row in before}
    new = {row.key: row for row in after}
    # The word of a host that could not be asked is that of each of its queues.
    silent_then, silent_now = old.pop((None, None), None), new.pop((None, None), None)
    if silent_then and silent_now:
        yield Change(host, None, None, word=_pair(silent_then.word, silent_now.word))
    live_then, live_now = _live(before), _live(after)
    for key in dict.fromkeys((*new, *old)):
        then, now = old.get(key) or silent_then, new.get(key) or silent_now
        distribution, queue = key
        if then and now and then.queue is not None and now.queue is not None:
            one = _of_queue(then, now)
        else:
            pair = _pair(then.word if then else None, now.word if now else None)
            one = Change(host, queue, distribution, word=pair)
        live = serving.compare(live_then.get(distribution), live_now.get(distribution))
        yield replace(one, running=live)


def _live(rows: Iterable[Row]) -> dict[str | None, Serving]:
    """Return the processes of each distribution on a host, where they were looked at."""
    return {row.distribution: row.running for row in rows if row.running is not None}


def _of_queue(then: Row, now: Row) -> Change:
    """Return how two rows of one queue on one host differ."""
    had, has = _drift(then), _drift(now)
    new = now.receipt if now.receipt and _id(now) != _id(then) else None
    far = (then.behind, then.commit) != (now.behind, now.commit)
    both = then.word == now.word == Word.BEHIND.value
    ledger = _pair(then.ledger_broken, now.ledger_broken)
    record = _pair(then.record_broken, now.record_broken)
    return Change(
        now.host,
        now.queue,
        now.distribution,
        word=_pair(then.word, now.word),
        version=_pair(then.version, now.version),
        behind=(then.behind, now.behind) if far and both else None,
        came=_beyond(has, had),
        went=_beyond(had, has),
        on=_beyond(now.patches, then.patches),
        off=_beyond(then.patches, now.patches),
        receipt=new,
        forgotten=then.receipt is not None and now.receipt is None,
        broken=tuple(pair for pair in (ledger, record) if pair),
    )


def _pair(then: str | None, now: str | None) -> tuple[str | None, str | None] | None:
    return None if then == now else (then, now)


def _id(row: Row) -> str | None:
    return row.receipt.id if row.receipt else None


def _drift(row: Row) -> tuple[str, ...]:
    return row.paths if row.word in _DRIFT else ()


def _beyond(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    known = frozenset(others)
    return tuple(one for one in some if one not in known)
