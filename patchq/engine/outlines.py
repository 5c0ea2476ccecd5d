"""What an import asks of a module, and what a module has to give: values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

IMPLICIT = frozenset(
    {"__name__", "__doc__", "__file__", "__spec__", "__loader__", "__package__", "__path__"}
    | {"__dict__", "__builtins__", "__cached__", "__annotations__"}
)


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: `from {level dots}{module} import {name}`, or `import {module}`.

    `guarded`: within a `try` whose `except` expects it to fail. `typed`: it runs for
    type checkers only.
    """

    level: int
    module: str
    name: str | None
    line: int
    where: str
    guarded: bool
    typed: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """The imports of one file, at any depth, and the names its module has.

    `stars`: (level, module) of each ``import *``. `anything`: names are made at
    run time. `extended`: the package's `__path__` is changed. `typed`: names that
    type checkers alone see. `origins`: names that one import alone brings, as
    (level, module, name there). `listed`: what ``__all__`` lists, by line, None
    where there is none, or only running the module tells; then `hides` says
    whether ``import *`` leaves out what begins with an underscore.
    """

    imports: tuple[Import, ...] = ()
    names: frozenset[str] = frozenset()
    stars: tuple[tuple[int, str], ...] = ()
    anything: bool = False
    extended: bool = False
    typed: frozenset[str] = frozenset()
    origins: Mapping[str, tuple[int, str, str]] = field(default_factory=dict)
    listed: Mapping[str, int] | None = None
    hides: bool = True

    def brings(self, name: str) -> bool:
        """Return True if ``import *`` would bring a name that the module has."""
        if self.listed is not None:
            return name in self.listed
        return not (self.hides and name.startswith("_"))
