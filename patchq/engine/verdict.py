"""What a judgement says: claims of a sketch, findings of the always-on checks.

Values only, light to import: the verdict cache and the reports read them without
loading a parser. Who makes them: `patchq.engine.sketch` and `patchq.engine.judge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

LOOSE = "too loose: name the thing"


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a sketch says of a file, and whether it is so.

    `where` is the qualified name of its scope, "" for the module; `line` is the
    1-based line of the sketch file; `at` the line of the judged file that comes
    nearest. `given` lines are context: they must hold, and prove nothing.
    """

    path: str
    where: str
    code: str
    line: int
    held: bool
    given: bool = False
    nearest: str = ""
    at: int | None = None

    @property
    def loose(self) -> bool:
        """True where the search was given up: what is asked fits in too many ways."""
        return not self.held and self.nearest.endswith(LOOSE)


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault that an always-on check, or the lint, found.

    `kind`: syntax, import, undefined, duplicate, enclosing; from the lint: idle, false, givens,
    no-claim, too-loose. `line` is 1-based in `path`, 0 where there is none.
    """

    kind: str
    path: str
    line: int
    where: str
    message: str
    why: str = ""

    def __str__(self) -> str:
        """Return path, line and message, as compilers write it."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of one patch: its sketch below and above it, and the checks.

    `below` and `above` are the same claims in the same order, judged on the
    texts before and after the patch; so are the leaves, which are the single
    statements of each def, judged alone. `findings` are new with the patch,
    `old_findings` were there before it. `reads`: untouched paths consulted.
    `notes` are what only the lint says of the sketch (defs of givens only);
    `sketch` is its name, empty where the patch has none.
    """

    below: tuple[Claim, ...] = ()
    above: tuple[Claim, ...] = ()
    findings: tuple[Finding, ...] = ()
    old_findings: tuple[Finding, ...] = ()
    reads: tuple[str, ...] = ()
    leaves_below: tuple[Claim, ...] = ()
    leaves_above: tuple[Claim, ...] = ()
    notes: tuple[Finding, ...] = ()
    sketch: str = ""

    @property
    def holds(self) -> bool:
        """True where every claim holds above the patch and no check found a new fault."""
        return not self.findings and all(claim.held for claim in self.above)

    @property
    def upstream(self) -> bool:
        """True where the text below the patch has all of it already, and something is asked."""
        return bool(self.below) and all(claim.held for claim in self.below)

    def to_json(self) -> dict[str, object]:
        """Return the verdict as the cache has it."""
        return {
            **{name: [asdict(claim) for claim in getattr(self, name)] for name in _CLAIMS},
            **{name: [asdict(found) for found in getattr(self, name)] for name in _FINDINGS},
            "reads": list(self.reads),
            "sketch": self.sketch,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Verdict:
        """Return the verdict that `to_json` wrote."""
        # As `asdict` wrote them; a row with other keys is a TypeError, which is right.
        claims = {
            name: tuple(Claim(**row) for row in _rows(value, name))  # type: ignore[arg-type]
            for name in _CLAIMS
        }
        found = {
            name: tuple(Finding(**row) for row in _rows(value, name))  # type: ignore[arg-type]
            for name in _FINDINGS
        }
        reads = value["reads"]
        assert isinstance(reads, list)
        return cls(**claims, **found, reads=tuple(reads), sketch=str(value["sketch"]))  # type: ignore[arg-type]  # two kinds of rows


_CLAIMS = ("below", "above", "leaves_below", "leaves_above")
_FINDINGS = ("findings", "old_findings", "notes")


def _rows(value: Mapping[str, object], name: str) -> list[dict[str, object]]:
    rows = value[name]
    assert isinstance(rows, list)
    return rows
