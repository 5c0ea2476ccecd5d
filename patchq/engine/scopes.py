"""Scopes of a judged file, and where in them a statement is sought (R11)."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from patchq.engine import sites


@dataclass(frozen=True, slots=True)
class Scope:
    """A module or class of the file; `node` is None where `trouble` says why there is none."""

    where: str
    node: cst.Module | cst.ClassDef | None
    trouble: str = ""

    @property
    def body(self) -> cst.CSTNode | None:
        """What holds the statements of the scope."""
        return self.node.body if isinstance(self.node, cst.ClassDef) else self.node

    def inner(self, name: str) -> str:
        """Return the qualified name of something in the scope."""
        return f"{self.where}.{name}" if self.where else name


def candidates(node: cst.CSTNode, places: tuple[sites.Site, ...]) -> tuple[sites.Site, ...]:
    """Return where a statement is sought: a def by its name, unless a later one replaces it."""
    if not isinstance(node, cst.FunctionDef):
        return places
    named = [
        site
        for site in places
        if isinstance(site.node, cst.FunctionDef) and site.node.name.value == node.name.value
    ]
    if len(named) < 2:
        return tuple(named)
    parents = {id(site): _holder(site, places) for site in named}
    return tuple(
        site
        for number, site in enumerate(named)
        if not any(
            parents[id(later)] == parents[id(site)]
            and isinstance(later.node, cst.FunctionDef)
            and not later.node.decorators
            for later in named[number + 1 :]
        )
    )


def _holder(site: sites.Site, places: tuple[sites.Site, ...]) -> int:
    """The line of the block that holds a site, as the number of its innermost clause."""
    around = [
        other.low
        for other in places
        if other.low < site.low < other.high and not isinstance(other.node, sites.DEFS)
    ]
    return around[-1] if around else -1
