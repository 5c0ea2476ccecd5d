"""What lint says of one patch of one release: values only, for a person and for a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from patchq.engine.judge import Finding, Verdict
from patchq.engine.takeback import Guard
from patchq.engine.unasked import Unasked
from patchq.errors import PatchqError
from patchq.model import Sha256

# Findings that are mended in the sketch, not in the patch.
_OF_SKETCH = ("idle", "false", "givens", "too-loose")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, where (`line` is 0 where there is none), and what to type."""

    message: str
    path: str = ""
    line: int = 0
    mend: str = ""

    def __str__(self) -> str:
        """Return path, line and message, as compilers write it."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}" if place else self.message

    def to_json(self) -> dict[str, object]:
        """Return the fault as ``--json`` shows it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Judged:
    """One patch of one release: what is wrong, and how many claims its sketch makes.

    `guards`: what breaks without each hunk, where the patch is good as a whole;
    `unasked`: what the sketch does not ask of this release; `nature`: why the patch needs
    no sketch, empty where it needs one.
    """

    release: str
    patch: str
    faults: tuple[Fault, ...]
    claims: int = 0
    reads: Mapping[str, Sha256 | None] | None = None
    verdict: Verdict | None = None
    guards: tuple[Guard, ...] = ()
    unasked: tuple[Unasked, ...] = ()
    nature: str = ""

    @property
    def word(self) -> str:
        """Whether it is good, and by what; or how many faults it has."""
        if self.faults:
            return "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        if self.nature:
            return "good, and needs no sketch"
        plural = "" if self.claims == 1 else "s"
        kept, count = sum(bool(guard.by) for guard in self.guards), len(self.guards)
        return (
            f"good, {self.claims} claim{plural} false below and true above, "
            f"{kept} of {count} hunk{'' if count == 1 else 's'} guarded"
        )

    @property
    def notes(self) -> Iterator[str]:
        """What is to be known and is no fault."""
        for one in self.unasked:
            yield f"not asked of {self.release}: {one}"
        if self.nature:
            yield f"no sketch can speak of it: {self.nature}"
            return
        for guard in self.guards:
            if guard.nature:
                place = f"{guard.piece.path}:{guard.piece.line or 1}"
                yield f"{place}: {guard.piece} cannot be guarded: {guard.nature}"

    @property
    def lines(self) -> Iterator[str]:
        """What is said of it on a terminal: each fault, and once how it is mended."""
        yield f"{self.release} {self.patch}: {self.word}"
        for said in (*self.faults, *self.notes):
            yield f"    {said}"
        for mend in dict.fromkeys(fault.mend for fault in self.faults if fault.mend):
            yield f"    mend: {mend}"

    def to_json(self) -> dict[str, object]:
        """Return the result as ``--json`` shows it."""
        return {
            "release": self.release,
            "patch": self.patch,
            "claims": self.claims,
            "faults": [str(fault) for fault in self.faults],
            "details": [fault.to_json() for fault in self.faults],
            "hunks": [guard.to_json() for guard in self.guards],
            "unasked": [one.to_json() for one in self.unasked],
            "nature": self.nature or None,
        }


@dataclass(frozen=True, slots=True)
class Mends:
    """What to type where a patch of a queue is at fault: names of files are in `folder`."""

    folder: str
    release: str
    patch: str
    sketch: str

    @property
    def again(self) -> str:
        """The command that judges the patch again."""
        return f"patchq lint --queue {self.folder} --release {self.release}"

    def fault(self, one: Finding) -> Fault:
        """Return a finding as a fault, with its mend."""
        message = f"{one.message}; {one.why}" if one.why else one.message
        return Fault(message, one.path, one.line, self._mend(one))

    def patched(self, message: str, line: int = 0) -> Fault:
        """Return a fault of the patch itself."""
        path = f"{self.release}/{self.patch}" if line else ""
        return Fault(message, path, line, self._correct(f"{self.release}/{self.patch}"))

    def unread(self, error: PatchqError) -> Fault:
        """Return what makes the patch, or its sketch, unreadable as a fault."""
        line = getattr(error, "line", 0)
        path = self.sketch if line else ""
        return Fault(f"{error.what}: {error.why}", path, line, f"{error.mend}; then: {self.again}")

    def _mend(self, one: Finding) -> str:
        stem = self.patch.removesuffix(".patch").removesuffix(".diff")
        draft = f"patchq sketch {stem} --release {self.release} --queue {self.folder}"
        if not self.sketch and one.kind in ("no-claim", "unguarded"):
            return f"{draft} --write"
        if one.kind in ("no-claim", "unguarded"):
            return f"{draft}, and take from it into {self.folder}/{self.sketch} what is missing"
        name = self.sketch if one.kind in _OF_SKETCH else f"{self.release}/{self.patch}"
        return self._correct(name)

    def _correct(self, name: str) -> str:
        return f"correct {self.folder}/{name}, then: {self.again}"
