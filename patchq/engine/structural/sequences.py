"""Three sides of one sequence, merged by which of their members stand for each other.

What only one side took out, changed or put in is done. What both changed is merged
by the `Rules`, and so is what both put in at one place. Not here: what the members
are (statements, clauses, elements of a literal, words).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
# Pairs of new members of both sides that are compared; more are left to the rules at once.
_MOST = 40_000


class Conflict(Exception):
    """What is merged is not decided by its three sides; the message says why."""


@dataclass(frozen=True)
class Gap(Generic[T]):
    """What both sides put in between two members that all have.

    `gone`: members of the base that stood there.
    """

    ours: tuple[T, ...]
    theirs: tuple[T, ...]
    before: T | None
    after: T | None
    gone: tuple[T, ...]


class Rules(Protocol[T]):
    """What a kind of sequence says about its members."""

    def match(self, base: Sequence[T], side: Sequence[T]) -> Mapping[int, int]:
        """Return which member of a side each member of the base is."""

    def same(self, one: T, other: T) -> bool:
        """Return True where nothing but layout tells the two apart."""

    def twins(self, one: T, other: T) -> bool:
        """Return True for new members that both sides put in under one name."""

    def merge(self, base: T, ours: T, theirs: T) -> T:
        """Merge what both changed. Raises: Conflict."""

    def taken(self, base: T, ours: T, theirs: T) -> T:
        """Return a member that theirs alone changed, as it stands among those of ours."""

    def gone(self, base: T, side: T, who: str) -> T | None:
        """Return what is left where one side took out what `who` changed. Raises: Conflict."""

    def absent(self, member: T) -> None:
        """Hear that both sides took a member out."""

    def moved(self, member: T) -> None:
        """Hear that theirs puts a member elsewhere, which ours does not. Raises: Conflict."""

    def adrift(self, member: T) -> None:
        """Hear that theirs put something beside a member that ours moved. Raises: Conflict."""

    def amid(self, member: T, gone: T) -> None:
        """Hear that ours put a member amid what theirs took out. Raises: Conflict."""

    def both(self, gap: Gap[T]) -> Sequence[T]:
        """Return what stands in a gap that both put something into. Raises: Conflict."""

    def alone(self, gap: Gap[T]) -> Sequence[T]:
        """Return what stands in a gap where only theirs put something in. Raises: Conflict."""


def merged(base: Sequence[T], ours: Sequence[T], theirs: Sequence[T], rules: Rules[T]) -> list[T]:
    """Return the members of the merge. Raises: Conflict."""
    mine, other = rules.match(base, ours), rules.match(base, theirs)
    there = [at for at in mine if at in other]
    for at in range(len(base)):
        if at not in mine and at not in other:
            rules.absent(base[at])
    for at in set(there) - set(_rising(there, other)):
        rules.moved(base[at])
    anchors = _rising(_rising(there, mine), other)
    found: list[T] = []
    begin, sides = (0, 0, 0), (base, ours, theirs)
    for at in anchors:
        end = at, mine[at], other[at]
        found += _segment(sides, (mine, other), begin, end, rules)
        found.append(_member(base[at], ours[mine[at]], theirs[other[at]], rules))
        begin = end[0] + 1, end[1] + 1, end[2] + 1
    end = len(base), len(ours), len(theirs)
    return [*found, *_segment(sides, (mine, other), begin, end, rules)]


def _member(base: T, ours: T, theirs: T, rules: Rules[T]) -> T:
    if rules.same(base, theirs):
        return ours
    if rules.same(base, ours):
        return rules.taken(base, ours, theirs)
    return ours if rules.same(ours, theirs) else rules.merge(base, ours, theirs)


def _segment(
    sides: tuple[Sequence[T], Sequence[T], Sequence[T]],
    maps: tuple[Mapping[int, int], Mapping[int, int]],
    begin: tuple[int, int, int],
    end: tuple[int, int, int],
    rules: Rules[T],
) -> Sequence[T]:
    """Return what stands between two anchors."""
    base, ours, theirs = sides
    span = begin[0], end[0]
    both = [at for at in maps[0] if at in maps[1]]
    here = {
        maps[0][at]: _member(base[at], ours[maps[0][at]], theirs[maps[1][at]], rules)
        for at in both
        if begin[1] <= maps[0][at] < end[1]
    }
    there = {maps[1][at]: None for at in both}
    mine = list(_runs(base, ours, maps[0], (span, (begin[1], end[1])), _Left(rules, "ours", here)))
    other = list(
        _runs(base, theirs, maps[1], (span, (begin[2], end[2])), _Left(rules, "theirs", there))
    )
    before = ours[begin[1] - 1] if begin[1] else None
    after = ours[end[1]] if end[1] < len(ours) else None
    two = _members(other)
    many = len(_members(mine)) * len(two) > _MOST
    twins = many or any(rules.twins(one, x) for one in _members(mine) for x in two)
    found: list[T] = []
    for first, second in _paired(mine, other, together=twins):
        one, two = _members(first), _members(second)
        spans = [run.span for run in (*first, *second)]
        gone = base[min(x[0] for x in spans) : max(x[1] for x in spans)]
        last = found[-1] if found else before
        gap = Gap(tuple(one), tuple(two), last, after, tuple(gone))
        found += rules.both(gap) if one and two else rules.alone(gap) if two else one
        for run in first if not two else ():
            around = run.span[0] - 1, run.span[1]
            if run.span[0] == run.span[1] and all(
                0 <= at < len(base) and at not in maps[1] for at in around
            ):
                rules.amid(run.members[0], base[around[0]])
    return found


@dataclass(frozen=True)
class _Run(Generic[T]):
    """Members that a side put in together, in the place of these members of the base."""

    span: tuple[int, int]
    members: list[T]


@dataclass(frozen=True)
class _Left(Generic[T]):
    """What is left of members that the other side took out, or that ours moved (None: nothing)."""

    rules: Rules[T]
    who: str
    elsewhere: Mapping[int, T | None]


def _runs(
    base: Sequence[T],
    side: Sequence[T],
    to_side: Mapping[int, int],
    ranges: tuple[tuple[int, int], tuple[int, int]],
    left: _Left[T],
) -> Iterator[_Run[T]]:
    """Yield what a side put in, run by run."""
    (start, stop), (low, high) = ranges
    from_side = {to: at for at, to in to_side.items()}
    members: list[T] = []
    for to in range(low, high):
        at = from_side.get(to)
        if at is None:
            members.append(side[to])
            continue
        if to in left.elsewhere:
            here = left.elsewhere[to]
            if here is not None:
                members.append(here)
            elif any(low <= x < high and x not in from_side for x in (to - 1, to + 1)):
                left.rules.adrift(side[to])
            continue
        if not start <= at < stop:
            continue
        if members:
            yield _Run((start, at), members)
        members, start = [], at + 1
        if not left.rules.same(base[at], side[to]):
            rest = left.rules.gone(base[at], side[to], left.who)
            if rest is not None:
                yield _Run((at, at + 1), [rest])
    if members:
        yield _Run((start, stop), members)


def _paired(
    mine: list[_Run[T]], other: list[_Run[T]], *, together: bool
) -> Iterator[tuple[list[_Run[T]], list[_Run[T]]]]:
    """Yield the runs in order; those of both sides that overlap together."""
    if together:
        yield mine, other
        return
    i = j = 0
    while i < len(mine) or j < len(other):
        if j == len(other) or (i < len(mine) and _before(mine[i], other[j])):
            yield [mine[i]], []
            i += 1
        elif i == len(mine) or _before(other[j], mine[i]):
            yield [], [other[j]]
            j += 1
        else:
            end = max(mine[i].span[1], other[j].span[1])
            one, two = [mine[i]], [other[j]]
            i, j = i + 1, j + 1
            while True:
                if i < len(mine) and mine[i].span[0] < end:
                    one, end, i = [*one, mine[i]], max(end, mine[i].span[1]), i + 1
                elif j < len(other) and other[j].span[0] < end:
                    two, end, j = [*two, other[j]], max(end, other[j].span[1]), j + 1
                else:
                    break
            yield one, two


def _before(one: _Run[T], other: _Run[T]) -> bool:
    return one.span[1] <= other.span[0] and one.span != other.span


def _members(runs: Sequence[_Run[T]]) -> list[T]:
    return [one for run in runs for one in run.members]


def _rising(members: Sequence[int], to: Mapping[int, int]) -> list[int]:
    """Return the most of `members` whose places rise with them."""
    tops: list[int] = []
    last: list[int] = []
    before: dict[int, int | None] = {}
    for one in sorted(members):
        at = bisect.bisect_left(tops, to[one])
        before[one] = last[at - 1] if at else None
        tops[at : at + 1] = [to[one]]
        last[at : at + 1] = [one]
    found: list[int] = []
    at_: int | None = last[-1] if last else None
    while at_ is not None:
        found.append(at_)
        at_ = before[at_]
    return found[::-1]
