"""Whether a module of the distribution is there, and a name in it.

What the text tree cannot show is not blamed: a compiled module or a folder without
`__init__` leaves no text behind. So a module that is missing beside a package's
`__init__` is a fault only where `listing` (all installed paths, as RECORD has
them) proves it, where the patch took it away, or where the folder that should
hold it is missing too; and a name that a package lacks only where no module can
stand behind it. A file that a build makes (`_version.py`) is never missed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from patchq.engine import definitions, modules, outlines, spelling
from patchq.engine.outlines import Outline

Read = Callable[[str], bytes | None]
Texts = Mapping[str, bytes | None]
# Module, name in it (None for the module itself), and whether type checkers alone ask.
Asked = tuple[str | None, str | None, bool]
_COMPILED = (".so", ".pyd", ".dylib")
_GENERATED = re.compile(r"_?_?version(__)?|.*_pb2(_grpc)?|_?build_?info|_?git_version|_commit_id")
# How many modules one name is followed through; then it is taken to be there.
_LONGEST = 100


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


class Resolver:
    """Answers for one side of the patch; `before` is the tree below the patch."""

    def __init__(self, before: Texts, world: World, listing: Iterable[str] | None) -> None:
        self.before, self.world = before, world
        self.listing = None if listing is None else frozenset(listing)
        self._bases: frozenset[str] | None = None

    def missing(self, path: str, asked: Asked) -> str | None:
        """Return why an import of the file `path` fails; None where it may not."""
        module, name, typed = asked
        if module is None:
            return f"the relative import leads out of the package that {path} is in"
        return self._missing(_Question(path, typed), module, name)

    def star(self, path: str, level: int, module: str, name: str) -> bool:
        """Return True if ``import *`` in the file `path` may bring a name."""
        target = modules.absolute(path, level, module)
        if target is None:
            return False
        if not self._regular(target.partition(".")[0]):
            return True
        return self._brought(_Question(path, False), target, name)

    def _missing(self, ask: _Question, module: str, name: str | None) -> str | None:
        first: str | None = None
        found = False
        # The plain file is by far the commoner; where it has the name, no more is read.
        for file in modules.files(module):
            if self.world.text(file) is None:
                continue
            found = True
            if name is None or name == "*" or name in outlines.IMPLICIT:
                return None
            why = self._no_name(ask, file, module, name)
            if why is None:
                return None
            first = first or why
        return first if found else self._no_module(module, name)

    def _no_name(self, ask: _Question, file: str, module: str, name: str) -> str | None:
        outline = self.world.outline(file)
        if outline is None or outline.anything or len(ask.seen) > _LONGEST:
            return None
        if (file, name) in ask.seen:
            return f"{file} takes {name} from itself, by way of other modules"
        ask.seen.add((file, name))
        if name in outline.names:
            why = self._not_what_it_says(ask, file, name, outline)
            return why if why and self._package_lacks(ask, file, module, name, outline) else None
        for level, star in outline.stars:
            target = modules.absolute(file, level, star)
            if target is None:
                continue
            if target.split(".")[0] != module.split(".")[0]:
                return None
            if self._brought(ask, target, name):
                return None
        near = spelling.close(name, outline.names)
        why = f"{file} defines no {name}" + (f"; it has {near}" if near else "")
        return why if self._package_lacks(ask, file, module, name, outline) else None

    def _not_what_it_says(
        self, ask: _Question, file: str, name: str, outline: Outline
    ) -> str | None:
        """Why a name that a file has is not there all the same."""
        if name in outline.typed and not ask.typed and not outline.stars:
            return f"{file} has {name} under TYPE_CHECKING only"
        if name not in outline.origins:
            return None
        level, source, item = outline.origins[name]
        target = modules.absolute(file, level, source)
        if target is None or target.split(".")[0] != file.split("/")[0].removesuffix(".py"):
            return None
        why = self._missing(ask, target, item)
        return why and f"{file} takes {name} from {target}: {why}"

    def _brought(self, ask: _Question, module: str, name: str) -> bool:
        """Return True if ``import *`` of a module may bring a name."""
        for file in modules.files(module):
            outline = self.world.outline(file)
            if outline is not None and not outline.anything and not outline.brings(name):
                return False
        return self._missing(ask, module, name) is None

    def _package_lacks(
        self, ask: _Question, file: str, module: str, name: str, outline: Outline
    ) -> bool:
        """Return True for a plain module, or a package without a module of that name."""
        if not file.endswith("/__init__.py"):
            return True
        return self._no_submodule(ask.path, file, f"{module}.{name}", outline)

    def _no_submodule(self, path: str, file: str, module: str, outline: Outline) -> bool:
        """Return True where a package surely has no module of that name either."""
        name = module.rpartition(".")[2]
        if outline.extended or self._some_text(module) or _GENERATED.fullmatch(name):
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
        if _GENERATED.fullmatch(module.rpartition(".")[2]):
            return None
        if self._known(module) is not None:
            return None if self._known(module) else why
        parents = list(_parents(module))
        if not parents or not self._regular(parents[0]):
            return None
        return None if any(self._some_text(parent) for parent in parents[-1:]) else why

    def _known(self, module: str) -> bool | None:
        """Whether the listing has a module, compiled or not, or a folder of that name."""
        if self.listing is None:
            return None
        if self._bases is None:
            self._bases = frozenset(_bases(self.listing))
        return module.replace(".", "/") in self._bases

    def _some_text(self, module: str) -> bool:
        return any(self.world.text(file) is not None for file in modules.files(module))

    def _regular(self, top: str) -> bool:
        """True for a package of this distribution alone, whose folder is not extended."""
        outline = self.world.outline(modules.files(top)[1])
        return outline is not None and not outline.extended


@dataclass(frozen=True, slots=True)
class _Question:
    """The file that asks, whether for type checkers only, and which files gave no answer yet."""

    path: str
    typed: bool
    seen: set[tuple[str, str]] = field(default_factory=set)


def _bases(listing: Iterable[str]) -> Iterator[str]:
    """Paths of folders, and of modules without what follows their first dot."""
    for path in listing:
        folder, _, name = path.rpartition("/")
        while folder:
            yield folder
            folder = folder.rpartition("/")[0]
        if path.endswith((*_COMPILED, ".py")):
            base = name.partition(".")[0]
            yield path[: len(path) - len(name)] + base


def _parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    for length in range(1, len(parts)):
        yield ".".join(parts[:length])
