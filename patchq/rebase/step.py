"""What became of each patch of a rebase: values only."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class Word(enum.Enum):
    """How a patch came to another release, or why not."""

    EXACT = "exact"
    MOVED = "moved"
    MERGED = "merged"
    STRUCTURAL = "structural"
    REMEMBERED = "remembered"
    RESOLVED = "resolved"
    UPSTREAM = "upstream"
    UNNEEDED = "not needed"
    SKIPPED = "skipped"
    GONE = "file gone"
    CONFLICT = "conflict"

    @property
    def carried(self) -> bool:
        """True where the new series has the patch."""
        return self not in _LEFT_OUT and not self.stuck

    @property
    def stuck(self) -> bool:
        """True where a person must say what is right."""
        return self in (Word.GONE, Word.CONFLICT)


_LEFT_OUT = (Word.UPSTREAM, Word.UNNEEDED, Word.SKIPPED)


@dataclass(frozen=True, slots=True)
class Step:
    """One patch of a rebase, as reports and the state on disk have it.

    `proofs`: what shows that upstream has it, or part of it; `flags`: open choices, to be
    reviewed; `reasons`: why it is a conflict; `changed`: how the new patch differs from
    the old one, as a diff of diffs; `unasked`: what its sketch does not ask of the release;
    `since`: the first release that is known to have it.
    """

    name: str
    word: Word
    detail: str = ""
    proofs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    changed: str = ""
    unasked: tuple[str, ...] = ()
    since: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the step as ``--json`` shows it and the state keeps it."""
        return {
            "patch": self.name,
            "word": self.word.value,
            "detail": self.detail,
            **{name: list(getattr(self, name)) for name in _LISTS},
            "changed": self.changed,
            "since": self.since,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Step:
        """Return the step that `to_json` wrote."""
        lists = {name: tuple(map(str, _rows(value, name))) for name in _LISTS}
        word = Word(value["word"])
        detail, changed, since = (str(value[name]) for name in ("detail", "changed", "since"))
        name = str(value["patch"])
        return cls(name, word, detail, changed=changed, since=since, **lists)


_LISTS = ("proofs", "flags", "reasons", "unasked")


def _rows(value: Mapping[str, object], name: str) -> list[object]:
    rows = value[name]
    if not isinstance(rows, list):
        raise TypeError(f"{name} is no list")
    return rows
