"""Sketches: what must be true of a file, written as the code one wants to see.

A sketch is Python that is parsed, never run; its rules are R0 to R14 of
docs/sketches.md. Light to import: libcst comes when a sketch is loaded.

Modules: `sections` reads a sketch file, `claims` takes it apart, `search` finds
statements, `fitting` and `match` compare one, `nearest` words what failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from patchq.engine.verdict import Claim, Finding

if TYPE_CHECKING:
    from packaging.version import Version

    from patchq.engine.claims import Judge
    from patchq.engine.sections import Section

__all__ = ["Claim", "Sketch", "givens", "judge", "leaves", "load"]

T = TypeVar("T")
Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Sketch:
    """A sketch file, read: its name for messages, and its sections."""

    name: str
    sections: tuple[Section, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path it speaks of, in its order."""
        return tuple(dict.fromkeys(section.path for section in self.sections))


def load(text: bytes, *, name: str) -> Sketch:
    """Read a sketch file; `name` is how messages call it.

    Raises: SketchError, with the line, where the text is no sketch.
    """
    from patchq.engine import sections

    return Sketch(name, sections.parse(text, name=name))


def judge(sketch: Sketch, release: str, read: Read, *, explain: bool = True) -> tuple[Claim, ...]:
    """Judge every claim on the files that `read` gives; () is: not asked.

    `explain=False` leaves out the nearest misses, which cost more than the search.
    """
    return tuple(_judge(sketch, release, read, lambda one: one.claims(), explain))


def leaves(sketch: Sketch, release: str, read: Read) -> tuple[Claim, ...]:
    """Judge each leaf statement of a def alone under its own headers (R16)."""
    return tuple(_judge(sketch, release, read, lambda one: one.leaves(), False))


def givens(sketch: Sketch, release: str) -> tuple[Finding, ...]:
    """Return the defs that say nothing but `# given` lines, which is refused (R16)."""
    return tuple(
        Finding(
            "givens",
            sketch.name,
            line,
            where,
            f"every line of `def {where}` is given",
            "a def of givens only proves nothing; mark the def itself, or ask for something",
        )
        for line, where in _judge(
            sketch, release, lambda path: None, lambda one: one.givens(), False
        )
    )


def _judge(
    sketch: Sketch, release: str, read: Read, ask: Callable[[Judge], Iterator[T]], explain: bool
) -> Iterator[T]:
    """Ask the same of each section that speaks of the release."""
    from patchq.engine import claims, sections, trees

    version: Version = sections.release_of(release)
    for section in sketch.sections:
        if section.asked(version):
            data = read(section.path)
            tree = None if data is None else trees.tree(data)
            try:
                yield from tuple(ask(claims.Judge(section, tree, version, explain=explain)))
            except RecursionError:
                deep = trees.too_deep(data or b"")
                yield from ask(claims.Judge(section, deep, version, explain=explain))
