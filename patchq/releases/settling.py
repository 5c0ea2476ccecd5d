"""Which name a text gets in the store, and what it is never kept under.

The text of a wheel never changes: the first one is trusted, another is refused. What an
environment's RECORD says is less than what the wheel says: it never takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from patchq.errors import PatchqError
from patchq.releases.note import WheelNote


class StoreError(PatchqError):
    """The store lacks a release, or holds another text of the same wheel."""


def settle(
    note: WheelNote,
    before: WheelNote | None,
    named: str | None,
    same: Sequence[WheelNote],
    store: Path,
) -> tuple[WheelNote, bool]:
    """Return the note with the release that its text gets, and whether it is known already.

    `before` is the note of the same wheel, `named` the tree that has the release's name now,
    `same` all notes of that release. Another wheel's text gets a longer name.
    Raises: `StoreError` where the same wheel had another text.
    """
    if before is not None and before.tree != note.tree:
        raise StoreError(
            f"{note.filename} is not what it was when it was first fetched",
            why=f"its text has the tree {note.tree}, expected {before.tree}{_of(before)}",
            mend="find out who changed the wheel; to forget the first one: "
            + _forget(store, before),
        )
    if before is not None and note.origin is not None and before.origin is None:
        return before, True
    if named is None or named == note.tree:
        return note, False
    if note.of_wheel and same and not any(each.of_wheel for each in same):
        raise StoreError(
            f"another text is kept as {note.release}",
            why=f"it has the tree {named}{_of(same[0])}; {note.filename} has {note.tree}",
            mend="to forget it: " + " && ".join(_forget(store, each) for each in same),
        )
    return replace(note, release=note.stem), False


def _of(note: WheelNote) -> str:
    if note.of_wheel:
        return ""
    return f", as read from {note.origin or note.filename}"


def _forget(store: Path, note: WheelNote) -> str:
    """Return the command that takes a wheel and its release out of the store."""
    refs = (f"refs/wheels/{note.stem}", f"refs/tags/{note.release}")
    return " && ".join(f"git --git-dir={store} update-ref -d {one}" for one in refs)
