"""Names that a touched file uses and nothing defines, and what its ``__all__`` lists in vain."""

from __future__ import annotations

from collections.abc import Iterator

from patchq.engine import builtin, lookup, modules, spelling
from patchq.engine.lookup import Missing
from patchq.engine.outlines import Outline
from patchq.engine.resolver import Resolver
from patchq.engine.verdict import Finding

# More than these of one file are one fault, and would take long to say.
_MOST = 50


def check(
    above: Resolver, below: Resolver, origin: dict[str, str], python: str | None
) -> Iterator[tuple[Finding, bool]]:
    """Yield the names that no file around defines; True where it was so before.

    `origin`: the path that each renamed file had below the patch. `python`: the
    ``x.y`` whose builtins count, None for any.
    """
    for path in above.world.texts:
        if not path.endswith(".py"):
            continue
        lost = list(_lost(above, path, python))
        if not lost:
            continue
        had = {(one.where, one.name) for one in _lost(below, origin.get(path, path), python)}
        old = [one for one in lost if (one.where, one.name) in had]
        new = [one for one in lost if (one.where, one.name) not in had]
        for one in (*new[:_MOST], *old[:_MOST]):
            yield _finding(above, path, one), (one.where, one.name) in had


def _lost(side: Resolver, path: str, python: str | None) -> Iterator[Missing]:
    """The names of one file that are not there, each once in a class or def."""
    data = side.world.texts.get(path)
    found = lookup.names(data) if data is not None else None
    if found is None or data is None:
        return
    born = builtin.names(None if b"version_info" in data else python)
    told: set[tuple[str, str]] = set()
    for one in found.missing:
        if (one.where, one.name) in told or one.name in found.asked:
            continue
        told.add((one.where, one.name))
        elsewhere = one.name in born or found.made or _starred(side, path, found.outline, one.name)
        if one.local or not elsewhere:
            yield one
    yield from _listed(side, path, found)


def _starred(side: Resolver, path: str, outline: Outline, name: str) -> bool:
    return any(side.star(path, level, module, name) for level, module in outline.stars)


def _listed(side: Resolver, path: str, found: lookup.Names) -> Iterator[Missing]:
    """What ``__all__`` lists, and ``import *`` would fail for."""
    for name, line in (found.outline.listed or {}).items():
        if name in found.outline.names or found.outline.anything:
            continue
        if side.missing(path, (modules.module(path), name, False)) is not None:
            yield Missing(name, line, "", "`__all__` lists it")


def _finding(side: Resolver, path: str, one: Missing) -> Finding:
    why = one.why
    if not why:
        data = side.world.texts[path]
        found = lookup.names(data) if data is not None else None
        known = (found.known if found else frozenset()) | builtin.names()
        near = spelling.close(one.name, known - {one.name})
        why = f"the nearest name is `{near}`" if near else ""
    return Finding("undefined", path, one.line, one.where, f"nothing defines `{one.name}`", why)
