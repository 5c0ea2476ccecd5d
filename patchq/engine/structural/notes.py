"""What a merge has to say: the choices that it left open, and why it stopped."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Notes:
    """Collects while one text is merged. `words` quoted find the line in the result."""

    flags: list[tuple[str, str]] = field(default_factory=list)
    reasons: list[tuple[str, str]] = field(default_factory=list)

    def flag(self, said: str, words: str) -> None:
        """Note an open choice that was made."""
        if (said, words) not in self.flags:
            self.flags.append((said, words))

    def refuse(self, said: str, words: str) -> None:
        """Note what is left to a human."""
        if (said, words) not in self.reasons:
            self.reasons.append((said, words))

    def told(self, text: str) -> tuple[str, ...]:
        """Return the flags as sentences with their line in the result."""
        return tuple(dict.fromkeys(_placed(said, words, text) for said, words in self.flags))

    def refused(self, ours: str) -> tuple[str, ...]:
        """Return the reasons as sentences with their line in ours."""
        return tuple(dict.fromkeys(_placed(said, words, ours) for said, words in self.reasons))


def _placed(said: str, words: str, text: str) -> str:
    for row in words.strip().splitlines():
        at = text.find(row.strip()) if row.strip() else -1
        if at >= 0:
            return f"line {text.count(chr(10), 0, at) + 1}: {said}"
    return said
