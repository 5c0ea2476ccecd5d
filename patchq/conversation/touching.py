"""Which patches have a file, and which files a patch has: quilt's `patches` and `files`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from patchq import standing
from patchq.conversation import differing, look, names, view
from patchq.conversation.goal import Upto
from patchq.errors import ExitCode, PatchqError, QuiltError
from patchq.model import ABSENT, FileState, Patch, PathChange, sha256
from patchq.queue import store
from patchq.report import Report
from patchq.transport.channel import Conversation

_EMPTY = sha256(b"")
_NOTHING = (None, _EMPTY)
# A file that is there, of which no more is known.
_THERE = FileState(sha256(b"."))


def patches(aim: view.Aim, paths: Sequence[str], marked: bool) -> Conversation[Report]:
    """Name the patches that have one of the files, applied or not, in the series' order.

    `marked` shows ``+`` applied, ``=`` top.
    """
    seen = yield from look.sight(aim, need=view.Need.RECORD)
    touched = _touched(seen)
    found = [
        name
        for name, changes in touched.files.items()
        if any(change.path in paths for change in changes)
    ]
    held = [one.patch for one in seen.applied]
    out = [f"{_mark(name, held)} {name}" if marked else name for name in found]
    document = {
        "verb": "patches",
        "queue": seen.queue.name,
        "files": list(paths),
        "patches": found,
        "applied": [name for name in found if name in held],
        "top": held[-1] if held else None,
    }
    return Report(tuple(out), touched.notes, document)


def _mark(name: str, held: Sequence[str]) -> str:
    return " " if name not in held else "=" if name == held[-1] else "+"


@dataclass(frozen=True, slots=True)
class Ask:
    """Which patches' files are named, and how: quilt's options.

    `every` begins with the lowest applied patch, `combine` with a named one (``-``: the
    lowest applied, too).
    """

    patch: str | None = None
    every: bool = False
    combine: str | None = None
    labels: bool = False
    marked: bool = False

    @property
    def several(self) -> bool:
        """True where a range of patches is asked for."""
        return self.every or self.combine is not None


def files(aim: view.Aim, ask: Ask) -> Conversation[Report]:
    """Name the files of the top patch, of a named one, or of several.

    Raises:
        PatchqError: there is no such patch, or they are in another order.
    """
    seen = yield from look.sight(aim, need=view.Need.RECORD)
    touched = _touched(seen)
    held = [one.patch for one in seen.applied]
    if not held and ask.patch is None:
        return names.nothing("files", seen, "No patches applied", ExitCode.FAILED)
    every = list(touched.files)
    last = Upto(ask.patch).index(every, "in series") if ask.patch else every.index(held[-1])
    first = _first(every, ask, last) if ask.several else last
    chosen = {name: touched.files[name] for name in every[first : last + 1]}
    out: list[str] = []
    rows = []
    for name, changes in chosen.items():
        if ask.several and ask.marked and not ask.labels:
            out.append(name)
        for change in sorted(changes, key=lambda one: one.path):
            mark = _change(seen, held, name, change)
            out.append(_line(ask, name, mark, change.path))
            rows.append({"patch": name, "file": change.path, "mark": mark.strip()})
    paths = sorted({str(row["file"]) for row in rows})
    document: dict[str, object] = {"verb": "files", "queue": seen.queue.name}
    document |= {"patches": list(chosen), "files": paths, "changes": rows}
    if not ask.several:
        document["patch"] = every[last]
    return Report(tuple(out), touched.notes, document)


def _first(every: Sequence[str], ask: Ask, last: int) -> int:
    """Return the lowest of several patches."""
    if ask.combine in (None, "-"):
        return 0
    first = Upto(ask.combine).index(list(every), "in series")
    if first > last:
        raise QuiltError(
            f"Patch {every[first]} not applied before patch {every[last]}",
            why="--combine names the lowest of the patches, the argument the highest",
            mend=f"patchq files --combine {every[last]} {every[first]}",
        )
    return first


def _line(ask: Ask, name: str, mark: str, path: str) -> str:
    if ask.labels:
        return f"[{name}] {path}" if ask.marked else f"{name} {path}"
    return f"{mark} {path}" if ask.marked else path


def _change(seen: view.Sight, held: Sequence[str], name: str, change: PathChange) -> str:
    """Return ``+`` for a file that a patch makes, ``-`` for one that it takes away.

    An empty file counts as none. The topmost applied patch of a file has its edits, too.
    """
    after = change.after
    if name in held:
        at = seen.survey.stack.index(seen.applied[held.index(name)]) + 1
        if not differing.shadowed(seen, at, change.path):
            after = standing.live(seen.survey, change.path)
    was, now = (state.sha256 not in _NOTHING for state in (change.before, after))
    return "+" if now and not was else "-" if was and not now else " "


@dataclass(frozen=True, slots=True)
class _Touched:
    """What each patch of the series changes, applied or not, in order; `notes`: what is unread."""

    files: Mapping[str, Sequence[PathChange]]
    notes: tuple[str, ...]


def _touched(seen: view.Sight) -> _Touched:
    out: dict[str, Sequence[PathChange]] = {one.patch: one.changes for one in seen.applied}
    notes = names.interrupted(seen)
    left = [name for name in (seen.names if seen.choice else ()) if name not in out]
    if left and not seen.tree:
        lock = seen.locks.get(seen.release)
        out.update({p.name: p.changes for p in lock.patches if p.name in left} if lock else {})
    if any(name not in out for name in left):
        for name, patch in store.each(seen.queue, seen.release):
            missing = not (seen.queue.folder / seen.release / name).exists()
            if isinstance(patch, PatchqError) and not (seen.tree and missing):
                notes = (*notes, f"{name} can not be read: {patch.what}; {patch.why}")
            if name in left and name not in out:
                out[name] = () if isinstance(patch, PatchqError) else tuple(_changes(patch))
    order = [name for name in out if name not in left] + left
    return _Touched({name: out[name] for name in order if name in out}, notes)


def _changes(patch: Patch) -> Iterator[PathChange]:
    """Yield what a patch says that it makes and takes away; its texts are not known."""
    from patchq.engine import traces

    for diff in traces.effective(patch):
        for path in dict.fromkeys(one for one in (diff.old, diff.new) if one is not None):
            before, after = (_THERE if name == path else ABSENT for name in (diff.old, diff.new))
            yield PathChange(path, before, after)
