"""The sketch that a diff implies, by the product's own judgement of it.

Every difference is tried in its forms, from what says the least, till one is false
below the patch and true above; what statements are not needed to guard their hunk
are left out again. A hunk that nothing guards is named.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from patchq.engine import apply, imports, judge, members, sections, sketch, takeback, trees
from patchq.engine.implied import DEFS, SAYS_NOTHING, Form, Item, stub
from patchq.engine.takeback import Back, Guard
from patchq.engine.verdict import Claim
from patchq.model import Patch

# A sketch is read by people: of a larger patch the further hunks stay unguarded.
_MOST = 200
_CLAUSE = re.compile(r"(elif|else|except|finally)\b")
_MARK = re.compile(r"^( *)__(given|absent)__$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Draft:
    """A sketch's text, and what guards each hunk; `text` is empty where nothing can be asked."""

    text: bytes
    guards: tuple[Guard, ...]

    @property
    def bare(self) -> tuple[Guard, ...]:
        """The hunks that nothing guards, those that nothing can guard too."""
        return tuple(guard for guard in self.guards if not guard.by)


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """One item in the form that is asked of a file."""

    path: str
    item: Item
    form: Form


@dataclass(slots=True)
class _Place:
    """A class or def of the sketch while it is written."""

    node: ast.stmt | None
    line: int
    held: list[tuple[int, Form | _Place]] = field(default_factory=list)
    inner: dict[int, _Place] = field(default_factory=dict)


def draft(back: Back, patch: Patch, *, name: str = "draft.pyi") -> Draft:
    """Return the sketch that `patch` implies, whose pieces `back` takes back.

    `patch` applies to the tree of `back`, and is not one that is applied in reverse:
    see `forward`.
    """
    return _Drafting(back, patch, name).draft()


def forward(patch: Patch) -> Patch:
    """Return a patch without ``-R`` that does what this one does."""
    if not patch.reverse:
        return patch
    diffs = tuple(apply.reversed_diff(diff) for diff in reversed(patch.diffs))
    return replace(patch, diffs=diffs, reverse=False)


class _Drafting:
    def __init__(self, back: Back, patch: Patch, name: str) -> None:
        self.back, self.patch, self.name = back, patch, name
        whole = back.whole
        assert not isinstance(whole, str), "the patch applies"
        self.after = whole
        self.before = {path: file and file[0] for path in whole for file in (back.tree(path),)}
        self.pieces = list(takeback.pieces(patch))

    def draft(self) -> Draft:
        """Choose the forms, add what is needed, leave out what is not."""
        found, spare = self._items()
        chosen: list[_Asked] = []
        for path, item in found[:_MOST]:
            self._add(chosen, path, item)
        guards = self._guards(chosen)
        for number, guard in enumerate(guards):
            if not guard.by and not guard.nature:
                added = self._spare(chosen, spare, number)
                guards = self._guards(chosen) if added else guards
        fewer = self._fewer(chosen, guards)
        if fewer is not chosen:
            guards = self._guards(fewer)
        return Draft(self._text(fewer) if fewer else b"", tuple(guards))

    def _items(self) -> tuple[list[tuple[str, Item]], list[tuple[str, Item]]]:
        found: list[tuple[str, Item]] = []
        spare: list[tuple[str, Item]] = []
        for path, data in self.after.items():
            if data is None or not path.endswith((".py", ".pyi")):
                continue
            if isinstance(trees.python(data), trees.Fault):
                continue  # newer than this Python, or too large: its hunks stay unguarded
            try:
                for out, said in zip(
                    (found, spare), members.items(self.before[path], data), strict=True
                ):
                    out += [(path, item) for item in said]
            except (SyntaxError, ValueError, RecursionError):
                continue
        return found, spare

    def _add(self, chosen: list[_Asked], path: str, item: Item) -> bool:
        """Ask for an item in the first form that can fail, alone and beside those of its scope."""
        beside = [one for one in chosen if one.path == path and one.item.scope == item.scope]
        for form in item.forms:
            one = _Asked(path, item, form)
            if self._good([one]) and (not beside or self._good([*beside, one])):
                chosen.append(one)
                return True
        return False

    def _good(self, asked: Sequence[_Asked]) -> bool:
        """Return whether lint finds no fault with what is asked."""
        try:
            parsed = sketch.load(self._text(asked), name=self.name)
        except (sections.SketchError, ValueError, RecursionError):
            return False
        sides: list[tuple[tuple[Claim, ...], tuple[Claim, ...]]] = []
        for texts in (self.after, self.before):
            world = imports.World(texts, self.back.read)
            release = self.back.release
            claims = sketch.judge(parsed, release, world.text, explain=False)
            sides.append((claims, sketch.leaves(parsed, release, world.text)))
            if not sides[1:] and not (claims and all(claim.held for claim in claims)):
                return False
        (above, leaves_above), (below, leaves_below) = sides
        verdict = judge.Verdict(
            below=below, above=above, leaves_below=leaves_below, leaves_above=leaves_above,
            sketch=self.name,
        )  # fmt: skip
        return not judge.lint(verdict) and not sketch.givens(parsed, self.back.release)

    def _guards(self, chosen: Sequence[_Asked]) -> list[Guard]:
        parsed = sketch.load(self._text(chosen), name=self.name) if chosen else None
        return list(self.back.guards(parsed))

    def _spare(self, chosen: list[_Asked], spare: list[tuple[str, Item]], number: int) -> bool:
        """Add what is gone or has moved in a hunk that is not guarded yet."""
        return any(
            self._add(chosen, path, item)
            for path, item in spare
            if number in self._hunks(path, item)
        )

    def _hunks(self, path: str, item: Item) -> set[int]:
        """Return the numbers of the pieces in whose lines an item is."""
        out = set()
        for number, (piece, _) in enumerate(self.pieces):
            if piece.path == path:
                added, gone = self._lines(number)
                if item.lines & added or item.gone & gone:
                    out.add(number)
        return out

    def _lines(self, number: int) -> tuple[set[int], set[int]]:
        """Return the lines that a hunk adds, and those that it takes away."""
        piece, _ = self.pieces[number]
        added: set[int] = set()
        gone: set[int] = set()
        for diff in self.patch.diffs:
            if piece.path not in (diff.new, diff.old) or not 0 < piece.number <= len(diff.hunks):
                continue
            shift = sum(one.new_count - one.old_count for one in diff.hunks[: piece.number - 1])
            hunk = diff.hunks[piece.number - 1]
            old = hunk.old_start + (not hunk.old_count)
            new = old + shift
            for mark, _ in hunk.lines:
                if mark == "+":
                    added.add(new)
                elif mark == "-":
                    gone.add(old)
                new, old = new + (mark != "-"), old + (mark != "+")
        return added, gone

    def _fewer(self, chosen: list[_Asked], guards: Sequence[Guard]) -> list[_Asked]:
        """Leave out the statements without which every hunk is guarded as before."""
        hunks = {one: self._hunks(one.path, one.item) for one in chosen}
        for one in sorted(chosen, key=lambda one: (len(one.item.lines), one.item.line)):
            if not one.item.loose:
                continue
            rest = [other for other in chosen if other is not one]
            others = {number for other in rest for number in hunks[other]}
            if hunks[one] <= others and all(self._kept(rest, n, guards) for n in hunks[one]):
                chosen = rest
        return chosen

    def _kept(self, chosen: Sequence[_Asked], number: int, guards: Sequence[Guard]) -> bool:
        """Return whether a hunk that the sketch guards is still guarded by it."""
        mine = f"{self.name}:"
        if not guards[number].by.startswith(mine):
            return True
        parsed = sketch.load(self._text(chosen), name=self.name)
        _, rest = self.pieces[number]
        after = self.back.applied(rest)
        return not isinstance(after, str) and self.back.broken(rest, after, parsed).startswith(
            mine
        )

    def _text(self, asked: Iterable[_Asked]) -> bytes:
        by_path: dict[str, list[_Asked]] = {}
        for one in asked:
            by_path.setdefault(one.path, []).append(one)
        parts = [f"# in {path}\n{written(some)}\n" for path, some in by_path.items()]
        return "\n\n".join(parts).encode(errors="surrogateescape")


