"""Whether a merged text still hangs together, as both of its sides did.

What is asked: that it is Python, that every name it uses is there, that nothing is
defined twice, nor a key in one dict, and that new lines lie in the class and def that
they were written in.
Faults that a side has already are not the merge's. Sketches and imports across files
are `patchq.engine.judge`'s.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
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
    yield from _refused(ours, theirs, result)
    yield from _repeated(ours, theirs, fault)
    missing = _missing(result)
    for side in (ours, theirs) if missing else ():
        missing -= _missing(side)
    for name in sorted(missing):
        yield f"nothing in the merged text defines `{name}`"


def _refused(ours: bytes, theirs: bytes, result: bytes) -> Iterator[str]:
    """Yield what Python's compiler says of a text that parses; silent where a side is like it."""
    said = _compiled(result)
    if said and not any(_compiled(side) for side in (ours, theirs)):
        yield f"the merged text is not Python: {said}"


def _compiled(text: bytes) -> str:
    if isinstance(trees.python(text), Fault):
        return ""  # the parser's to say, or newer than the running Python
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "merged", "exec", dont_inherit=True)
        except SyntaxError as error:
            return f"line {error.lineno}: {error.msg}"
        except (RecursionError, MemoryError, ValueError):
            return ""
    return ""


def _repeated(ours: bytes, theirs: bytes, tree: ast.Module | None) -> Iterator[str]:
    """Yield the keys that one dict of a merged text has twice, where no side has it so."""
    found = _twice(tree)
    had = [_twice(syntax.parsed(side)) for side in (ours, theirs)] if found else []
    for key, line in found.items():
        if not any(key in one for one in had):
            yield f"line {line}: a dict of the merged text has the key {key} twice"


def _twice(tree: ast.Module | Fault | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in ast.walk(tree) if isinstance(tree, ast.Module) else ():
        if isinstance(node, ast.Dict):
            keys = [repr(key.value) for key in node.keys if isinstance(key, ast.Constant)]
            if len(keys) != len(set(keys)):
                found |= {key: node.lineno for key, n in Counter(keys).items() if n > 1}
    return found


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
