"""Where a new member goes in a list that is sorted."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

Key = Callable[[str], Any]  # each of its own kind, and only compared to its own


def _kinds(text: str) -> tuple[int, str]:
    """Constants, classes, then the rest, as isort has it."""
    name = text.split("\x1f")[0]
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2), text


def _natural(text: str) -> list[tuple[int, int, str]]:
    parts = re.findall(r"\d+|\D+", text.casefold())
    return [(0, int(one), "") if one.isdigit() else (1, 0, one) for one in parts]


KEYS: tuple[Key, ...] = (
    lambda text: text,
    lambda text: (text.casefold(), text),
    _kinds,
    lambda text: (_kinds(text)[0], text.casefold()),
    _natural,
)


# So few prove no order.
_FEW = 2


def places(whole: Sequence[str], around: Sequence[str], new: str) -> set[int]:
    """Return where `new` may go in `whole`, by each order that both lists keep.

    `around`: the other list, with `new` in it. Lists of two members or fewer prove
    no order.

    Example:
        >>> places(["a", "b", "d"], ["a", "c", "d"], "c")
        {2}
    """
    found = set[int]()
    if len(whole) <= _FEW or 0 < len(around) <= _FEW:
        return found
    for key in KEYS:
        if _sorted(whole, key) and _sorted(around, key):
            found.add(bisect.bisect_right([key(one) for one in whole], key(new)))
    return found


def kept(names: Sequence[str]) -> bool:
    """Return True for names in some order, more than two of them.

    Example:
        >>> kept(["b", "C", "d"]), kept(["b", "a"])
        (True, False)
    """
    return len(names) > 2 and any(_sorted(names, key) for key in KEYS)


def _sorted(names: Sequence[str], key: Key) -> bool:
    keys = [key(one) for one in names]
    return all(not one > other for one, other in pairwise(keys))
