"""Running processes in words: who must be restarted, and whose workers differ."""

from __future__ import annotations

from collections.abc import Iterable

from patchq.running import Process, Running, State

# How the line begins that a move ends with.
RESTART = "restart needed"
_MOST = 20


def needed(found: Running | None, *, verb: str = "", alarmed: bool = False) -> tuple[str, ...]:
    """Return what a move is to end with; the last line names who must be restarted.

    `verb`: the move that was made just now, "" for one of the past; `alarmed`: the alarms
    were told already.
    """
    if found is None or not found.managed:
        return ()
    lines = [] if alarmed else [*alarms(found)]
    hidden = found.of(State.BEFORE, proven=False)
    if hidden:
        lines.append(
            f"restart perhaps: {named(hidden)}: on this environment, started before;"
            " what they imported cannot be seen"
        )
    unknown = found.of(State.UNKNOWN)
    if unknown:
        lines.append(
            f"restart perhaps: {named(unknown)}: started as the files changed, or soon after"
        )
    lines += _unseen(found)
    stale = found.of(State.BEFORE)
    if stale:
        told = f"this {verb}" if verb else _since(stale)
        lines.append(f"{RESTART}: {named(stale)}: started before {told}")
    return tuple(lines)


def alarms(found: Running) -> tuple[str, ...]:
    """Return a line for each server whose processes have different code."""
    lines = []
    for tree in found.mixed:
        codes: dict[str, list[Process]] = {}
        for one in tree:
            if one.code is not None:
                codes.setdefault(one.code, []).append(one)
        told = "; ".join(f"{_code(some[0])}: {named(some)}" for some in codes.values())
        lines.append(f"alarm: the processes of server {tree[0].server} differ: {told}")
    return tuple(lines)


def current(found: Running | None) -> tuple[str, ...]:
    """Return the line that names who has today's code."""
    if found is None or not found.managed:
        return ()
    good = found.of(State.CURRENT)
    return (f"running on the current code: {named(good)}",) if good else ()


def named(processes: Iterable[Process]) -> str:
    """Return processes as a list: number and name, not more than there is room for."""
    told = [f"{one.pid} {one.name}" for one in processes]
    return _listed(told, len(told))


def _listed(told: list[str], count: int) -> str:
    more = count - len(told[:_MOST])
    return ", ".join(told[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _unseen(found: Running) -> list[str]:
    lines = []
    if found.hidden:
        lines.append(
            "/proc does not show the processes of other users: which of them must be restarted"
            " cannot be seen"
        )
    if found.unreadable:
        count = "1 process" if found.unreadable == 1 else f"{found.unreadable} processes"
        names = _listed([f"{pid} {name}" for pid, name in found.unread], found.unreadable)
        told = f": {names}" if found.unread else ""
        lines.append(f"{count} of other users may be Python, and cannot be looked into{told}")
    if found.unseen:
        lines.append(f"{found.unseen} processes were not looked at: it would have taken long")
    return lines


def _since(processes: Iterable[Process]) -> str:
    """Return which receipts they did not see, the first for each."""
    found = dict.fromkeys(one.since for one in processes if one.since is not None)
    return ", ".join(f"{one.verb} {one.time}" for one in found)


def _code(one: Process) -> str:
    if one.receipt is not None:
        return f"as of {one.receipt.verb} {one.receipt.time}"
    return f"before {one.since.verb} {one.since.time}" if one.since else "never changed"
