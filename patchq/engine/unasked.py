"""What a sketch does not ask of a release, since a mark `# when` leaves it out (R14)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import libcst as cst
from packaging.version import Version

from patchq.engine import nearest, sections, sites
from patchq.engine.sections import Section
from patchq.engine.sketch import Sketch


@dataclass(frozen=True, slots=True)
class Unasked:
    """A statement of a sketch, or a whole section, that does not speak of a release.

    `line` is the sketch's, `when` the specifier that leaves it out.
    """

    path: str
    where: str
    code: str
    line: int
    when: str

    def __str__(self) -> str:
        """Return it as reports name it."""
        where = f" in {self.where}" if self.where else ""
        return f"`{self.code}`{where} (line {self.line}, when {self.when})"

    def to_json(self) -> dict[str, object]:
        """Return it as ``--json`` shows it."""
        return asdict(self)


def unasked(sketch: Sketch, release: str) -> tuple[Unasked, ...]:
    """Return what the marks of a sketch leave out for a release, in its order."""
    version = sections.release_of(release)
    return tuple(one for section in sketch.sections for one in _section(section, version))


def _section(section: Section, version: Version) -> Iterator[Unasked]:
    if section.asked(version):
        yield from _block(section, section.module, "", version)
    elif section.lines:
        line = min(section.lines.values())
        yield Unasked(section.path, "", f"# in {section.path}", line, str(section.when))


def _block(section: Section, body: cst.CSTNode, where: str, version: Version) -> Iterator[Unasked]:
    for node in sections.small(body):
        specs = section.marked(node).when
        out = [spec for spec in specs if not spec.contains(version, prereleases=True)]
        if out:
            line = section.lines.get(id(node), 0)
            yield Unasked(section.path, where, nearest.code(node), line, ", ".join(map(str, out)))
        elif isinstance(node, cst.BaseCompoundStatement):
            inner = where
            if isinstance(node, sites.DEFS):
                inner = f"{where}.{node.name.value}" if where else node.name.value
            yield from _parts(section, node, inner, version)


def _parts(section: Section, node: cst.CSTNode, where: str, version: Version) -> Iterator[Unasked]:
    for part in sites.parts(node):
        if isinstance(part, cst.BaseSuite):
            yield from _block(section, part, where, version)
        else:
            yield from _parts(section, part, where, version)
