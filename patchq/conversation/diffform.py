"""How the diffs of files are written: git's way, quilt's way, or as a count of lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patchq.engine import cquote, diffstat, lines, quiltdiff, textdiff
from patchq.engine.apply import File
from patchq.errors import UsageError

# A file before and after; None where it is absent.
Sides = tuple[File | None, File | None]
_MODES = {False: 0o100644, True: 0o100755}


@dataclass(frozen=True, slots=True)
class Form:
    """How a diff is written: git's way, or quilt's with a `strip` (its ``-p``).

    `index` and `top` (the name of the tree's folder) are for quilt's way. `width` is that
    of the ``--stat``.
    """

    strip: str | None = None
    context: int = 3
    index: bool = True
    top: str = ""
    width: int = 80
    reverse: bool = False
    sort: bool = False

    def ordered(self, pairs: Mapping[str, Sides]) -> dict[str, Sides]:
        """Return files in the order and direction in which they are shown."""
        paths = sorted(pairs) if self.sort else list(pairs)
        return {path: pairs[path][::-1] if self.reverse else pairs[path] for path in paths}

    def text(self, pairs: Mapping[str, Sides]) -> tuple[str, str | None]:
        """Return the diffs of files, and the binary one at which quilt's form ends, if any.

        Raises:
            UsageError: quilt has no such ``-p``.
        """
        if self.strip is not None and self.strip not in quiltdiff.STRIPS:
            raise UsageError(
                f"Cannot diff patches with -p{self.strip}, please specify -p0, -p1, or -pab "
                "instead",
                why="quilt's patches name a file from the tree's root, or one folder above it",
                mend="patchq diff -p ab",
            )
        out: list[bytes] = []
        for path, sides in pairs.items():
            binary = sides[0] != sides[1] and any(_is_binary(side) for side in sides)
            out.append(self._binary(path, sides) if binary else self._text(path, sides))
            if binary and self.strip is not None:
                return lines.decode(b"".join(out)), path
        return lines.decode(b"".join(out)), None

    def stat(self, pairs: Mapping[str, Sides]) -> tuple[list[str], list[list[object]]]:
        """Return the lines of a ``--stat``, and its rows: path, lines added, lines removed."""
        counts = [
            diffstat.count(path, old and old[0], new and new[0])
            for path, (old, new) in pairs.items()
            if old != new
        ]
        rows: list[list[object]] = [[one.path, one.added, one.removed] for one in counts]
        return diffstat.drawn(counts, self.width), rows

    def _text(self, path: str, sides: Sides) -> bytes:
        old, new = (side and side[0] for side in sides)
        if self.strip is None:
            modes = [None if side is None else _MODES[side[1]] for side in sides]
            return textdiff.unified(
                old, new, path, context=self.context, old_mode=modes[0], new_mode=modes[1]
            )
        return quiltdiff.render(
            old,
            new,
            path,
            strip=self.strip,
            top=self.top,
            context=self.context,
            index=self.index,
        )

    def _binary(self, path: str, sides: Sides) -> bytes:
        there = (sides[0] is not None, sides[1] is not None)
        pair = quiltdiff.names(path, self.strip or "ab", self.top, there)
        if self.strip is None:
            pair = (cquote.quote(pair[0]), cquote.quote(pair[1]))
        return lines.encode(f"Binary files {pair[0]} and {pair[1]} differ\n")


def _is_binary(side: File | None) -> bool:
    return side is not None and quiltdiff.is_binary(side[0])
