"""Imports inside the distribution that resolve to nothing.

The fault that otherwise surfaces in a worker's log an hour later. Asked are the
imports that the patch adds, and those of touched files from touched files; only
the neighbours that these name are read, and what those take the names from.
Where a touched file loses a name, every import of the touched files is asked:
one may come to it through an untouched neighbour.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from patchq.engine import definitions, modules
from patchq.engine.outlines import Import, Outline
from patchq.engine.resolver import Asked, Resolver, Texts, World
from patchq.engine.verdict import Finding

__all__ = ["World", "check"]


def check(
    above: Resolver, below: Resolver, origin: dict[str, str]
) -> Iterator[tuple[Finding, bool]]:
    """Yield what the touched files import in vain; True where it was so before.

    `origin`: the path that each renamed file had below the patch.
    """
    before, after = below.world.texts, above.world.texts
    tops = {path.split("/")[0].removesuffix(".py") for path in after if path.endswith(".py")}
    all_again = _loses(before, after)
    for path in (path for path in after if path.endswith(".py")):
        was = origin.get(path, path)
        had = _asked(below.world, was, tops)
        for asked, one in _asked(above.world, path, tops).items():
            known = asked in had
            if known and not all_again and not _touched(asked, after):
                continue
            why = above.missing(path, asked)
            if why is not None:
                yield _finding(path, one, why), known and below.missing(was, asked) is not None


def _asked(world: World, path: str, tops: Container[str]) -> dict[Asked, Import]:
    """The imports of one file that stay inside the distribution, by module and name."""
    found: dict[Asked, Import] = {}
    outline = world.outline(path) if path in world.texts else None
    for one in outline.imports if outline else ():
        module = modules.absolute(path, one.level, one.module)
        inside = module is None or module.split(".")[0] in tops
        if inside and not one.guarded:
            found.setdefault((module, one.name, one.typed), one)
    return found


def _loses(before: Texts, after: Texts) -> bool:
    """True where a touched file has a name no longer that it had."""
    for path, data in after.items():
        had = before.get(path)
        if had is None or not path.endswith(".py"):
            continue
        old = definitions.outline(had)
        new = definitions.outline(data) if data is not None else None
        if isinstance(old, Outline) and (
            new is None or (isinstance(new, Outline) and not old.names <= new.names)
        ):
            return True
    return False


def _touched(asked: Asked, after: Texts) -> bool:
    module, name, _ = asked
    if module is None:
        return False
    within = modules.files(f"{module}.{name}") if name else ()
    return any(path in after for path in (*modules.files(module), *within))


def _finding(path: str, one: Import, why: str) -> Finding:
    dotted = "." * one.level + one.module
    said = f"import {dotted}" if one.name is None else f"from {dotted} import {one.name}"
    return Finding("import", path, one.line, one.where, f"`{said}` resolves to nothing", why)
