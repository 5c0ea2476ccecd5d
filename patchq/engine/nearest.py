"""Why a claim fails, in words: what comes nearest, in the block that fitted furthest.

Nothing is searched again: a failed search left behind how far each block came.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from patchq.engine import budget, differences, match, names, sites, trees
from patchq.engine.fitting import Line, Reach
from patchq.engine.names import Imported
from patchq.engine.runs import Run
from patchq.engine.search import Search
from patchq.engine.sites import Site
from patchq.engine.trees import Tree

_EMPTY = cst.Module([])
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Miss:
    """What to say of a failed claim, and the line of the file it is about."""

    text: str
    line: int | None


def code(node: cst.CSTNode) -> str:
    """Return the first line of a node's code, without comments above it."""
    if isinstance(node, cst.BaseCompoundStatement):
        node = node.with_changes(leading_lines=())
        if isinstance(node, sites.DEFS):
            node = node.with_changes(decorators=(), lines_after_decorators=())
    text = _EMPTY.code_for_node(node).strip().rstrip(",").rstrip()
    return _short(text.split("\n")[0].split("  #")[0])


def imports(
    wanted: Imported, there: Mapping[Imported, cst.CSTNode], tree: Tree | None
) -> tuple[str, int | None]:
    """Say what is imported from the module instead, or where else the name comes from."""
    module, name, _ = wanted
    same = {have: node for have, node in there.items() if have[0] == module}
    other = [have for have in there if name is not None and have[1] == name]
    if same and tree is not None:
        line = min(tree.lines.get(id(node), 0) for node in same.values())
        if None in {have[1] for have in same}:
            return f"the module is there as `{names.spoken(next(iter(same)))}`", line
        brought = ", ".join(f"{n} as {a}" if a else str(n) for _, n, a in same)
        return f"from {module} are imported {brought}", line
    if other and tree is not None:
        line = tree.lines.get(id(there[other[0]]), 0)
        return f"there is `{names.spoken(other[0])}` instead", line
    return f"nothing is imported from {module}" if name else f"{module} is not imported", None


def classes(name: str, where: str, places: Sequence[Site]) -> str:
    """Say that a class is missing, and which one has nearly its name."""
    known = [site.node.name.value for site in places if isinstance(site.node, cst.ClassDef)]
    return _absent("class", name, where, known)


def statement(
    search: Search,
    node: cst.CSTNode,
    places: Sequence[Site],
    scope_line: int | None,
    among: Sequence[Site] = (),
) -> Miss:
    """Say how far a statement of class or module level came in its scope.

    `among`: every site of the scope, for the name that comes nearest to a def's.
    """
    lines = search.tree.lines
    search.budget.spent = 0
    if isinstance(node, cst.FunctionDef):
        if not places:
            known = [one.node.name.value for one in among if isinstance(one.node, cst.FunctionDef)]
            return Miss(_absent("def", node.name.value, "", known), scope_line)
        found = places[-1].node
        assert isinstance(found, cst.FunctionDef)
        run = search.runs.get((id(node.body), id(found.body)))
        if run is None:
            return Miss(_header(search, node, found), lines.get(id(found)))
        return _block(search, run, lines.get(id(found), 0))
    line = Line(node, False, False, frozenset())
    run = Run((line,), tuple(places))
    run.note(1, Reach(), {})
    return _block(search, run, scope_line or 1)


