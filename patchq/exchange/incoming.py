"""An edited branch as the series that it is: what each commit became, and what is gone.

A commit is the patch that its trailer names, else the one whose subject it has, else a new
one. A header stays byte for byte where nobody edited the message, the diffs where they do
the same. Nothing is written here: `patchq.queue.editing` does that.
"""

from __future__ import annotations

import email.utils
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from patchq import gitbranch
from patchq.engine import apply, patchtext
from patchq.exchange import messages
from patchq.exchange.source import Source
from patchq.gitbranch import Found
from patchq.model import Patch
from patchq.queue import arrangement, editing, headers, naming, series, store
from patchq.queue.series import SeriesEntry, SeriesFile


@dataclass(frozen=True, slots=True)
class Taken:
    """What a commit is as a patch, and in a word what became of it.

    `word`: "kept" where the file is as it was, "header" or "changed" where a part is other
    than before, "new".
    """

    entry: SeriesEntry
    text: bytes
    word: str
    commit: str

    @property
    def name(self) -> str:
        """The patch's name."""
        return self.entry.name


@dataclass(frozen=True, slots=True)
class Series:
    """A series as a branch has it; `gone` are the patches that it has no more.

    Each of them with the patch that it was squashed into, empty where it was dropped.
    """

    taken: tuple[Taken, ...]
    gone: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether a patch is other than before, new or gone; their order is not looked at."""
        return bool(self.gone) or any(one.word != "kept" for one in self.taken)

    @property
    def lines(self) -> tuple[str, ...]:
        """What is said of it: a line for each patch."""
        said = {"kept": "unchanged", "header": "header changed", "changed": "changed"}
        rows = [f"{one.name}: {said.get(one.word, 'new')}" for one in self.taken]
        gone = [
            f"{name}: removed" + f", it is in {to}" * bool(to) for name, to in self.gone.items()
        ]
        return (*rows, *gone)


def series_of(source: Source, commits: Sequence[Found]) -> Series:
    """Return the series that commits are.

    Raises:
        UsageError: a message would read as a diff, or names what can not be a patch's name.
    """
    old = {patch.name: patch for patch in source.patches}
    named = _named(source, commits)
    taken: list[Taken] = []
    notes: list[str] = []
    for commit, name in zip(commits, named, strict=True):
        patch = old.get(name)
        if not commit.after and (patch is None or patch.diffs):
            notes.append(f"{commit.id[:12]} changes no file: it is left out")
            continue
        taken.append(_taken(source, commit, name, patch))
    here = {one.name for one in taken}
    into = {
        other: name
        for commit, name in zip(commits, named, strict=True)
        for other in messages.names(commit.message)
    }
    gone = {name: into.get(name, "") for name in old if name not in here}
    return Series(tuple(taken), gone, tuple(notes))


def edit(source: Source, found: Series, listed: SeriesFile) -> editing.Edit:
    """Return what becomes of the queue's files; its sketches stay but for those of `gone`."""
    files: dict[str, bytes | None] = {
        editing.patch(source.release, one.name): one.text for one in found.taken
    }
    for name in found.gone:
        files.update(dict.fromkeys(_files(source, name)))
        listed = arrangement.removed(listed, name)
    below: str | None = None
    known = {one.name: one for one in listed.entries}
    for one in found.taken:
        if one.name not in known:
            listed = arrangement.inserted(listed, one.entry, below)
        elif (known[one.name].strip, known[one.name].reverse) != _options(one.entry):
            listed = arrangement.optioned(listed, one.name, *_options(one.entry))
        below = one.name
    listed = arrangement.reordered(listed, tuple(one.name for one in found.taken))
    return editing.Edit(source.queue, source.release, listed, files)


def _options(entry: SeriesEntry) -> tuple[int, bool]:
    return entry.strip, entry.reverse


def _named(source: Source, commits: Sequence[Found]) -> list[str]:
    """Return the name of each commit's patch: no two have one."""
    subjects = {source.message(one).subject: one.name for one in reversed(source.patches)}
    out: list[str] = []
    for commit in commits:
        said = [one for one in messages.names(commit.message) if one not in out]
        out.append(_checked(said[0]) if said else "")
    for at, commit in enumerate(commits):
        if out[at]:
            continue
        subject = messages.read(commit.message, "", "", None).subject
        name = subjects.get(subject, "")
        if not name or name in out:
            stem = naming.from_subject(subject) or f"{commit.id[:12]}.patch"
            name = _free(stem, (*out, *(one.name for one in source.patches)))
        out[at] = name
    return out


def _checked(name: str) -> str:
    """Return a name that a trailer gives, if a patch can be called so."""
    return series.parse(f"{name}\n".encode(), name="a commit's trailer").entries[0].name


def _free(name: str, used: Iterable[str]) -> str:
    while name in used:
        name = arrangement.next_name(name)
    return name


def _taken(source: Source, commit: Found, name: str, patch: Patch | None) -> Taken:
    header = _header(source, commit, patch)
    same = patch is not None and _does(patch, commit, source.search)
    if patch is not None and same:
        body = patch.text[len(patch.header) :]
        entry = SeriesEntry(name, patch.strip, patch.reverse)
        word = "kept" if header == patch.header else "header"
    else:
        body = patchtext.patch(b"", commit.before, commit.after, commit.renamed)
        entry, word = SeriesEntry(name), "new" if patch is None else "changed"
    kept = patch is not None and header == patch.header
    text = header + body if kept else headers.joined(header, body, name=name, strip=entry.strip)
    return Taken(entry, text, word, commit.id)


def _does(patch: Patch, commit: Found, search: bool) -> bool:
    """Return whether a patch does, on the files below a commit, just what the commit does."""
    done = apply.apply_patch(patch, commit.before.get, search=search)
    if isinstance(done, apply.PatchRejected):
        return False
    made = {change.path: done.after.get(change.path) for change in done.changes}
    return made == dict(commit.after)


def _header(source: Source, commit: Found, patch: Patch | None) -> bytes:
    """Return a patch's header: as it is, where the commit's message says just that."""
    old = source.message(patch) if patch else None
    author = commit.author
    if patch is not None and old is not None:
        unchanged = author == gitbranch.author(old.author)
        if unchanged and messages.same(old.commit(patch.name), commit.message):
            return patch.header
        if unchanged:
            author = messages.of(patch.header, patch.stem).author
    date = old.date if old else ""
    if old is not None and old.mail and commit.date != (old.raw_date or gitbranch.EPOCH):
        date = email.utils.formatdate(int(commit.date.split()[0]))
    author = "" if author == gitbranch.NOBODY else author
    said = messages.read(commit.message, author, date, old)
    return messages.header(said) if said.subject or said.body else b""


def _files(source: Source, name: str) -> list[str]:
    """Return the files of a patch that no other series has."""
    out = [editing.patch(source.release, name)]
    stem = name.removesuffix(".patch").removesuffix(".diff")
    others = [one for one in source.queue.releases if one != source.release]
    listed = [one.name for other in others for one in store.series(source.queue, other).entries]
    sketches = [f"{source.release}/{stem}.pyi"]
    sketches += [] if name in listed else [f"{store.SHARED}/{stem}.pyi"]
    if not source.search:
        out += [one for one in sketches if (source.queue.folder / one).exists()]
    return out
