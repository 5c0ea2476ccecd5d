"""`audit --html`: hosts down, queues across, one word a cell; a click on a host says why.

Where the queues have few patches in all, each patch is a column, too. What a host says is
cut to what can be read; how much of it there is is the host's to choose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patchq.audit.document import good
from patchq.audit.finding import Word, some
from patchq.cli.html.page import Cell, Look, Page, Part, Why, parts

UNREACHABLE, FAILED, RESTART, MIXED = "unreachable", "failed", "restart needed", "mixed code"
LOOKS = {
    UNREACHABLE: Look("⊘", "bad", 0, "nobody could ask the host"),
    FAILED: Look("!", "bad", 1, "the host answered that it could not say"),
    Word.DRIFTED.value: Look("≠", "bad", 2, "a touched file is neither as recorded nor pristine"),
    Word.INTERRUPTED.value: Look("‖", "bad", 3, "a transaction was cut short, or is at work"),
    Word.ORPHANED.value: Look("∅", "bad", 4, "patches were on, and their files are gone"),
    Word.UNMANAGED.value: Look("✎", "bad", 5, "files were edited, and no record says by whom"),
    Word.UNRECORDED.value: Look("◌", "look", 6, "the patches are in the files, without a record"),
    Word.UNKNOWN.value: Look("?", "look", 7, "patches are on that no commit of the queue has"),
    Word.PARTIAL.value: Look("◐", "look", 8, "a part of the series is on"),
    Word.BEHIND.value: Look("«", "changed", 9, "an older commit of the queue is on"),
    Word.MISSING.value: Look("○", "changed", 10, "nothing is on"),
    Word.NO_SERIES.value: Look("∄", "changed", 11, "no series fits what is installed"),
    Word.ABSENT.value: Look("·", "none", 12, "the distribution is not installed"),
    Word.UPSTREAM.value: Look("↑", "done", 13, "the release has what the queue is for"),
    Word.CURRENT.value: Look("✓", "good", 14, "the whole series is on"),
    MIXED: Look("≷", "bad", 15, "processes of one server have different code"),
    RESTART: Look("↻", "look", 16, "processes run the code from before a change"),
}
_NOTHING = 99
_REVIEW = "not as it should be"
_LEAD = (
    "One word for each queue on each host; a click on it says what proves it and what to type. "
    "The text filter looks into that, too."
)
# Columns of queues, and of patches; characters of a cell, and of a sentence; things in a list.
_QUEUES, _PATCHES, _SHORT, _LONG, _MANY = 12, 12, 120, 1000, 50

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Columns:
    """What the table has a column for; queues that few hosts have are one together."""

    queues: tuple[str, ...]
    others: bool
    patches: Mapping[str, tuple[str, ...]]
    distributions: tuple[str, ...]
    processes: bool
    edited: bool

    @property
    def headings(self) -> tuple[str, ...]:
        """The names of the columns."""
        found = ["host"]
        for queue in self.queues:
            found += [queue, *(name.removesuffix(".patch") for name in self.patches[queue])]
        found += ["other queues"] * self.others + list(self.distributions)
        found += ["processes"] * self.processes + ["last receipt"]
        found += ["edited files"] * self.edited
        return tuple(_cut(one) for one in found)


def page(rows: Sequence[Row], notes: Sequence[str]) -> Page:
    """Return an audit's rows as a page; each host is a row there."""
    hosts: dict[str, list[Row]] = {}
    for row in rows:
        hosts.setdefault(row["host"], []).append(row)
    columns = _columns(rows)
    here = list(hosts) == [""]
    title = "Audit of the environment here" if here else f"Audit of {_count(len(hosts), 'host')}"
    return Page(
        title,
        _LEAD,
        columns.headings,
        tuple(
            tuple(_cells(columns, at, host, found))
            for at, (host, found) in enumerate(hosts.items())
        ),
        tuple(_why(f"host-{at}", host, found) for at, (host, found) in enumerate(hosts.items())),
        tuple(notes),
        _REVIEW,
        deep=True,
    )


def _columns(rows: Sequence[Row]) -> _Columns:
    asked = [row for row in rows if "error" not in row]
    counted = Counter(row["queue"] for row in asked)
    wanted = {row["queue"] for row in asked if row["wanted"]}
    most = sorted(counted, key=lambda queue: (queue not in wanted, -counted[queue]))[:_QUEUES]
    queues = tuple(queue for queue in counted if queue in most) or ("",)
    patches = {
        queue: tuple(
            dict.fromkeys(name for row in asked if row["queue"] == queue for name in _of(row))
        )
        for queue in queues
    }
    if sum(map(len, patches.values())) > _PATCHES:
        patches = dict.fromkeys(queues, ())
    versions = Counter(row["distribution"] for row in asked)
    return _Columns(
        queues,
        len(counted) > len(queues),
        patches,
        tuple(name for name, _ in versions.most_common(_QUEUES)),
        any(row["running"] and row["running"]["processes"] for row in asked),
        any(row["word"] in _EDITED and row["paths"] for row in asked),
    )


_EDITED = (Word.DRIFTED.value, Word.UNMANAGED.value)


def _of(row: Row) -> Iterable[str]:
    """Return all patches that a row knows of, in the order of the series."""
    return dict.fromkeys((*row["series"], *row["patches"]))


