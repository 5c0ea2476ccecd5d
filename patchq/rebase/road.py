"""`patchq rebase`: from a series to another release's, with stops where a person must decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.engine import merge
from patchq.engine.sketch import Sketch
from patchq.engine.upstream import Upstream
from patchq.errors import ConflictError, PatchqError, UsageError
from patchq.model import Patch
from patchq.queue import store as queues
from patchq.rebase import carry, files, finish, page
from patchq.rebase.beginning import Places, digest
from patchq.rebase.carry import Carried, Ground
from patchq.rebase.files import FileMerge
from patchq.rebase.memory import MARKERS
from patchq.rebase.progress import Progress, Waiting, damaged
from patchq.rebase.step import Step, Word
from patchq.rebase.tree import Tree
from patchq.releases import since
from patchq.releases.store import Store


@dataclass(frozen=True, slots=True)
class Done:
    """How far a rebase came. `place`: the new series' folder, None where there is none.

    `waiting`: what it waits for; `marked`: headers that were filled in.
    """

    progress: Progress
    place: Path | None = None
    waiting: Step | None = None
    marked: tuple[str, ...] = ()


@contextmanager
def walking(places: Places, asked: Progress) -> Iterator[Walk]:
    """Give the walk of a rebase, with both releases open.

    Raises:
        PatchqError: a release was not fetched, or the old series is not what it was.
    """
    queue = places.queue
    finish.heal(queue, asked.onto)
    if digest(queue, asked.source) != asked.digest:
        raise PatchqError(
            f"the series for {asked.source} is not what it was when the rebase began",
            why="a patch or a sketch of it was edited since",
            mend="take the edit back; or patchq rebase --quit, which keeps the work tree",
        )
    with Store(queue.distribution, places.cache / "releases") as store:
        for release in (asked.source, asked.onto):
            if not store.has(release):
                raise PatchqError(
                    f"the pristine text of {queue.distribution} {release} is not here",
                    why="a series is carried from one release's text to the other's",
                    mend=f"patchq fetch {queue.distribution}=={release}",
                )
        yield Walk(places, asked, store)


class Walk:
    """One pass over the patches: those that are done are put on, the others carried."""

    def __init__(self, places: Places, asked: Progress, store: Store) -> None:
        self.places, self.progress, self.store = places, asked, store
        queue = places.queue
        self.old, self.new = Tree(store, asked.source), Tree(store, asked.onto)
        self.patches = tuple(_sketched(queue, asked, places.queue.folder))
        self.ground = Ground(
            self.old,
            self.new,
            places.memory,
            self._since,
            lambda stem: queue.needs(stem, asked.onto),
        )
        self.given: dict[str, Carried] = {}
        self._at = 0  # the first patch that is on neither side yet
        paths = {path for patch in self.patches for path in patch.paths}
        self.old.load(paths)
        self.new.load(paths)

    def _since(self, parsed: Sketch, text: bytes) -> Upstream | None:
        return since.since(parsed, text, self.progress.onto, self.store, self.places.cache)

    def go(self, *, dry: bool = False) -> Iterator[Step]:
        """Carry what is left, and yield each step as it is done; a stuck one is the last.

        `dry`: nothing is kept on disk, and stuck ones are left out.
        """
        while self._at < len(self.patches):
            patch = self.patches[self._at]
            if not self._pass(patch):
                carried = carry.carry(patch, self.ground)
                if carried.step.word.stuck and not dry:
                    self._wait(patch, carried)
                    yield carried.step
                    return
                self.take(patch, carried, dry=dry)
                yield carried.step

    def _pass(self, patch: Patch) -> bool:
        """Put a patch that is done on both sides; False where it is not done."""
        step = next((one for one in self.progress.steps if one.name == patch.name), None)
        if step is None:
            return False
        if step.word.carried:
            options = self.progress.options.get(patch.name, "")
            fresh = carry.reread(patch, self.places.folder.kept(patch.name), options)
            if patch.diffs and not fresh.diffs:
                raise damaged(self.places.folder.path, f"done/{patch.name} is no patch")
            self.new.put(fresh)
        self._step(patch)
        return True

    def _step(self, patch: Patch) -> None:
        self.old.put(patch)
        self._at += 1

    def _until_waiting(self) -> Patch:
        """Put on all that is below the patch that waits, and return that."""
        assert self.progress.waiting is not None
        while self.patches[self._at].name != self.progress.waiting.step.name:
            if not self._pass(self.patches[self._at]):
                raise damaged(self.places.folder.path, "it waits behind a patch not carried yet")
        return self.patches[self._at]

    def take(self, patch: Patch, carried: Carried, *, dry: bool = False) -> None:
        """Count a patch as done."""
        progress_, step = self.progress, carried.step
        if carried.text is not None:
            self.given[patch.name] = carried
            self.new.take(carried.after)
            if not dry:
                self.places.folder.keep(patch.name, carried.text)
        options = {**progress_.options, patch.name: carried.options}
        self.progress = replace(
            progress_, steps=(*progress_.steps, step), options=options, waiting=None
        )
        if not dry:
            self.places.folder.save(self.progress)
        self._step(patch)

    def _wait(self, patch: Patch, carried: Carried) -> None:
        folder, step = self.places.folder, carried.step
        text = page.page(patch, step, carried.merged, self.old, self.new, folder.work)
        folder.lay_out(carried.merged, text)
        names = tuple((one.path, one.origin, one.source) for one in carried.merged)
        self.progress = replace(self.progress, waiting=Waiting(step, names))
        folder.save(self.progress)

    def skip(self) -> Step:
        """Leave the patch that waits out of the new series.

        Raises:
            UsageError: none waits.
        """
        waiting = self.progress.waiting
        if waiting is None:
            raise UsageError(
                "no patch waits",
                why="the rebase was stopped between two patches",
                mend="patchq rebase --continue",
            )
        step = Step(waiting.step.name, Word.SKIPPED, "left out, as asked")
        self.take(self._until_waiting(), Carried(step))
        return step

    def resolve(self, *, force: bool) -> Step:
        """Judge what the work tree has for the patch that waits; keep it if it is right.

        Raises:
            ConflictError: markers are left, nothing was changed, or it fails the judgement.
        """
        waiting = self.progress.waiting
        assert waiting is not None
        patch = self._until_waiting()
        merged = tuple(self._resolved(*row) for row in waiting.files)
        more = tuple(self._added(row[0] for row in waiting.files))
        merged += more
        if all(one.upstream for one in merged):
            raise ConflictError(
                f"{patch.name} would change nothing",
                why=f"the work tree has what {self.progress.onto} has without it",
                mend="patchq rebase --skip",
            )
        untouched = tuple(self._untouched(patch, merged))
        if untouched and not force:
            raise ConflictError(
                f"{patch.name}: {', '.join(untouched)}: nothing was done about the conflict",
                why="the work tree has it as the rebase put it there, and that is no answer",
                mend="edit or remove it, then: patchq rebase --continue; as it is: --force",
            )
        parsed = carry.intent(patch)
        flags = (
            *(f"{one.path}: the old patch did not touch it" for one in more),
            *(f"taken in spite of: {path}: nothing was done about it" for path in untouched),
        )
        step = Step(patch.name, Word.RESOLVED, flags=flags, unasked=waiting.step.unasked)
        carried = carry.given(patch, step, merged, parsed, self.ground, force=force)
        if carried.step.word.stuck:
            raise ConflictError(
                f"{patch.name}, as the work tree has it, is wrong",
                why="\n".join(carried.step.reasons),
                mend="correct it, then: patchq rebase --continue; to take it as it is: --force",
            )
        if not force:  # what was wrong here is not offered elsewhere
            self._remember(merged, patch)
        self.take(patch, carried)
        return carried.step

    def _added(self, known: Iterable[str]) -> Iterator[FileMerge]:
        """Yield what the work tree has of files that the patch did not touch."""
        for path in self.places.folder.added(known):
            one = self._resolved(path, "", path)
            if not one.upstream:
                yield one

    def _untouched(self, patch: Patch, found: Sequence[FileMerge]) -> Iterator[str]:
        """Yield the files that are stuck without a marker in them, and as they were laid out."""
        theirs, memory = self.old.put_aside(patch), self.places.memory
        laid = {one.path: one for one in files.merged(patch, theirs, self.old, self.new, memory)}
        for one in found:
            was = laid.get(one.path)
            if was is not None and was.word.stuck and was.file == one.file is not None:
                yield one.path

    def _resolved(self, path: str, origin: str, source: str) -> FileMerge:
        file = self.places.folder.resolved(path)
        left = MARKERS.search(file[0]) if file is not None else None
        if left is not None:
            line = left.string[: left.start()].count(b"\n") + 1
            raise ConflictError(
                f"{path}:{line}: a conflict is not resolved",
                why=f"its markers are there still, in {self.places.folder.work / path}",
                mend="edit it, then: patchq rebase --continue",
            )
        same = not origin and file == self.new.file(path)
        return FileMerge(path, Word.RESOLVED, file, same, origin, source)

    def _remember(self, merged: tuple[FileMerge, ...], patch: Patch) -> None:
        theirs = self.old.put_aside(patch)
        for one in merged:
            base, ours = self.old.read(one.source), self.new.read(one.origin or one.path)
            there = theirs.get(one.path if one.path in theirs else one.source)
            if base is not None and ours is not None and there and one.file:
                self.places.memory.remember(merge.merge(base, ours, there[0]), one.file[0])

    def end(self) -> Done:
        """Put the new series into the queue, and forget the rebase."""
        queue, asked = self.places.queue, self.progress
        patches = []
        for patch in self.patches:
            step = next(one for one in asked.steps if one.name == patch.name)
            if step.word.carried:
                options = asked.options.get(patch.name, "")
                text = self.places.folder.kept(patch.name)
                patches.append(carry.reread(patch, text, options))
        place = None
        if patches:
            old = (queue.folder / asked.source / "series").read_bytes()
            verdicts = {n: c.verdict for n, c in self.given.items() if c.verdict is not None}
            lines = finish.lines(old, asked.steps, asked.options)
            new = finish.Series(asked.onto, tuple(patches), verdicts, lines)
            place = finish.put(queue, asked.source, new, self.store, self.places.cache)
        marked = tuple(finish.mark(queue, asked.source, asked.steps))
        self.places.folder.remove()
        return Done(asked, place, marked=marked)


def _sketched(queue: queues.Queue, asked: Progress, folder: Path) -> Iterator[Patch]:
    """Yield the old series' patches; the new release's own sketch is the one that counts."""
    for patch in queues.load(queue, asked.source).patches:
        own = folder / asked.onto / f"{patch.stem}.pyi"
        if own.is_file():
            patch = replace(
                patch, sketch=own.read_bytes(), sketch_name=f"{asked.onto}/{patch.stem}.pyi"
            )
        yield patch
