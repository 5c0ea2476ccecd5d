"""The name that somebody may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Comparing takes a microsecond or more a pair: texts from outside may have any number.
_MOST = 5_000


def close(name: str, known: Iterable[str]) -> str | None:
    """Return the one of `known` that is spelt most like `name`, None where none is close.

    Example:
        >>> close("hiden_states", ["hidden_states", "positions"])
        'hidden_states'
    """
    near = []
    for one in known:
        if abs(len(one) - len(name)) <= 3:
            near.append(one)
            if len(near) == _MOST:
                break
    found = difflib.get_close_matches(name, sorted(near), 1)
    return found[0] if found else None
