"""What an import asks of a module, and what a module has to give: values."""

from __future__ import annotations

from dataclasses import dataclass

IMPLICIT = frozenset(
    {"__name__", "__doc__", "__file__", "__spec__", "__loader__", "__package__", "__path__"}
    | {"__dict__", "__builtins__", "__cached__", "__annotations__"}
)
MADE = frozenset({"globals", "vars", "exec", "setattr"})
WILL_FAIL = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: `from {level dots}{module} import {name}`, or `import {module}`.

    `guarded`: within a `try` whose `except` expects it to fail.
    """

    level: int
    module: str
    name: str | None
    line: int
    where: str
    guarded: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """The imports of one file, at any depth, and the names its module has.

    `stars`: (level, module) of each ``import *``. `anything`: names are made at
    run time. `extended`: the package's `__path__` is changed.
    """

    imports: tuple[Import, ...]
    names: frozenset[str]
    stars: tuple[tuple[int, str], ...]
    anything: bool
    extended: bool
