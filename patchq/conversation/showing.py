"""`show`: a patch as it is in the queue, and where it is applied."""

from __future__ import annotations

from dataclasses import dataclass

from patchq.conversation import files, look, names, view
from patchq.conversation.goal import Upto
from patchq.engine import lines
from patchq.errors import ExitCode, PatchqError
from patchq.model import AppliedPatch, Patch, sha256
from patchq.queue import store
from patchq.report import Report
from patchq.transport.channel import Conversation


@dataclass(frozen=True, slots=True)
class _Facts:
    """A patch, its place in the series (from 1, 0 where it is not in it), and how it is here.

    `changed`: the queue has another text now than the one that is on.
    """

    patch: Patch
    place: int
    total: int
    applied: bool
    top: bool
    changed: bool


def show(aim: view.Aim, name: str | None) -> Conversation[Report]:
    """Show a patch, the top one if none is named: its place, header and sketch, then its diff.

    It is the queue's text; where the queue is not in sight, the one that the environment keeps.

    Raises:
        PatchqError: there is no such patch, or its file can not be read.
    """
    seen = yield from look.sight(aim, view.Want(more=("patches",)), need=view.Need.RECORD)
    held = [one.patch for one in seen.applied]
    if name is None and not held:
        return names.nothing("show", seen, "No patches applied", ExitCode.FAILED)
    listed = list(seen.names) if seen.choice else []
    every = list(dict.fromkeys((*held, *listed)))
    wanted = held[-1] if name is None else every[Upto(name).index(every, "in series")]
    on = seen.applied[held.index(wanted)] if wanted in held else None
    patch = _patch(seen, wanted, on)
    place = listed.index(wanted) + 1 if wanted in listed else 0
    # A plain tree's record has another text than the queue: what the patch changed there.
    changed = on is not None and place > 0 and not seen.tree and on.sha256 != sha256(patch.text)
    top = bool(held) and wanted == held[-1]
    return _report(seen, _Facts(patch, place, len(listed), on is not None, top, changed))


def _patch(seen: view.Sight, name: str, on: AppliedPatch | None) -> Patch:
    """Return a patch as the queue has it, else as it was put on: quilt's new ones have no file."""
    if seen.choice is not None and seen.release in seen.queue.releases:
        for listed, one in store.each(seen.queue, seen.release):
            if listed != name:
                continue
            if not isinstance(one, PatchqError):
                return one
            if on is None or (seen.queue.folder / seen.release / name).exists():
                raise one
    assert on is not None
    return files.layers_of(seen.survey, seen.texts, (on,))[0].patch


def _report(seen: view.Sight, facts: _Facts) -> Report:
    patch = facts.patch
    out = [f"patch {patch.name}", f"Queue:   {_place(seen, facts)}"]
    options = " ".join((f"-p{patch.strip}",) * (patch.strip != 1) + ("-R",) * patch.reverse)
    out += [f"Options: {options}"] if options else []
    out += [f"Applied: {_applied(facts)}"]
    out += [f"Sketch:  {patch.sketch_name or 'none'}"] * (not seen.tree)
    header, sketch = (_text(data) for data in (patch.header, patch.sketch or b""))
    body = _text(patch.text[len(patch.header) :])
    out += _indented(header) + _indented(sketch)
    out += ["", *body] if body else []
    document = {
        "verb": "show",
        "queue": seen.queue.name,
        "release": seen.choice.release if seen.choice else None,
        "patch": patch.name,
        "place": facts.place or None,
        "applied": facts.applied,
        "top": facts.top,
        "changed_since": facts.changed,
        "files": list(patch.paths),
        "header": lines.decode(patch.header),
        "sketch_name": patch.sketch_name or None,
        "sketch": None if patch.sketch is None else lines.decode(patch.sketch),
        "diff": lines.decode(patch.text[len(patch.header) :]),
    }
    return Report(tuple(out), names.interrupted(seen), document)


def _place(seen: view.Sight, facts: _Facts) -> str:
    where = (
        f"{seen.queue.name}, series {seen.release}"
        if not seen.tree
        else str(seen.queue.folder / seen.release)
    )
    if seen.release not in seen.queue.releases:
        return f"{where}, which is not in sight"
    if not facts.place:
        return f"{where}; it is not in the series any more"
    return f"{where}: {facts.place} of {facts.total}"


def _applied(facts: _Facts) -> str:
    if not facts.applied:
        return "no"
    word = "yes, on top" if facts.top else "yes"
    return f"{word}; the queue's text was changed since" if facts.changed else word


def _text(data: bytes) -> list[str]:
    text = lines.decode(data)
    return text.removesuffix("\n").split("\n") if text else []


def _indented(text: list[str]) -> list[str]:
    """Return a text in a block of its own, as git shows a commit's message."""
    while text and not text[-1].strip():
        text = text[:-1]
    return ["", *(f"    {line}" if line else "" for line in text)] if text else []
