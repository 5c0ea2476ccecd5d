r"""Foreign patches as they go on a tree: the files that are meant, at their exact places.

Pure: the tree is a function. A patch that fits as it is keeps its bytes; else its diff is
written anew for ``-p1``, with what was done to it in notes. All that stands against a patch
is said at once, and what would help.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from patchq.agent import protocol
from patchq.engine import apply, diff, landing, patchtext
from patchq.engine.apply import File
from patchq.engine.cuts import Cut
from patchq.engine.fileheader import PatchFormatError
from patchq.engine.landing import Tree
from patchq.engine.locating import Failed
from patchq.errors import ConflictError, UsageError
from patchq.model import FileDiff
from patchq.queue import foreign, sifting
from patchq.queue.foreign import Found, Given
from patchq.queue.sifting import Shipped, Sifted


@dataclass(frozen=True, slots=True)
class Wish:
    """How foreign patches are to be put on: ``-pN`` (None: found out), fuzz, ``-R``, left out."""

    strip: int | None = None
    fuzz: int = 0
    reverse: bool = False
    leave_out: tuple[str, ...] = ()
    verb: str = "import"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of foreign patches is meant: files of each, how many folders to strip, and notes."""

    source: str
    meant: tuple[tuple[Given, Sifted], ...]
    notes: tuple[str, ...]
    strip: int
    wish: Wish
    where: str

    def command(self, options: str) -> str:
        """Return the command to type for the same with other options."""
        return _command(self.wish.verb, self.source, options)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that is meant."""
        cuts = [one for _, sifted in self.meant for one in sifted.kept]
        names = [sifting.stripped(n, self.strip) for one in cuts for n in (one.old, one.new)]
        return tuple(dict.fromkeys(n for n in names if n and not protocol.unsafe(n)))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A patch as the series gets it, for ``-p1``; `files` is what the tree has above it."""

    name: str
    header: bytes
    text: bytes
    notes: tuple[str, ...]
    files: dict[str, File | None]


def choose(found: Found, shipped: Shipped, wish: Wish, *, where: str) -> Chosen:
    """Return what of some patches is meant for a tree; `where` is what it is, for messages.

    Raises:
        UsageError: ``-p`` is not to be found out, or nothing is left of any patch.
        CompiledSource: something would be missed.
    """
    every = [one for patch in found.patches for one in patch.cuts]
    command = partial(_command, wish.verb, found.source)
    sifting.matched(every, wish.leave_out, source=found.source)
    notes = list(found.notes)
    strip = wish.strip
    if strip is None:
        strip, said = sifting.level(
            every, shipped, source=found.source, where=where, command=command
        )
        notes += [said] if said else []
    meant: list[tuple[Given, Sifted]] = []
    refused: list[str] = []
    for patch in found.patches[::-1] if wish.reverse else found.patches:
        sifted = sifting.sift(patch.cuts, patch.rows, shipped, strip, wish.leave_out)
        refused += sifted.refused
        notes += _left(patch, sifted, where)
        if sifted.kept:
            meant.append((patch, sifted))
            made = [sifting.stripped(one.new, strip) for one in sifted.kept]
            shipped = shipped.with_paths(path for path in made if path is not None)
        elif not sifted.refused:
            notes.append(f"{patch.name}: nothing of it is left; not imported")
    if refused:
        raise sifting.refusal(refused, source=found.source, where=where, command=command)
    if not meant:
        raise UsageError(
            f"nothing of {found.source} is left to import",
            why="\n".join(notes),
            mend=f"see what {found.source} changes, and in which distribution",
        )
    return Chosen(found.source, tuple(meant), tuple(notes), strip, wish, where)


def all_of(found: Found, wish: Wish, *, where: str) -> Chosen:
    """Return patches of which every file is meant, as on a plain tree; ``-p1`` if not told."""
    meant = tuple((patch, Sifted(patch.cuts, (), (), ())) for patch in found.patches)
    meant = meant[::-1] if wish.reverse else meant
    strip = 1 if wish.strip is None else wish.strip
    return Chosen(found.source, meant, found.notes, strip, wish, where)


def diffs(
    chosen: Chosen, patch: Given, sifted: Sifted
) -> tuple[tuple[FileDiff, ...], tuple[str, ...]]:
    """Return what a patch says of the files that are meant, and what was cured in its text.

    Raises:
        PatchFormatError: it cannot be read.
    """
    text, cured = _meant(patch, sifted.kept)
    return diff.parse(text, name=patch.source, strip=chosen.strip)[1], cured


def fit(chosen: Chosen, tree: Callable[[str], Tree]) -> Iterator[Fitted]:
    """Yield the patches as they go on a tree: asked for each, by its name, when it is its turn.

    Raises:
        ConflictError: a patch does not fit, with every reason.
        PatchFormatError: it cannot be read.
    """
    for patch, sifted in chosen.meant:
        yield _fitted(chosen, patch, sifted, tree(patch.name))


def _command(verb: str, source: str, options: str) -> str:
    """Return the command to type for a patch with other options."""
    given = "< PATCH" if source == "-" else shlex.quote(source)
    return f"patchq {verb}{options} {given}"


