"""Which items of two sequences stand for each other: Myers' shortest edit script.

"An O(ND) Difference Algorithm and Its Variations", 1986, in linear space, with
the habits of git-diff(1), so that a merge comes out as git's does: ends that are
equal are set aside, and items that the other side has not (and frequent ones amid
those); a search that grows too long is cut short; and a change that may slide ends
as late as it can, or beside a change of the other side. Not here: what items mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

# Steps from both ends before the furthest point reached is taken for the middle.
_PATIENCE = 256
# How far around a frequent item is looked.
_NEAR = 100


class Change(NamedTuple):
    """Items `a0` to `a1` of the first sequence became `b0` to `b1` of the second."""

    a0: int
    a1: int
    b0: int
    b1: int


def changes(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Change]:
    """Return the changes that make `b` of `a`, in order, with equal items between them.

    Example:
        >>> changes("abcd", "axbd")
        [Change(a0=1, a1=1, b0=1, b1=2), Change(a0=2, a1=3, b0=3, b1=3)]
    """
    number: dict[Hashable, int] = {}
    one = [number.setdefault(item, len(number)) for item in a]
    two = [number.setdefault(item, len(number)) for item in b]
    gone, come = _marks(one, two)
    _slide(one, gone, come)
    _slide(two, come, gone)
    return list(_runs(gone, come))


def pairs(a: Sequence[Hashable], b: Sequence[Hashable]) -> dict[int, int]:
    """Return the index in `b` of every item of `a` that is still there.

    Example:
        >>> pairs("abcd", "axbd")
        {0: 0, 1: 2, 3: 3}
    """
    found: dict[int, int] = {}
    at = to = 0
    for a0, a1, b0, b1 in [*changes(a, b), Change(len(a), len(a), len(b), len(b))]:
        found.update(zip(range(at, a0), range(to, b0), strict=True))
        at, to = a1, b1
    return found


def _marks(a: list[int], b: list[int]) -> tuple[bytearray, bytearray]:
    """Return which items of either side are not in the other, as flags."""
    gone, come = bytearray(len(a)), bytearray(len(b))
    low = 0
    while low < min(len(a), len(b)) and a[low] == b[low]:
        low += 1
    tail = 0
    while tail < min(len(a), len(b)) - low and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    kept = []
    for side, other, flags in ((a, b, gone), (b, a, come)):
        there = Counter(other)
        often = 1 << (len(side).bit_length() + 1) // 2  # about the root of the number of items
        found = [0 if not there[item] else 2 if there[item] >= often else 1 for item in side]
        middle = range(low, len(side) - tail)
        for at in middle:
            flags[at] = found[at] == 0 or (found[at] == 2 and _lost(found, at, middle))
        kept.append([at for at in middle if not flags[at]])
    _script([a[at] for at in kept[0]], [b[at] for at in kept[1]], kept, (gone, come))
    return gone, come


def _lost(found: list[int], at: int, middle: range) -> bool:
    """Return True where a frequent item (2) stands among ones that are not there (0)."""
    gone, often = 0, 2
    for near in (range(at - 1, middle.start - 1, -1), range(at + 1, middle.stop)):
        missing = 0
        for one in near[:_NEAR]:
            if found[one] == 1:
                break
            missing += found[one] == 0
            often += found[one] == 2
        if not missing:
            return False
        gone += missing
    return often * 4 < often + gone


def _script(
    a: list[int], b: list[int], at: list[list[int]], flags: tuple[bytearray, bytearray]
) -> None:
    """Flag what differs; `at` says where the items of `a` and `b` are in the whole."""
    todo = [(0, len(a), 0, len(b))]
    while todo:
        a0, a1, b0, b1 = todo.pop()
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            a0, b0 = a0 + 1, b0 + 1
        while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
            a1, b1 = a1 - 1, b1 - 1
        if a0 == a1 or b0 == b1:
            for place in at[0][a0:a1]:
                flags[0][place] = 1
            for place in at[1][b0:b1]:
                flags[1][place] = 1
            continue
        x, y = _middle(a, b, (a0, a1, b0, b1))
        todo += [(x, a1, y, b1), (a0, x, b0, y)]


def _middle(a: list[int], b: list[int], box: tuple[int, int, int, int]) -> tuple[int, int]:
    """Return a point on a shortest path through the box, never one of its two corners."""
    a0, a1, b0, b1 = box
    top, bottom = a0 - b0, a1 - b1
    odd = (top - bottom) % 2 == 1
    least, most = a0 - b1, a1 - b0
    ahead, back = {top: a0}, {bottom: a1}
    low_a = high_a = top
    low_b = high_b = bottom
    for _ in range(_PATIENCE):
        low_a, high_a = _widen(ahead, low_a, high_a, (least, most), -1)
        for d in range(high_a, low_a - 1, -2):
            down, right = ahead[d + 1], ahead[d - 1] + 1
            x = max(right, down)
            while x < a1 and x - d < b1 and a[x] == b[x - d]:
                x += 1
            ahead[d] = x
            if odd and low_b <= d <= high_b and back[d] <= x:
                return x, x - d
        low_b, high_b = _widen(back, low_b, high_b, (least, most), 1 << 60)
        for d in range(high_b, low_b - 1, -2):
            up, left = back[d - 1], back[d + 1] - 1
            x = min(up, left)
            while x > a0 and x - d > b0 and a[x - 1] == b[x - d - 1]:
                x -= 1
            back[d] = x
            if not odd and low_a <= d <= high_a and x <= ahead[d]:
                return x, x - d
    return _furthest(box, ahead, back)


def _widen(
    reach: dict[int, int], low: int, high: int, bounds: tuple[int, int], never: int
) -> tuple[int, int]:
    """Return the diagonals of the next round, with `never` on the ones beyond them."""
    least, most = bounds
    if low > least:
        low -= 1
        reach[low - 1] = never
    else:
        low += 1
    if high < most:
        high += 1
        reach[high + 1] = never
    else:
        high -= 1
    return low, high


def _furthest(
    box: tuple[int, int, int, int], ahead: dict[int, int], back: dict[int, int]
) -> tuple[int, int]:
    """Return the point that one of the two searches got furthest to."""
    a0, a1, b0, b1 = box
    best = (-1, a0, b0)
    for d, x in ahead.items():
        if a0 <= x <= a1 and b0 <= x - d <= b1:
            best = max(best, (x + x - d - a0 - b0, x, x - d))
    for d, x in back.items():
        if a0 <= x <= a1 and b0 <= x - d <= b1:
            best = max(best, (a1 + b1 - x - x + d, x, x - d))
    return best[1:]


def _slide(side: list[int], flags: bytearray, other: bytearray) -> None:
    """Slide every change as late as it goes, or to the last place beside one of `other`."""
    groups, others = _Groups(flags), _Groups(other)
    while True:
        if groups.start != groups.end:
            beside = None
            while True:
                size = groups.end - groups.start
                while groups.up(side):
                    others.previous()
                earliest = groups.end
                beside = groups.end if others.end > others.start else None
                while groups.down(side):
                    others.following()
                    if others.end > others.start:
                        beside = groups.end
                if groups.end - groups.start == size:
                    break
            if beside is not None and earliest != groups.end:
                while others.end == others.start:
                    groups.up(side)
                    others.previous()
        if not groups.following():
            return
        others.following()


class _Groups:
    """Walks the runs of flagged items of one side; a run may be empty."""

    def __init__(self, flags: bytearray) -> None:
        self.flags, self.start, self.end = flags, 0, 0
        while self.end < len(flags) and flags[self.end]:
            self.end += 1

    def following(self) -> bool:
        """Go to the next run; False at the last one."""
        if self.end == len(self.flags):
            return False
        self.start = self.end = self.end + 1
        while self.end < len(self.flags) and self.flags[self.end]:
            self.end += 1
        return True

    def previous(self) -> None:
        """Go to the run before."""
        self.end = self.start = self.start - 1
        while self.start and self.flags[self.start - 1]:
            self.start -= 1

    def up(self, side: list[int]) -> bool:
        """Slide the run one item up, and join one that it meets there."""
        if not (self.start and side[self.start - 1] == side[self.end - 1]):
            return False
        self.start, self.end = self.start - 1, self.end - 1
        self.flags[self.start], self.flags[self.end] = 1, 0
        while self.start and self.flags[self.start - 1]:
            self.start -= 1
        return True

    def down(self, side: list[int]) -> bool:
        """Slide the run one item down, and join one that it meets there."""
        if not (self.end < len(side) and side[self.start] == side[self.end]):
            return False
        self.flags[self.start], self.flags[self.end] = 0, 1
        self.start, self.end = self.start + 1, self.end + 1
        while self.end < len(side) and self.flags[self.end]:
            self.end += 1
        return True


def _runs(gone: bytearray, come: bytearray) -> Iterator[Change]:
    """Yield the flagged runs of both sides together."""
    at = to = 0
    while at < len(gone) or to < len(come):
        a0, b0 = at, to
        while at < len(gone) and gone[at]:
            at += 1
        while to < len(come) and come[to]:
            to += 1
        if (a0, b0) != (at, to):
            yield Change(a0, at, b0, to)
        if at < len(gone):
            at, to = at + 1, to + 1
