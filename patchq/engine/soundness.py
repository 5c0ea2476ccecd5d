"""Whether a merged text still hangs together, as both of its sides did.

What is asked: that it is Python, that every name it uses is there, that nothing is
defined twice, and that new lines lie in the class and def that they were written in.
Faults that a side has already are not the merge's. Sketches and imports across files
are `patchq.engine.judge`'s.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patchq.engine import builtin, duplicates, lookup, syntax, trees
from patchq.engine.merge import Merged
from patchq.engine.trees import Fault

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def faults(ours: bytes, theirs: bytes, result: bytes) -> Iterator[str]:
    """Yield the faults that a merged text has and neither side has."""
    fault = syntax.parsed(result)
    if isinstance(fault, Fault):
        if not any(isinstance(syntax.parsed(side), Fault) for side in (ours, theirs)):
            yield f"the merged text is not Python: {fault}"
        return
    had = {one.name for side in (ours, theirs) for one in duplicates.duplicates(side)}
    for one in duplicates.duplicates(result):
        if one.name not in had:
            yield f"line {one.line}: the merged text defines `{one.name}` twice"
    missing = _missing(result)
    for side in (ours, theirs) if missing else ():
        missing -= _missing(side)
    for name in sorted(missing):
        yield f"nothing in the merged text defines `{name}`"


def misplaced(merged: Merged, theirs: bytes, result: bytes) -> Iterator[str]:
    """Yield the new lines of theirs that lie in another class or def than they did."""
    wanted, got = scopes(theirs), scopes(result)
    if wanted is None or got is None:
        return
    there = set(got.values())
    at = to = 1
    for region in merged.regions:
        if region.side == "theirs":
            for number, line in enumerate(region.theirs):
                scope, now = wanted.get(at + number, ""), got.get(to + number, "")
                if line.strip() and scope != now and scope in there:
                    yield (
                        f"line {to + number}: a line of the patch's {_said(scope)} would lie "
                        f"in {_said(now)}"
                    )
                    break
        at += len(region.theirs)
        to += len(region.lines)


def scopes(text: bytes) -> dict[int, str] | None:
    """Return the class or def around every line that is in one; None where none can be told."""
    tree = trees.python(text)
    if isinstance(tree, Fault):
        return None
    spans = []
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, where = todo.pop()
        for one in ast.iter_child_nodes(node):
            if isinstance(one, _Definition):
                inner = f"{where}.{one.name}".strip(".")
                spans.append((one.lineno, one.end_lineno or one.lineno, inner))
                todo.append((one, inner))
            elif isinstance(one, ast.stmt | ast.ExceptHandler | ast.match_case):
                todo.append((one, where))
    found: dict[int, str] = {}
    for first, last, name in sorted(spans):
        for line in range(first, last + 1):
            found[line] = name
    return found


def _missing(text: bytes) -> set[str]:
    names = lookup.names(text)
    if names is None or names.made or names.outline.stars:
        return set()
    return {one.name for one in names.missing if one.name not in names.asked} - builtin.names()


def _said(scope: str) -> str:
    return f"`{scope}`" if scope else "the module itself"
