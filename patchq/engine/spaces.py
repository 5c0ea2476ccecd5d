"""The namespaces of one Python text: what each binds, and what is looked up where.

Values, filled by `patchq.engine.bindings`, asked by `patchq.engine.lookup`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field


class Kind(enum.Enum):
    """What made a namespace; `TYPES` holds type parameters (PEP 695)."""

    MODULE = enum.auto()
    CLASS = enum.auto()
    FUNCTION = enum.auto()
    COMPREHENSION = enum.auto()
    TYPES = enum.auto()


class Binding(enum.IntFlag):
    """How a name is bound: several ways may be true of one."""

    PLAIN = 1
    # Only a type checker sees it.
    TYPED = 2
    # `except ... as`: gone at the end of the handler.
    CAUGHT = 4
    # `del` and `x += 1`: the name must be there already.
    WEAK = 8


@dataclass(frozen=True, slots=True)
class Use:
    """One name that is looked up, at a 1-based line.

    `typed`: only type checkers look. `guarded`: a NameError is expected. `caught`:
    the names of the `except ... as` around it.
    """

    name: str
    line: int
    typed: bool
    guarded: bool
    caught: frozenset[str]


@dataclass(eq=False, slots=True)
class Space:
    """One namespace; `where` is the qualified name of its class or def, "" for the module."""

    kind: Kind
    parent: Space | None
    where: str
    # The innermost class, whose name mangles `__private` names.
    private: str = ""
    bound: dict[str, Binding] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)

    def key(self, name: str) -> str:
        """Return a name as this namespace keeps it.

        Example:
            >>> Space(Kind.FUNCTION, None, "A.f", "_A").key("__x")
            '_A__x'
        """
        if name.startswith("__") and not name.endswith("__") and self.private.strip("_"):
            return f"_{self.private.lstrip('_')}{name}"
        return name

    def bind(self, name: str, how: Binding) -> None:
        """Note that a name is bound here."""
        key = self.key(name)
        self.bound[key] = self.bound.get(key, Binding(0)) | how

    def outwards(self) -> Iterator[Space]:
        """Yield this namespace and those around it, the module last."""
        space: Space | None = self
        while space is not None:
            yield space
            space = space.parent