def _left(patch: Given, sifted: Sifted, where: str) -> list[str]:
    out = []
    if sifted.left:
        out.append(f"{patch.name}: left out, {where} does not have them: {', '.join(sifted.left)}")
    if sifted.asked:
        out.append(f"{patch.name}: left out on demand: {', '.join(sifted.asked)}")
    return out


def _fitted(chosen: Chosen, patch: Given, sifted: Sifted, tree: Tree) -> Fitted:
    """Return one patch as it goes on a tree."""
    wish = chosen.wish
    given, cured = diffs(chosen, patch, sifted)
    landed = landing.land(given, tree, fuzz=wish.fuzz, reverse=wish.reverse)
    if landed.done is None:
        raise conflict(chosen, patch, landed, given, tree)
    whole = (
        len(sifted.kept) == len(patch.cuts)
        and chosen.strip == 1
        and not cured
        and not wish.reverse
    )
    if landed.exact and whole:
        written = patch.header + b"".join(patch.rows[patch.cuts[0].start : patch.kept])
    else:
        files = landed.done.after
        written = patchtext.patch(patch.header, landed.before, files, landed.renamed)
        cured += _between(patch)
    _check(patch, written, tree, landed.done)
    notes = [f"{patch.name}: {note}" for note in cured]
    for one in landed.files:
        notes += [f"{one.path}: {line}" for line in one.moved]
        if one.ends:
            notes.append(f"{one.path}: the line ends of the patch were not those of the file")
    return Fitted(patch.name, patch.header, written, tuple(notes), dict(landed.done.after))


def _between(patch: Given) -> tuple[str, ...]:
    """Return what is to be said of lines between the diffs, which a diff written anew has not."""
    lost = [
        row for one in patch.cuts[:-1] for row in patch.rows[one.last : one.end] if row.strip()
    ]
    return (f"{len(lost)} lines between its diffs are left out",) if lost else ()


def _meant(patch: Given, kept: Sequence[Cut]) -> tuple[bytes, tuple[str, ...]]:
    """Return a patch's diff with blank lines for what is not meant, and what was cured in it.

    Line numbers stay. An absolute name is read as GNU patch does: its root is one folder.
    """
    rows = [b"\n"] * patch.cuts[0].start + list(patch.rows[patch.cuts[0].start :])
    notes: dict[str, None] = {}
    meant = {one.start for one in kept}
    for one in patch.cuts:
        if one.start not in meant:
            rows[one.start : one.end] = [b"\n"] * (one.end - one.start)
            continue
        for at in range(one.start, one.end):
            row = rows[at]
            if one.returns and row.endswith(b"\r\n"):
                rows[at] = row = row[:-2] + b"\n"
                notes[foreign.RETURNS] = None
            rooted = row.startswith((b"--- /", b"+++ /")) and at < one.start + 8
            if rooted and not row[4:].startswith(b"/dev/null"):
                rows[at] = row[:4] + b"a" + row[4:]
                notes["its names began at the root of a machine"] = None
    return b"".join(rows), tuple(notes)


def _check(patch: Given, written: bytes, tree: Tree, done: apply.PatchApplied) -> None:
    """Refuse a patch that would not read as it was meant: its header looks like a diff."""
    header, read = diff.parse(written, name=patch.name)
    again = landing.land(read, tree)
    if header != patch.header or again.done is None or again.done.after != done.after:
        raise PatchFormatError(
            f"{patch.source}: a line above its diff looks like the beginning of one",
            why=f"as {patch.name} it would be read with a header of {len(header)} bytes, "
            f"and it has {len(patch.header)}",
            mend=f"indent that line in {patch.source}",
        )


def conflict(
    chosen: Chosen,
    patch: Given,
    landed: landing.Landing,
    given: Sequence[FileDiff],
    tree: Tree,
) -> ConflictError:
    """Return why a patch does not fit, every reason, with what would help."""
    wish, where = chosen.wish, chosen.where
    reasons = [f"{one.path}: {why}" for one in landed.files for why in one.failures]
    what, mend = f"Patch {patch.name} does not apply to {where}", f"make it anew on {where}"
    if landing.reversible(given, tree, fuzz=wish.fuzz, reverse=wish.reverse):
        what = f"Patch {patch.name} can be reverse-applied"
        reasons.insert(0, "what it brings is there already; nothing is turned round unasked")
        turn = "" if wish.reverse else " -R"
        mend = f"do without it; to take it out: {chosen.command(turn)}"
    elif (fuzz := landing.fuzz_needed(given, tree, reverse=wish.reverse)) and fuzz > wish.fuzz:
        mend = f"{chosen.command(f' --fuzz {fuzz}')}   # and look at what it says"
    elif any(one.astray for one in landed.files):
        mend = "correct the place behind its @@, or the class or def that stands there"
    elif any(isinstance(f, Failed) and f.places for one in landed.files for f in one.fates):
        mend = "correct the line number behind the @@ of that hunk"
    return ConflictError(what, why="\n".join(reasons), mend=mend)