def _cells(columns: _Columns, at: int, host: str, rows: Sequence[Row]) -> Iterator[Cell]:
    """Yield the cells of a host."""
    why = f"host-{at}"
    yield Cell(host or "here", why=why, order=at)
    silent = next((row for row in rows if "error" in row), None)
    asked = [row for row in rows if row is not silent]
    # Of two rows of one queue (a host may say what it likes) the worst one counts.
    asked.sort(key=lambda row: -LOOKS[row["word"]].rank)
    mine = {row["queue"]: row for row in asked}
    for queue in columns.queues:
        row = mine.get(queue, silent)
        yield _word(row, why)
        for name in columns.patches[queue]:
            on = row is not None and name in row.get("patches", ())
            yield Cell("on" if on else "-", order=int(on))
    if columns.others:
        rest = [row for queue, row in mine.items() if queue not in columns.queues]
        rest.sort(key=lambda row: LOOKS[row["word"]].rank)
        yield _word(rest[0] if rest else None, why, f"and {len(rest) - 1} more" * (len(rest) > 1))
    for name in columns.distributions:
        row = next((one for one in asked if one["distribution"] == name), None)
        text = "-" if row is None else row["version"] or "-"
        yield Cell(_cut(text), note="ephemeral" if row and row["ephemeral"] else "")
    if columns.processes:
        yield _processes(asked, why)
    yield _last([row["receipt"] for row in asked if row["receipt"]])
    if columns.edited:
        paths = [path for row in asked if row["word"] in _EDITED for path in row["paths"]]
        yield Cell(_cut(some(dict.fromkeys(paths), 2)))


def _word(row: Row | None, why: str, more: str = "") -> Cell:
    if row is None:
        return Cell("-", order=_NOTHING)
    notes = [more] if more else []
    if row["word"] == Word.PARTIAL.value and row["patches"] and row["series"]:
        notes.append(f"{len(row['patches'])} of {len(row['series'])}")
    if row.get("behind"):
        notes.append(f"by {_count(row['behind'], 'commit')}")
    return Cell(row["word"], LOOKS[row["word"]], why, not good(row), note=", ".join(notes))


def _processes(rows: Sequence[Row], why: str) -> Cell:
    """Return what is to be said of a host's processes: an alarm, else who needs a restart."""
    found = {row["distribution"]: row["running"] for row in rows if row["running"]}
    mixed = sum(len(one["mixed"]) for one in found.values())
    old = sum(len(one["restart"]) for one in found.values())
    if mixed:
        return Cell(MIXED, LOOKS[MIXED], why, note=f"{_count(mixed, 'server')}")
    if old:
        return Cell(RESTART, LOOKS[RESTART], why, note=_count(old, "process", "processes"))
    return Cell("-", order=_NOTHING)


def _last(receipts: Sequence[Mapping[str, Any]]) -> Cell:
    if not receipts:
        return Cell("-")
    one = max(receipts, key=lambda one: str(one["time"]))
    return Cell(_cut(str(one["time"])), note=_cut(f"{one['verb']} by {one['who']}"))


def _why(name: str, host: str, rows: Sequence[Row]) -> Why:
    """Return all that is said of a host."""
    found: list[tuple[str, Iterable[str]]] = []
    seen: dict[str, Row] = {}
    for row in rows:
        queue = row.get("queue")
        found.append((_cut(f"{queue}: {row['word']}" if queue else row["word"]), _of_queue(row)))
        if "error" not in row:
            seen.setdefault(row["distribution"], row)
    for distribution, row in seen.items():
        version = f"{distribution} {row['version'] or ''}".rstrip()
        found.append((_cut(version), _of_distribution(row)))
    cut: list[Part] = list(parts((heading, map(_long, each)) for heading, each in found))
    return Why(name, host or "here", tuple(cut))


def _of_queue(row: Row) -> Iterator[str]:
    """Yield what proves a queue's word, and what to type."""
    error = row.get("error") or {}
    yield from filter(None, (row["why"], error.get("why")))
    if row["mend"]:
        yield f"mend: {row['mend']}"
    if error:
        return
    on = list(row["patches"])
    lacks = [name for name in row["series"] if name not in on]
    if row["release"]:
        yield f"series: {row['release']}"
    for word, names in (("on", on), ("not on", lacks), ("files", row["paths"])):
        if names:
            yield f"{word}: {some(names, _MANY)}"
    if row["commit"]:
        yield f"commit: {row['commit']}, {_count(row['behind'] or 0, 'commit')} ago"


def _of_distribution(row: Row) -> Iterator[str]:
    """Yield where a distribution is, who changed it last, and what runs on it."""
    for name in ("site", "python", "environment"):
        if row[name]:
            yield f"{name}: {row[name]}"
    if row["ephemeral"]:
        yield "ephemeral: it goes with the container"
    if row["receipt"]:
        yield f"last receipt: {_receipt(row['receipt'])}, {row['receipt']['id']}"
    live = row["running"] or {}
    for tree in live.get("mixed", ()):
        yield f"mixed code: {some(map(str, tree), _MANY)}"
    old = set(live.get("restart", ()))
    named = [
        f"{one['pid']} {one['name']} ({one['kind']})"
        for one in live.get("processes", ())
        if one["pid"] in old
    ]
    if named:
        yield f"restart needed: {some(named, _MANY)}"
    if live.get("hidden"):
        yield "processes of other users: not shown there, so a restart may be needed unseen"
    if live.get("unreadable"):
        yield f"cannot be looked into: {_count(live['unreadable'], 'process', 'processes')}"


def _receipt(one: Mapping[str, Any]) -> str:
    return f"{one['time']} {one['verb']} by {one['who']} from {one['whence']}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[:_SHORT]} ..."


def _long(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]} ..."
