"""How far a verb goes: quilt's ``[N|PATCH]`` and ``-a``."""

from __future__ import annotations

from dataclasses import dataclass

from patchq.errors import PatchqError, UsageError


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

    def index(self, names: list[str], where: str) -> int:
        """Return the place of the named patch in `names`."""
        word = (self.word or "").removeprefix("patches/")
        last = word.rsplit("/", 1)[-1]  # a path, as a shell completes it
        fits = [n for n in names if n in (word, last)] or [
            n for n in names if n.removesuffix(".patch").removesuffix(".diff") in (word, last)
        ]
        if fits:
            return names.index(fits[0])
        near = [name for name in names if word in name]
        raise PatchqError(
            f"Patch {word} is not {where}",
            why=f"there are {', '.join(names) or 'no patches'}",
            mend=f"name it whole: {near[0]}" if near else "patchq series",
        )
