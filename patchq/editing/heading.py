"""The header of a patch, shown, judged and changed; the diffs below it stay as they are.

It works on any patch of the series, on or not. Where the patch is on, the environment keeps
its text: that is renewed with it. A plain tree keeps no header, so there only the file changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from patchq.conversation import desk, look, view
from patchq.conversation.commit import Ground
from patchq.conversation.goal import Upto
from patchq.editing import basing
from patchq.errors import ExitCode, QuiltError
from patchq.model import sha256
from patchq.queue import dep3, editing, headers, reading, store, wayback
from patchq.report import Report
from patchq.transport.channel import Conversation

# What a new header is made of the old one by.
Change = Callable[[bytes], bytes]
_WORDS = {"append": "Appended text to header of patch {}", "": "Replaced header of patch {}"}


@dataclass(frozen=True, slots=True)
class Clean:
    """What is to go of a header that is shown or written."""

    diffstat: bool = False
    whitespace: bool = False

    def __call__(self, header: bytes) -> bytes:
        """Return the header without it."""
        header = headers.without_diffstat(header) if self.diffstat else header
        return headers.without_trailing(header) if self.whitespace else header


def show(aim: view.Aim, name: str | None, clean: Clean) -> Conversation[Report]:
    """Return the header of a patch, the top one if `name` is None.

    Raises:
        PatchqError: there is no such patch, or nobody could say where its header ends.
    """
    seen = yield from look.sight(aim, view.Want(), need=view.Need.RECORD)
    patch = named(seen, name)
    header = clean(_split(seen, patch, _text(seen, patch))[0])
    text = header.decode("utf-8", "surrogateescape")
    shown = tuple(text.removesuffix("\n").split("\n")) if text else ()
    return Report(shown, (), _document(seen, patch, header))


def lint(aim: view.Aim, name: str | None) -> Conversation[Report]:
    """Return what the header of a patch lacks by DEP-3, or says in another form.

    Raises:
        PatchqError: there is no such patch.
    """
    seen = yield from look.sight(aim, view.Want(), need=view.Need.RECORD)
    patch = named(seen, name)
    header = _split(seen, patch, _text(seen, patch))[0]
    flaws = dep3.flaws(header)
    file = f"{seen.release}/{patch}"
    lines = tuple(
        line
        for one in flaws
        for line in (
            f"{file}:{one.line}: {one.what}",
            f"  why: {one.why}",
            f"  mend: {one.mend}",
        )
    )
    document = {**_document(seen, patch, header), "flaws": [one.to_json() for one in flaws]}
    if not flaws:
        return Report((f"Header of patch {patch} is good DEP-3",), (), document)
    return Report(lines, (), document, ExitCode.FAILED)


def change(
    aim: view.Aim, ground: Ground, name: str | None, make: Change, verb: str, backup: bool
) -> Conversation[Report]:
    """Put another header above the diffs of a patch, made of the old one by `make`.

    `verb` is "append" where the old text stays; `backup` keeps the old file as ``NAME~``.

    Raises:
        PatchqError: there is no such patch, or the header would read as a diff.
    """
    at = yield from desk.sit(aim, ground)
    seen = at.seen
    patch = named(seen, name)
    old = _text(seen, patch)
    header, body = _split(seen, patch, old)
    text = headers.joined(make(header), body, name=patch, strip=_strip(seen, patch))
    word = _WORDS[verb].format(patch)
    fresh = text[: len(text) - len(body)]
    document = {**_document(seen, patch, fresh), "changed": text != old}
    if ground.dry_run:
        shown = fresh.decode("utf-8", "surrogateescape").removesuffix("\n")
        return Report(tuple(shown.split("\n")), (), document)
    queue = desk.queue_at(at, seen.release)
    listed = store.series(queue, seen.release)
    files: Mapping[str, bytes | None] = {editing.patch(seen.release, patch): text}
    edit = editing.Edit(queue, seen.release, listed, files, backup)
    notes = wayback.told(edit, locked=not seen.tree)
    if text == old:
        notes = ("its header has that already",)
    # Also where nothing is new: a run that was cut short may have left lock and record behind.
    read = None if seen.tree else (yield from basing.base(at, seen.release))
    notes = (*editing.write(edit, read), *notes)
    yield from _recorded(at, patch, text)
    return Report((word,), notes, document)


def _recorded(at: desk.Desk, patch: str, text: bytes) -> Conversation[None]:
    """Renew the text that the environment keeps of a patch, where it is on."""
    held = next((one for one in at.seen.applied if one.patch == patch), None)
    if held is None or at.seen.tree or held.sha256 == sha256(text):
        return
    stack = desk.replaced(at.stack, held, replace(held, sha256=sha256(text)))
    blobs: dict[str, bytes] = {sha256(text): text}
    yield from desk.settle(at, "header", (), stack, blobs, {"header": (patch,)})


def named(seen: view.Sight, name: str | None) -> str:
    """Return a patch of the series by its name, the top one for None.

    Raises:
        PatchqError: it is not in the series, or none is on.
    """
    if name is not None:
        names = list(seen.names)
        return names[Upto(name).index(names, "in series")]
    if not seen.applied:
        raise QuiltError(
            "No patches applied",
            why=f"no patch of queue {seen.queue.name} is on in {seen.survey.site}",
            mend="name one: patchq series",
        )
    return seen.applied[-1].patch


def _text(seen: view.Sight, patch: str) -> bytes:
    """Return a patch's file; one that is not there is empty, as with quilt."""
    return reading.read(seen.queue.folder / seen.release / patch) or b""


def _split(seen: view.Sight, patch: str, text: bytes) -> tuple[bytes, bytes]:
    return headers.split(text, name=patch, strip=_strip(seen, patch))


def _strip(seen: view.Sight, patch: str) -> int:
    """Return a patch's ``-pN``, as the series has it."""
    listed = store.series(seen.queue, seen.release).entries
    return next((one.strip for one in listed if one.name == patch), 1)


def _document(seen: view.Sight, patch: str, header: bytes) -> dict[str, object]:
    text = header.decode("utf-8", "replace")
    document = {"verb": "header", "queue": seen.queue.name, "release": seen.release}
    return {**document, "patch": patch, "header": text}