def _absent(kind: str, name: str, where: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    hint = f"; there is a {kind} {close[0]}" if close else ""
    return f"there is no {kind} {name}{' in ' + where if where else ' here'}{hint}"


def _header(search: Search, p: cst.FunctionDef, t: cst.FunctionDef) -> str:
    """What of a def's own line is not as the sketch has it."""
    if bool(p.asynchronous) != bool(t.asynchronous):
        return f"the def is {'not ' if p.asynchronous else ''}async"
    if p.type_parameters and not (
        t.type_parameters and match.fits(p.type_parameters, t.type_parameters, search.budget)
    ):
        there = code(t.type_parameters) if t.type_parameters else "none"
        return f"the def has not the type parameters {code(p.type_parameters)}; it has {there}"
    have = {names.star(param) + param.name.value for param in names.parameters(t)}
    for param in names.parameters(p):
        name = names.star(param) + param.name.value
        if name not in have and match.hole(param.name) is None:
            listed = ", ".join(names.star(one) + one.name.value for one in names.parameters(t))
            return f"the def has no parameter {name}; it has ({listed})"
    decorators = [deco.decorator for deco in t.decorators]
    for deco in p.decorators:
        if not any(match.fits(deco.decorator, one, search.budget) for one in decorators):
            return f"the def has no decorator `{code(deco.decorator)}`"
    said = differences.parameters(p, t) or "annotations or defaults differ"
    return f"{said}: `{code(t)}`"


def _block(search: Search, run: Run, start: int) -> Miss:
    """Follow the first line that did not fit into the statement that fitted its header."""
    done = len(run.lines) - run.left
    if done == len(run.lines):
        return Miss("every statement fits by itself, but not together", start)
    line = run.lines[done]
    deeper = _deeper(search, run, line)
    if deeper is not None:
        header, row, start, inner = deeper
        miss = _block(search, inner, start)
        place = f"line {row} " if row else ""
        return Miss(f"{place}`{header}` fits; in it {miss.text}", miss.line)
    branch = _branch(search, run, line)
    if branch is not None:
        return branch
    count = f"{done} of {len(run.lines)} statements fit" if len(run.lines) > 1 else ""
    near = _near(search, run, line)
    if line.absent:
        return Miss(_joined(count, f"`{code(line.node)}` is there"), near.line or start)
    return Miss(_joined(count, f"`{code(line.node)}` does not", near.text), near.line or start)


def _joined(count: str, what: str, near: str = "") -> str:
    said = what if count or not what.endswith(" does not") else what.removesuffix(" does not")
    if not count and near:
        said = f"nothing fits {said}"
    return "; ".join(part for part in (count, said, near) if part)


def _deeper(search: Search, run: Run, line: Line) -> tuple[str, int | None, int, Run] | None:
    """The header that fitted and whose block came furthest: its text and line, and the block.

    An `else` and its like have no line of their own: the third is then their statement's.
    """
    if not isinstance(line.node, cst.BaseCompoundStatement) or line.absent:
        return None
    rows = search.tree.lines
    found: list[tuple[str, int | None, int, Run]] = []
    for site in run.places:
        if site.low < run.reach.after or type(site.node) is not type(line.node):
            continue
        start = rows.get(id(site.node), 1)
        pairs: list[tuple[str, cst.CSTNode, cst.CSTNode]]
        pairs = [(code(site.node), line.node, site.node)]
        pairs += [
            (differences.branch(t), p, t)
            for p, t in differences.branches(search.fitter, line.node, site.node)
        ]
        for header, above, below in pairs:
            for p in sites.parts(above):
                for t in sites.parts(below):
                    inner = search.runs.get((id(p), id(t)))
                    if inner is not None and inner.left:
                        row = rows.get(id(below))
                        found.append((header, row, row or start, inner))
    return min(found, key=lambda one: one[3].left) if found else None


def _branch(search: Search, run: Run, line: Line) -> Miss | None:
    """What an `if`, `try` or the like lacks whose header and body fit."""
    if not isinstance(line.node, cst.BaseCompoundStatement) or line.absent:
        return None
    rows = search.tree.lines
    with contextlib.suppress(budget.TooLoose):
        for site in run.places:
            if site.low < run.reach.after or not any(
                True for _ in search.fitter.heading(line.node, site.node, {})
            ):
                continue
            said = differences.absent(search.fitter, line.node, site.node)
            if said:
                row = rows.get(id(site.node), 0)
                return Miss(f"line {row} `{code(site.node)}` fits; {said}", row or None)
    return None


def _near(search: Search, run: Run, line: Line) -> Miss:
    """The statement that would fit elsewhere, else the one whose text is most alike."""
    with contextlib.suppress(budget.TooLoose):
        elsewhere = _elsewhere(search, run, line)
        found = elsewhere or _part(search, run, line)
        if found is not None:
            return found
    for site in run.places:
        said = differences.missing(line.node, site.node)
        row = search.tree.lines.get(id(site.node))
        if said and row:
            return Miss(f"line {row} `{code(site.node)}` comes nearest; {said}", row)
    alike = _alike(search.tree, line.node, [site.node for site in run.places])
    if alike is None:
        return Miss("there is nothing like it", None)
    row, text = alike
    return Miss(f"nearest is line {row}: `{text}`", row)


def _elsewhere(search: Search, run: Run, line: Line) -> Miss | None:
    """A statement that would fit, but for its place or for what the holes stand for."""
    rows = search.tree.lines
    for env, what in ((run.env, ""), ({}, " with other names")):
        for site in run.places:
            if any(True for _ in search.fitter.fit(line.node, site, env)):
                row = rows.get(id(site.node), 0)
                early = site.low < run.reach.after
                why = "but before what the sketch has above it" if early else "but elsewhere"
                return Miss(f"line {row} fits{what}{', ' + why if not what else ''}", row or None)
    return None


def _part(search: Search, run: Run, line: Line) -> Miss | None:
    """A statement of the kind that has what is asked of it, and more beside it."""
    said = [getattr(line.node, name, None) for name in ("test", "value", "exc")]
    if not isinstance(line.node, cst.If | cst.While | cst.Return | cst.Raise):
        return None
    for asked in said:
        if not isinstance(asked, cst.BaseExpression) or isinstance(asked, cst.Name):
            continue
        for site in run.places:
            if type(site.node) is type(line.node) and any(
                True for _ in search.fitter.fit(cst.Expr(asked), site, {})
            ):
                row = search.tree.lines.get(id(site.node), 0)
                more = f"`{code(site.node)}` has more than that; a `_` can stand for the rest"
                return Miss(f"line {row} {more}", row or None)
    return None


def _alike(tree: Tree, node: cst.CSTNode, among: Sequence[cst.CSTNode]) -> tuple[int, str] | None:
    """The line and text of the statement whose source is most like a sketch's line."""
    source = [row.decode(errors="replace") for row in trees.rows(tree.data)]
    want = " ".join(_EMPTY.code_for_node(node).split())[:400]
    matcher = difflib.SequenceMatcher(None, "", want, autojunk=False)
    best: tuple[float, int] | None = None
    for row in sorted({tree.lines[id(one)] for one in among if id(one) in tree.lines}):
        matcher.set_seq1(" ".join(" ".join(source[row - 1 : row + 4]).split())[: len(want)])
        if best is not None and matcher.quick_ratio() <= best[0]:
            continue
        ratio = matcher.ratio()
        if best is None or ratio > best[0]:
            best = ratio, row
    return None if best is None else (best[1], _short(_shown(source, best[1])))


def _shown(source: Sequence[str], row: int) -> str:
    """Return a line of a text, with those after it where it only opens a bracket."""
    text = source[row - 1].strip()
    if not text.endswith(("(", "[", "{")):
        return text
    more = " ".join(" ".join(source[row : row + 4]).split())
    return text + re.sub(r" (?=[)\]}])", "", more)


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 4].rstrip() + " ..."
