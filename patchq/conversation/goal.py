"""How far a verb goes: quilt's ``[N|PATCH]`` and ``-a``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from patchq.errors import QuiltError, UsageError

_ENDING = re.compile(r"\.(patch|diff)(\.(gz|bz2|xz|lzma|lz|zst))?$")


@dataclass(frozen=True, slots=True)
class Upto:
    """How far to go: to a patch by name, by a count, all the way, or one step."""

    word: str | None = None
    everything: bool = False

    def __post_init__(self) -> None:
        if self.everything and self.word is not None:
            raise UsageError(
                f"-a and {self.word} do not go together",
                why="-a goes all the way, a number or a patch names another goal",
                mend="leave one of them out",
            )

    def count(self, names: list[str]) -> int | None:
        """Return the number of steps, None where a patch is named or `everything`."""
        if self.word is None:
            return None if self.everything else 1
        return int(self.word) if self.word.isdigit() and self.word not in names else None

    def index(self, names: list[str], where: str, known: Iterable[str] = ()) -> int:
        """Return the place of the named patch in `names`; `known` are those of the series.

        Raises:
            QuiltError: it is not among them.
        """
        word = (self.word or "").removeprefix("patches/")
        fits = _named(word, names)
        if fits:
            return names.index(fits[0])
        every = list(known)
        elsewhere = _named(word, every)
        if every and not elsewhere:
            names, where = every, "in series"
        near = [*elsewhere, *(name for name in names if word in name)]
        word = elsewhere[0] if elsewhere else word
        raise QuiltError(
            f"Patch {word} is not {where}",
            why=f"there are {', '.join(names) or 'no patches'}",
            mend=f"name it whole: {near[0]}" if near else "patchq series",
        )


def _named(word: str, names: list[str]) -> list[str]:
    """Return the names that a word means: whole, as a path, or without its ending."""
    last = word.rsplit("/", 1)[-1]
    whole = [name for name in names if name in (word, last)]
    return whole or [name for name in names if _ENDING.sub("", name) in (word, last)]
