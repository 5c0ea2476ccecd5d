"""How far a search came: its steps, and what is kept of each block for messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from patchq.engine import match
from patchq.engine.fitting import Line, Reach
from patchq.engine.match import Bindings
from patchq.engine.sites import Site


class Run:
    """How far one block of a sketch came in one block of the file."""

    def __init__(self, lines: tuple[Line, ...], places: tuple[Site, ...]) -> None:
        self.lines, self.places = lines, places
        self.done: dict[object, list[tuple[Reach, bool]]] = {}
        self.left = len(lines) + 1
        # Lines that are left out of the search, since one of them is hopeless.
        self.short = 0
        self.reach = Reach()
        self.env: Bindings = {}
        self._live: dict[int, list[frozenset[str]]] = {}

    def live(self, count: int) -> list[frozenset[str]]:
        """Return, for each of the first `count` lines, the holes from there on."""
        if count not in self._live:
            names: frozenset[str] = frozenset()
            found = []
            for line in reversed(self.lines[:count]):
                names |= match.holes(line.node)
                found.append(names)
            self._live[count] = found[::-1]
        return self._live[count]

    def note(self, left: int, reach: Reach, env: Bindings) -> None:
        """Keep the first place at which the fewest lines were left."""
        if left + self.short < self.left:
            self.left, self.reach, self.env = left + self.short, reach, env


@dataclass(slots=True)
class Step:
    """One line at one place of the search: the ways it may fit, and whether one has held."""

    reach: Reach
    tried: object
    dead: tuple[object, ...]
    ways: Iterator[tuple[Bindings, Reach]]
    held: bool = False
