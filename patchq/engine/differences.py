"""In what exactly a header, a literal or a branch of a file is not what a sketch asks."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from patchq.engine import match, names, sites
from patchq.engine.budget import Budget, TooLoose
from patchq.engine.fitting import Fitter

_EMPTY = cst.Module([])
_TRIALS = 5_000
# Branches that a message names.
_MOST = 6
Literal = cst.List | cst.Set | cst.Dict
Branch = (
    cst.If | cst.Else | cst.ExceptHandler | cst.ExceptStarHandler | cst.Finally | cst.MatchCase
)


def parameters(p: cst.FunctionDef, t: cst.FunctionDef) -> str:
    """Say which annotation or default of a def is not as the sketch has it, "" if none is."""
    have = {names.star(param) + param.name.value: param for param in names.parameters(t)}
    for param in names.parameters(p):
        there = have.get(names.star(param) + param.name.value)
        if there is None:
            continue
        name = param.name.value
        asked = param.annotation and param.annotation.annotation
        found = there.annotation and there.annotation.annotation
        if not _fits(asked, found):
            return f"{name} is annotated {_code(found)}, not {_code(asked)}"
        if not _fits(param.default, there.default):
            return f"the default of {name} is {_code(there.default)}, not {_code(param.default)}"
    asked = p.returns and p.returns.annotation
    found = t.returns and t.returns.annotation
    if not _fits(asked, found):
        return f"the def is annotated to return {_code(found)}, not {_code(asked)}"
    return ""


def missing(p: cst.CSTNode, t: cst.CSTNode) -> str:
    """Say which items of a literal that an assignment asks for are not there, "" if unknown."""
    if not isinstance(p, cst.Assign | cst.AnnAssign) or not isinstance(
        t, cst.Assign | cst.AnnAssign
    ):
        return ""
    if not any(_fits(one, other) for one in _targets(p) for other in _targets(t)):
        return ""
    asked, found = p.value, t.value
    if not isinstance(asked, Literal) or type(asked) is not type(found):
        return ""
    assert isinstance(found, Literal)
    lacks = [
        _code(item)
        for item in asked.elements
        if not match.is_gap(item) and not any(_fits(item, one) for one in found.elements)
    ]
    return f"it has no {', '.join(f'`{one}`' for one in lacks)}" if lacks else ""


def branches(fitter: Fitter, p: cst.CSTNode, t: cst.CSTNode) -> Iterator[tuple[Branch, Branch]]:
    """Yield each `elif`, `else`, `except` and so on of a sketch's statement with those it fits.

    `t` is the file's statement; an `elif` is compared with every one further down its chain.
    """
    for asked in sites.parts(p):
        if isinstance(asked, Branch):
            for number, found in enumerate(_fitting(fitter, asked, t)):
                yield asked, found
                if not number:
                    yield from branches(fitter, asked, found)


def absent(fitter: Fitter, p: cst.CSTNode, t: cst.CSTNode) -> str:
    """Say which branch of a sketch's statement the file's lacks, "" where it has one of each."""
    there = list(chain(t))
    for asked in sites.parts(p):
        if not isinstance(asked, Branch) or not fitter.blocks.says(asked):
            continue
        fitting = next(_fitting(fitter, asked, t), None)
        if fitting is None:
            has = ", ".join(f"`{branch(one)}`" for one in there[:_MOST]) or "no further branch"
            there_too = isinstance(asked, cst.Else) and cst.Else in map(type, there)
            where = "right behind it" if there_too else "there"
            return f"`{branch(asked)}` is not {where}; it has {has}"
        deeper = absent(fitter, asked, fitting)
        if deeper:
            return deeper
    return ""


def _fitting(fitter: Fitter, asked: Branch, t: cst.CSTNode) -> Iterator[Branch]:
    """The branches of a statement whose header a branch of the sketch fits (R8)."""
    own = {id(part) for part in sites.parts(t)}
    for one in chain(t):
        if type(one) is not type(asked) or not (isinstance(one, cst.If) or id(one) in own):
            continue
        if any(True for _ in fitter.heading(asked, one, {})):
            yield one


def chain(t: cst.CSTNode) -> Iterator[Branch]:
    """Yield the branches of one statement, those of its `elif`s too."""
    todo = [t]
    while todo:
        node = todo.pop()
        for part in sites.parts(node):
            if isinstance(part, Branch):
                yield part
                if isinstance(part, cst.If):
                    todo.append(part)


def branch(node: Branch) -> str:
    """Return the header of a branch, an `elif` as such."""
    text = _code(node.with_changes(leading_lines=())).split("\n")[0].split("  #")[0].strip()
    return f"el{text}" if isinstance(node, cst.If) else text


def _fits(asked: cst.CSTNode | None, found: cst.CSTNode | None) -> bool:
    """Return whether what is asked is there; a search that is given up counts as so."""
    if asked is None:
        return True
    try:
        return found is not None and match.fits(asked, found, Budget(_TRIALS))
    except TooLoose:
        return True


def _targets(node: cst.Assign | cst.AnnAssign) -> list[cst.CSTNode]:
    if isinstance(node, cst.AnnAssign):
        return [node.target]
    return [one.target for one in node.targets]


def _code(node: cst.CSTNode | None) -> str:
    if node is None:
        return "none"
    text = " ".join(_EMPTY.code_for_node(node).strip().rstrip(",").split("\n")[0].split())
    return text if len(text) <= 60 else f"{text[:56]} ..."
