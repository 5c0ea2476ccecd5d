"""What a merge without conflict may still have got wrong: names that changed meanwhile.

Both sides may be right alone and wrong together: what the patch calls has other
parameters now, or another name, or is gone. None of this is a conflict; all of it is
a note for whoever reads the result.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from patchq.engine.structural.nodes import Block, Clause, Group, Statement, norm
from patchq.engine.structural.notes import Notes
from patchq.engine.structural.tokens import Token

_WORD = re.compile(r"[^\W\d]\w*")
_SHORT = 3


@dataclass
class Names:
    """The names of one text: how often each is said, defined how, imported from where."""

    said: Counter[str] = field(default_factory=Counter)
    bound: Counter[str] = field(default_factory=Counter)
    parameters: dict[str, set[str]] = field(default_factory=dict)
    imported: dict[str, set[str]] = field(default_factory=dict)


def names(block: Block) -> Names:
    """Return the names of a text."""
    found = Names()
    for clause in _clauses(block):
        head = clause.head
        named = isinstance(head[-1], Group) and head[-1].kind == "names"
        _say(head[-1:] if named else head, found.said)
        _bind(head, found.bound)
        group = head[-1]
        if isinstance(group, Group) and group.kind == "names":
            module = norm(head[1:-2])
            found.imported.setdefault(module, set()).update(one.norm for one in group.elements)
        for at, item in enumerate(head[:-1]):
            after = head[at + 1]
            if isinstance(after, Group) and after.kind == "parameters":
                assert isinstance(item, Token)
                found.parameters.setdefault(item.text, set()).add(after.norm)
    return found


def review(read: Sequence[Names], texts: Sequence[str], result: str, notes: Notes) -> None:
    """Note what changed under the patch, and what the patch changed under upstream.

    `read` and `texts`: base, ours and theirs.
    """
    base, ours, theirs = read
    fresh = [_fresh(result, text) for text in texts[1:]]
    sides = (
        (base, ours, theirs, "upstream", "the patch", fresh[0]),
        (base, theirs, ours, "the patch", "upstream", fresh[1]),
    )
    for was, changed, adds, who, other, rows in sides:
        new = {
            name
            for name, often in adds.said.items()
            if often > was.said[name] and len(name) >= _SHORT and not keyword.iskeyword(name)
        }
        for name in sorted(new):
            own = adds.bound[name] > was.bound[name]
            if was.said[name] and not changed.said[name] and not own:
                notes.flag(
                    f"{who} has taken out every `{name}`, which {other} adds", _row(name, rows)
                )
        for name in sorted(new & was.parameters.keys() & changed.parameters.keys()):
            if name in adds.parameters and was.parameters[name] != adds.parameters[name]:
                continue
            if was.parameters[name] != changed.parameters[name] and len(was.parameters[name]) == 1:
                said = f"{who} changed the parameters of `{name}`, which {other} calls"
                notes.flag(said, _row(name, rows))
    _modules(base, ours, theirs, notes)


def _fresh(result: str, side: str) -> list[str]:
    """Return the lines of a result that a side has not."""
    had = set(side.splitlines())
    return [row for row in result.splitlines() if row not in had]


def _row(name: str, rows: list[str]) -> str:
    """Return the first line that says a name."""
    return next((row for row in rows if name in _WORD.findall(row)), name)


def _modules(base: Names, ours: Names, theirs: Names, notes: Notes) -> None:
    """Note names that upstream has from elsewhere now, and modules that it has names from."""
    for module, had in base.imported.items():
        gone = had - ours.imported.get(module, set())
        moved = [name for name in sorted(gone) if ours.said[_last(name)]]
        still = {name for held in ours.imported.values() for name in held}
        for name in moved:
            last = _last(name)
            if (
                name not in still
                and theirs.said[last] != base.said[last]
                and name in theirs.imported.get(module, ())
            ):
                notes.flag(f"upstream has `{last}` from elsewhere than the patch", last)
        new = theirs.imported.get(module, set()) - had - ours.imported.get(module, set())
        if moved and new and "\x1f" in module:  # else it is another distribution
            notes.flag(
                f"upstream has `{_last(moved[0])}` from another module than "
                f"`{module.replace(chr(31), '')}`, from which the patch imports",
                _last(sorted(new)[0]),
            )


def _last(name: str) -> str:
    return name.split("\x1f")[-1]


def _clauses(block: Block) -> Iterator[Clause]:
    for statement in block.statements:
        yield from _inner(statement)


def _inner(statement: Statement) -> Iterator[Clause]:
    for clause in statement.clauses:
        yield clause
        if clause.body:
            yield from _clauses(clause.body)


def _bind(items: tuple[Token | Group, ...], bound: Counter[str]) -> None:
    """Count the names that a line gives: assigned, imported, defined, as parameters."""
    for at, item in enumerate(items):
        if isinstance(item, Group):
            for element in item.elements:
                start = element.items[:1]
                if item.kind in ("names", "parameters"):
                    said: Counter[str] = Counter()
                    _say(element.items if item.kind == "names" else start, said)
                    bound.update(said)
                _bind(element.items, bound)
        elif item.kind == "name":
            after = items[at + 1] if at + 1 < len(items) else None
            before = items[at - 1] if at else None
            gives = isinstance(after, Token) and after.text in ("=", ":=", ":", ",", "in")
            given = isinstance(before, Token) and before.text in ("as", "def", "class", "for")
            bound[item.text] += gives or given


def _say(items: tuple[Token | Group, ...], said: Counter[str]) -> None:
    for item in items:
        if isinstance(item, Group):
            for element in item.elements:
                _say(element.items, said)
        elif item.kind == "name":
            said[item.text] += 1
        elif item.kind == "string" and item.text[:1] in "fF":
            said.update(_WORD.findall(item.text))
