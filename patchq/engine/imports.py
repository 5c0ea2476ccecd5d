"""Imports inside the distribution that resolve to nothing.

The fault that otherwise surfaces in a worker's log an hour later. Asked are the
imports that the patch adds, and those of touched files from touched files; only
the neighbours that these name are read. What the text tree cannot show is not
blamed: a compiled module or a folder without `__init__` leaves no text behind.
So a module that is missing beside a package's `__init__` is a fault only where
`listing` (all installed paths, as RECORD has them) proves it, where the patch
took it away, or where the folder that should hold it is missing too; and a name
that a package lacks only where no module can stand behind it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from patchq.engine import definitions, modules, outlines
from patchq.engine.outlines import Import, Outline
from patchq.engine.verdict import Finding

Read = Callable[[str], bytes | None]
Texts = Mapping[str, bytes | None]
_COMPILED = (".so", ".pyd", ".dylib")


@dataclass(slots=True)
class World:
    """The tree on one side of a patch; what it asks of untouched files is noted in `reads`."""

    texts: Texts
    read: Read
    reads: dict[str, None] = field(default_factory=dict)

    def text(self, path: str) -> bytes | None:
        """Return a file of the tree, None where there is none."""
        if path in self.texts:
            return self.texts[path]
        self.reads[path] = None
        return self.read(path)

    def outline(self, path: str) -> Outline | None:
        """Return the outline of a file, None where it is absent or does not parse."""
        data = self.text(path)
        found = None if data is None else definitions.outline(data)
        return found if isinstance(found, Outline) else None


@dataclass(frozen=True, slots=True)
class Found:
    """Faults that are new with the patch, faults that were there, and what was read."""

    new: tuple[Finding, ...]
    old: tuple[Finding, ...]
    reads: tuple[str, ...]


def check(
    before: Texts, after: Texts, read: Read, *, listing: Iterable[str] | None = None
) -> Found:
    """Resolve what the touched files import, before and after compared."""
    below, above = World(before, read), World(after, read)
    resolver = Resolver(before, above, listing)
    earlier = Resolver(before, below, listing)
    tops = {path.split("/")[0].removesuffix(".py") for path in after if path.endswith(".py")}
    new: list[Finding] = []
    old: list[Finding] = []
    for path in (path for path in after if path.endswith(".py")):
        had = set(_asked(below, path, tops))
        for one in _asked(above, path, tops):
            known = one in had
            if known and not _touched(one, after):
                continue
            why = resolver.missing(path, one)
            if why is not None:
                was = known and earlier.missing(path, one) is not None
                (old if was else new).append(_finding(above, path, one, why))
    return Found(tuple(new), tuple(old), tuple({**above.reads, **below.reads}))


Asked = tuple[str | None, str | None]


def _asked(world: World, path: str, tops: Container[str]) -> dict[Asked, Import]:
    """The imports of one file that stay inside the distribution, by module and name."""
    found: dict[Asked, Import] = {}
    outline = world.outline(path) if path in world.texts else None
    for one in outline.imports if outline else ():
        module = modules.absolute(path, one.level, one.module)
        inside = module is None or module.split(".")[0] in tops
        if inside and not one.guarded:
            found.setdefault((module, one.name), one)
    return found


def _touched(asked: Asked, after: Texts) -> bool:
    module, name = asked
    if module is None:
        return False
    within = modules.files(f"{module}.{name}") if name else ()
    return any(path in after for path in (*modules.files(module), *within))


def _finding(world: World, path: str, asked: Asked, why: str) -> Finding:
    outline = world.outline(path)
    assert outline is not None
    one = next(
        one
        for one in outline.imports
        if not one.guarded and (modules.absolute(path, one.level, one.module), one.name) == asked
    )
    dotted = "." * one.level + one.module
    said = f"import {dotted}" if one.name is None else f"from {dotted} import {one.name}"
    return Finding("import", path, one.line, one.where, f"`{said}` resolves to nothing", why)


class Resolver:
    """Answers whether a module or a name in it is there, for one side of the patch."""

    def __init__(self, before: Texts, world: World, listing: Iterable[str] | None) -> None:
        self.before, self.world = before, world
        self.listing = None if listing is None else tuple(listing)

    def missing(self, path: str, asked: Asked) -> str | None:
        """Return why an import of the file `path` fails; None where it may not."""
        module, name = asked
        if module is None:
            return f"the relative import leads out of the package that {path} is in"
        return self._missing(path, module, name, frozenset())

    def _missing(
        self, path: str, module: str, name: str | None, seen: frozenset[str]
    ) -> str | None:
        first: str | None = None
        found = False
        # The plain file is by far the commoner; where it has the name, no more is read.
        for file in modules.files(module):
            if self.world.text(file) is None:
                continue
            found = True
            if name is None or name == "*" or name in outlines.IMPLICIT:
                return None
            why = self._no_name(path, file, module, name, seen | {module})
            if why is None:
                return None
            first = first or why
        return first if found else self._no_module(module, name)

    def _no_name(
        self, path: str, file: str, module: str, name: str, seen: frozenset[str]
    ) -> str | None:
        outline = self.world.outline(file)
        if outline is None or outline.anything or name in outline.names:
            return None
        for level, star in outline.stars:
            target = modules.absolute(file, level, star)
            if target is None or target in seen:
                continue
            if target.split(".")[0] != module.split(".")[0]:
                return None
            if self._missing(path, target, name, seen) is None:
                return None
        close = difflib.get_close_matches(name, outline.names, 1)
        why = f"{file} defines no {name}" + (f"; it has {close[0]}" if close else "")
        if not file.endswith("/__init__.py"):
            return why
        return why if self._no_submodule(path, file, f"{module}.{name}", outline) else None

    def _no_submodule(self, path: str, file: str, module: str, outline: Outline) -> bool:
        """Return True where a package surely has no module of that name either."""
        name = module.rpartition(".")[2]
        if outline.extended or self._some_text(module):
            return False
        if self._known(module) is not None:
            return not self._known(module)
        if any(self.before.get(one) is not None for one in modules.files(module)):
            return True
        had = self.before.get(file)
        old = definitions.outline(had) if had is not None else None
        if isinstance(old, Outline) and name in old.names:
            return True
        data = self.world.text(path)
        return name[:1].isupper() or (data is not None and definitions.no_module(data, name))

    def _no_module(self, module: str, name: str | None) -> str | None:
        """Return why a module without a text is surely not there, None in doubt."""
        file, package = modules.files(module)
        gone = next((one for one in (file, package) if self.before.get(one) is not None), None)
        if name is not None and self._some_text(f"{module}.{name}"):
            return None
        why = f"there is neither {file} nor {package}"
        if gone is not None:
            return f"{gone} is gone with this patch"
        if self._known(module) is not None:
            return None if self._known(module) else why
        parents = list(_parents(module))
        if not parents or not self._regular(parents[0]):
            return None
        return None if any(self._some_text(parent) for parent in parents[-1:]) else why

    def _known(self, module: str) -> bool | None:
        """Whether the listing has a compiled module or a folder of that name."""
        if self.listing is None:
            return None
        base = module.replace(".", "/")
        return any(
            path.startswith(f"{base}/")
            or (path.startswith(f"{base}.") and path.endswith(_COMPILED))
            for path in self.listing
        )

    def _some_text(self, module: str) -> bool:
        return any(self.world.text(file) is not None for file in modules.files(module))

    def _regular(self, top: str) -> bool:
        """True for a package of this distribution alone, whose folder is not extended."""
        outline = self.world.outline(modules.files(top)[1])
        return outline is not None and not outline.extended


def _parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    for length in range(1, len(parts)):
        yield ".".join(parts[:length])
