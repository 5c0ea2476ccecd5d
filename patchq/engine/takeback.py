"""What guards each hunk of a patch: R16, its second half.

Every hunk is taken back alone: the rest of the patch is applied to the tree below,
and judged. Then a claim of the sketch or an always-on check must break, or the rest
does not apply; a hunk that breaks nothing is *unguarded*. What no sketch can speak of
(files that are not Python, comments, docstrings, layout, modes) is so by nature.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from patchq.engine import apply, imports, judge, lines, sketch, trees
from patchq.engine.sketch import Sketch
from patchq.engine.verdict import Claim, Finding
from patchq.model import FileDiff, Hunk, Patch

# Hunks of one patch that are judged alone; the further ones count as unguarded.
MOST = 500
Texts = Mapping[str, bytes | None]
_PYTHON = (".py", ".pyi")
_NATURE = {
    True: "it changes no code: comments, docstrings, layout",
    False: "a mode or a name, of which no sketch can speak",
}
_NOT_PYTHON = "the file is not Python"
_MOVES = "it only moves statements, and only a def that has them in order can tell"


@dataclass(frozen=True, slots=True)
class Piece:
    """What is taken back at once: hunk `number` (from 1) of a file, or its mode or name (0).

    `line` is where its change begins in the file with the patch, 0 where there is no line.
    """

    path: str
    number: int
    line: int
    heading: str

    def __str__(self) -> str:
        """Return the piece as messages call it."""
        if not self.number:
            return "the file itself"
        return f"hunk {self.number}" + (f" (`{self.heading}`)" if self.heading else "")


@dataclass(frozen=True, slots=True)
class Guard:
    """What breaks without one piece (`by`), or why nothing can (`nature`); else both are empty."""

    piece: Piece
    by: str = ""
    nature: str = ""

    @property
    def bare(self) -> bool:
        """True where nothing fails, and something could."""
        return not self.by and not self.nature

    def to_json(self) -> dict[str, object]:
        """Return the guard as ``lint --json`` shows it."""
        word = "guarded" if self.by else "by nature" if self.nature else "unguarded"
        return {
            "path": self.piece.path,
            "hunk": self.piece.number,
            "line": self.piece.line,
            "heading": self.piece.heading,
            "word": word,
            "by": self.by or self.nature,
        }

    def finding(self) -> Finding:
        """Return what lint says where nothing guards the piece."""
        message = f"unguarded: {self.piece} can be taken back, and nothing fails"
        why = self.nature or "the sketch asks for nothing that it brings"
        return Finding("unguarded", self.piece.path, self.piece.line, "", message, why)


class Back:
    """One patch on one tree, of which pieces are taken back.

    `tree` gives the files below, `read` the text of untouched ones; `listing` is
    what `judge.judge` calls so. `whole` has every touched text with the patch, or
    says why it does not apply.
    """

    def __init__(
        self,
        patch: Patch,
        tree: Callable[[str], apply.File | None],
        release: str,
        read: Callable[[str], bytes | None],
        *,
        listing: Iterable[str] | None = None,
    ) -> None:
        self.patch, self.tree, self.release, self.read = patch, tree, release, read
        self.listing = listing
        self.whole = self.applied(patch)

    def guards(self, sketch_: Sketch | None) -> Iterator[Guard]:
        """Yield what guards each piece, in the order of the patch.

        Means something only where the whole patch is judged good.
        """
        nature = self.nature
        for count, (piece, rest) in enumerate(pieces(self.patch)):
            guard = self._guard(piece, rest, sketch_) if count < MOST else Guard(piece)
            yield replace(guard, nature=nature) if guard.bare else guard

    @property
    def nature(self) -> str:
        """Why no sketch needs to speak of the patch as a whole; empty where one can."""
        if isinstance(self.whole, str) or not self.patch.diffs:
            return ""
        found = dict.fromkeys(
            self._nature(path, _text(self.tree(path)), data)
            for path, data in self.whole.items()
            if _text(self.tree(path)) != data
        )
        return "" if "" in found else "; ".join(found) or _NATURE[False]

    @staticmethod
    def _nature(path: str, before: bytes | None, after: bytes | None) -> str:
        """Why a sketch cannot tell two texts of one file apart; empty where it can."""
        if not path.endswith(_PYTHON):
            return _NOT_PYTHON
        mine, whole = _says(before), _says(after)
        if mine == whole:
            return _NATURE[True]
        return _MOVES if sorted(mine) == sorted(whole) else ""

    def applied(self, patch: Patch) -> dict[str, bytes | None] | str:
        """Return every touched text as a part of the patch leaves it, or why it does not apply."""
        after = {path: _text(self.tree(path)) for path in self.patch.paths}
        if patch.diffs:
            done = apply.apply_patch(patch, self.tree)
            if isinstance(done, apply.PatchRejected):
                return done.message
            after.update({path: _text(file) for path, file in done.after.items()})
        return after

    def broken(self, rest: Patch, after: Texts, sketch_: Sketch | None) -> str:
        """Return the first thing that fails on the texts `after`, empty where nothing does.

        `rest` are the diffs that made them: their headings are checked.
        """
        for path, data in after.items():
            if data is None or not path.endswith(_PYTHON):
                continue
            fault = trees.python(data)
            # What is newer than this Python is libcst's to read.
            if isinstance(fault, trees.Fault) and isinstance(trees.tree(data), trees.Fault):
                return f"always on, syntax: {path}, {fault}"
        if sketch_ is not None:
            # The whole patch is known to be good: only what differs from it can fail.
            whole = self.whole if isinstance(self.whole, dict) else {}
            sections = (one for one in sketch_.sections if self._differs(one.path, after, whole))
            sketch_ = replace(sketch_, sections=tuple(sections))
            world = imports.World(after, self.read)
            for claim in sketch.judge(sketch_, self.release, world.text, explain=False):
                if not claim.held:
                    return _named(sketch_, claim, sketch.leaves(sketch_, self.release, world.text))
        found = judge.judge(
            {path: _text(self.tree(path)) for path in after},
            after,
            None,
            self.release,
            self.read,
            diffs=rest.diffs,
            listing=self.listing,
        ).findings
        return f"always on, {found[0].kind}: {found[0]}" if found else ""

    @staticmethod
    def _differs(path: str, after: Texts, whole: Texts) -> bool:
        return path in after and after[path] != whole.get(path)

    def _guard(self, piece: Piece, rest: Patch, sketch_: Sketch | None) -> Guard:
        if piece.number and not piece.path.endswith(_PYTHON):
            return Guard(piece, nature=_NOT_PYTHON)
        after = self.applied(rest)
        if isinstance(after, str):
            return Guard(piece, by=f"the rest does not apply without it: {after}")
        by = self.broken(rest, after, sketch_)
        if by:
            return Guard(piece, by=by)
        assert not isinstance(self.whole, str)
        pairs = [(_says(after[path]), _says(self.whole[path])) for path in after]
        if all(mine == whole for mine, whole in pairs):
            return Guard(piece, nature=_NATURE[bool(piece.number)])
        if all(sorted(mine) == sorted(whole) for mine, whole in pairs):
            return Guard(piece, nature=_MOVES)
        return Guard(piece)


def pieces(patch: Patch) -> Iterator[tuple[Piece, Patch]]:
    """Yield each piece of a patch, with the patch that is left without it."""
    for at, diff in enumerate(patch.diffs):
        path = (diff.old if patch.reverse else diff.new) or diff.old or diff.new or ""
        for number, hunk in enumerate(diff.hunks, 1):
            heading = lines.decode(hunk.heading).strip()
            piece = Piece(path, number, _first(hunk, patch.reverse), heading)
            yield piece, _with(patch, at, _without(diff, number))
        if not diff.hunks:
            yield Piece(path, 0, 0, ""), _with(patch, at, None)


def _with(patch: Patch, at: int, diff: FileDiff | None) -> Patch:
    kept = () if diff is None else (diff,)
    return replace(patch, diffs=(*patch.diffs[:at], *kept, *patch.diffs[at + 1 :]))


def _without(diff: FileDiff, number: int) -> FileDiff | None:
    """Return the diff of one file without one hunk; None where it then says nothing."""
    if diff.old is None or diff.new is None:
        return None
    rest = (*diff.hunks[: number - 1], *diff.hunks[number:])
    says = rest or diff.renamed or diff.old_mode != diff.new_mode
    return replace(diff, hunks=rest) if says else None


def _first(hunk: Hunk, reverse: bool) -> int:
    """Return the first changed line of a hunk, as the file has it with the patch."""
    start = hunk.old_start if reverse else hunk.new_start
    same = next((at for at, (mark, _) in enumerate(hunk.lines) if mark != " "), 0)
    return max(start + same, 1)


def _named(sketch_: Sketch, claim: Claim, leaves: Iterable[Claim]) -> str:
    """Return a claim that is false as its line of the sketch; of a def, the line that fails."""
    same = (leaf for leaf in leaves if (leaf.path, leaf.where) == (claim.path, claim.where))
    # Every line may hold alone: then it is their order that does not.
    said = next((leaf for leaf in same if not leaf.held), claim)
    where = f" in {said.where}" if said.where else ""
    return f"{sketch_.name}:{said.line}: `{said.code}`{where}"


def _text(file: apply.File | None) -> bytes | None:
    return None if file is None else file[0]


def _says(data: bytes | None) -> list[str]:
    """Return the statements of a text without comments, docstrings and layout; else its bytes.

    A file that is not there says what an empty one says.
    """
    if data is None:
        return []
    parsed = trees.python(data)
    if isinstance(parsed, ast.Module):
        try:
            return list(_spoken(parsed, ""))
        except RecursionError:
            pass
    return [repr(data)]


def _spoken(node: ast.AST, where: str) -> Iterator[str]:
    """Yield the statements under one, each with its blocks; not those that say nothing (R6)."""
    if isinstance(node, ast.Break | ast.Continue):
        yield f"{where} {type(node).__name__}"
    for name, value in ast.iter_fields(node):
        for part in value if isinstance(value, list) else [value]:
            silent = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
            if silent or isinstance(part, ast.Pass):
                continue
            if isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield from _spoken(part, f"{where}/{name}")
            elif part is not None:
                said = ast.dump(part) if isinstance(part, ast.AST) else repr(part)
                yield f"{where} {type(node).__name__} {name}={said}"
