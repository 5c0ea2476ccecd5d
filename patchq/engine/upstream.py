"""Since when upstream has what a patch is for: R15.

A sketch that holds on a pristine release, with a claim, says that the release does
not need the patch. Releases are made one on the other: so the later ones do not
either, and where the sketch no longer holds there, upstream wrote it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from patchq.engine import sketch
from patchq.engine.sketch import Sketch


@dataclass(frozen=True, slots=True)
class Upstream:
    """The first release that has it, and the one that has it in a form of its own, if any."""

    since: str
    rewritten: str | None = None

    def __str__(self) -> str:
        """Return it as tables name it."""
        rest = f", rewritten in {self.rewritten}" if self.rewritten else ""
        return f"upstream since {self.since}{rest}"

    def to_json(self) -> dict[str, object]:
        """Return it as ``--json`` shows it."""
        return {"since": self.since, "rewritten": self.rewritten}


def holds(sketch_: Sketch, release: str, read: Callable[[str], bytes | None]) -> bool | None:
    """Return whether a sketch holds on a pristine release; None where it is not asked.

    Lines that are all `# given` ask nothing.
    """
    claims = sketch.judge(sketch_, release, read, explain=False)
    if all(claim.given for claim in claims):
        return None
    return all(claim.held for claim in claims)


def upstream(found: Iterable[tuple[str, bool | None]]) -> Upstream | None:
    """Return since when upstream has it, for the last release of `found`.

    `found` are releases, oldest first, and what `holds` says of each. A later release
    that is not asked, or where the sketch fails, needs the patch no more than the first.

    Example:
        >>> str(upstream([("0.17.1", False), ("0.18.0", True), ("0.19.0", True)]))
        'upstream since 0.18.0'
        >>> str(upstream([("0.18.0", True), ("0.20.0", False), ("0.21.0", False)]))
        'upstream since 0.18.0, rewritten in 0.20.0'
        >>> upstream([("0.17.1", False), ("0.18.0", None)]) is None
        True
    """
    since = rewritten = None
    for release, held in found:
        if held:
            since, rewritten = since or release, None
        elif held is False and since:
            rewritten = rewritten or release
    return Upstream(since, rewritten) if since else None
