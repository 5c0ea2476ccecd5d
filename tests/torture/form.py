"""Short form or long form of a proof, and the counts of what was proved.

`pytest` runs the short form: a fixed sample of the cases. scripts/torture sets
PATCHQ_TORTURE=1 and gets all of them, and collects the counts for docs/reliability.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

LONG = bool(os.environ.get("PATCHQ_TORTURE"))


def some(cases: Sequence[T], number: int) -> Sequence[T]:
    """Return all cases in the long form, else `number` of them, evenly spread."""
    if LONG or len(cases) <= number:
        return cases
    if number == 1:
        return cases[:1]
    last = len(cases) - 1
    return [cases[at * last // (number - 1)] for at in range(number)]


def count(table: str, row: str, column: str, number: int = 1) -> None:
    """Record that `number` cases were proved, where scripts/torture asks for it."""
    path = os.environ.get("PATCHQ_TORTURE_COUNTS")
    if path:
        line = json.dumps([table, row, column, number]) + "\n"
        with open(path, "a", encoding="utf-8") as file:
            file.write(line)