def written(asked: Iterable[_Asked]) -> str:
    """Return what is asked of one file, as a sketch has it."""
    top = _Place(None, 0)
    for one in asked:
        place = top
        for node in one.item.scope:
            if id(node) not in place.inner:
                place.inner[id(node)] = _Place(stub(node), node.lineno)
                place.held.append((node.lineno, place.inner[id(node)]))
            place = place.inner[id(node)]
        if one.item.head:
            place.node = copy.copy(one.form[0][1])
            _own(place.node, one.item.scope[-1])
        else:
            place.held.append((one.item.line, one.form))
    module = ast.fix_missing_locations(ast.Module(copy.deepcopy(_statements(top)), []))
    return _MARK.sub(r"\1# \2", _spaced(ast.unparse(module)))


def _spaced(text: str) -> str:
    """Return a text with two blank lines before what begins at column 0 and is a block."""
    out: list[str] = []
    for row in filter(str.strip, text.split("\n")):
        inside = row.startswith(" ")
        opens = row.lstrip().startswith(("@", "class ", "def ", "async def "))
        above = out[-1] if out else ""
        after_block = above.startswith(" ") and not inside and not _CLAUSE.match(row)
        first = not above or above.rstrip().endswith(":") or above.lstrip().startswith(("@", "__"))
        if (opens or after_block) and not first:
            out += [""] if inside else ["", ""]
        out.append(row)
    return "\n".join(out)


def _own(form: ast.stmt, node: ast.stmt) -> None:
    """Give `self` back to the header of a def that only has what is new."""
    if isinstance(form, ast.FunctionDef | ast.AsyncFunctionDef):
        bare = stub(node)
        assert isinstance(bare, ast.FunctionDef | ast.AsyncFunctionDef)
        args = copy.copy(form.args)
        known = {arg.arg for arg in args.args}
        args.args = [*(arg for arg in bare.args.args if arg.arg not in known), *args.args]
        form.args = args


def _statements(place: _Place) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for _, one in sorted(place.held, key=lambda held: held[0]):
        if isinstance(one, _Place):
            node = copy.copy(one.node)
            assert isinstance(node, DEFS)
            node.body = _statements(one) or [SAYS_NOTHING]
            out.append(node)
            continue
        for mark, said in one:
            if mark:
                out.append(ast.Expr(ast.Name(f"__{mark}__", ast.Load())))
            out.append(said)
    return out
