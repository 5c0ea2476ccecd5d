"""Put what scripts/torture counted into docs/reliability.md, a table for each kind of proof.

The tables are the page's last part; those that a run has no counts of stay as they are.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
HEADING = "## What was counted\n"
VERBS = ("push", "pop", "undo", "recover")
_TABLE = re.compile(r"^### (.+)\n\n((?:\|.*\n)+)", re.MULTILINE)

Cells = Counter[tuple[str, str]]


def main(counted: Path) -> None:
    """Read the counts, and write the page."""
    found: dict[str, Cells] = {}
    for line in counted.read_text().splitlines():
        table, row, column, number = json.loads(line)
        found.setdefault(table, Counter())[row, column] += number
    text, heading, last = PAGE.read_text().partition(HEADING)
    intro, *_ = last.partition("\n### ")
    tables = dict(_TABLE.findall(last))
    tables |= {name: table_of(cells) for name, cells in found.items()}
    parts = [f"### {name}\n\n{tables[name]}" for name in sorted(tables)]
    PAGE.write_text(text + heading + "\n".join([intro, *parts]))


def table_of(cells: Cells) -> str:
    """Return a Markdown table, the verbs' columns first.

    Example:
        >>> print(table_of(Counter({("rename", "push"): 3, ("rename", "pop"): 2})), end="")
        | | push | pop | all |
        |---|---|---|---|
        | rename | 3 | 2 | 5 |
    """
    rows = sorted({row for row, _ in cells})
    columns = sorted({column for _, column in cells}, key=_order)
    lines = [
        f"| | {' | '.join([*columns, 'all'])} |",
        "|" + "---|" * (len(columns) + 2),
    ]
    for row in rows:
        numbers = [cells[row, column] for column in columns]
        shown = [str(number) if number else "-" for number in [*numbers, sum(numbers)]]
        lines.append(f"| {row} | {' | '.join(shown)} |")
    return "".join(f"{line}\n" for line in lines)


def _order(column: str) -> tuple[int, str]:
    return (VERBS.index(column) if column in VERBS else len(VERBS), column)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
