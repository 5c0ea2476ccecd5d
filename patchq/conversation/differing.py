"""`diff`: what a patch changes as the files are now, or what is in no patch yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from patchq import standing
from patchq.conversation import desk, heights, look, names, plain, pristine, view
from patchq.conversation.diffform import Form, Sides
from patchq.conversation.goal import Upto
from patchq.engine.apply import File
from patchq.errors import ExitCode, PatchqError, QuiltError
from patchq.model import AppliedPatch
from patchq.queue import store
from patchq.report import Report
from patchq.transport.channel import Conversation


@dataclass(frozen=True, slots=True)
class Ask:
    """What is compared: quilt's ``-P``, ``-z``, ``--combine`` and files."""

    patch: str | None = None
    pending: bool = False
    combine: str | None = None
    only: tuple[str, ...] = ()
    stat: bool = False
    snapshot: bool = False

    def __post_init__(self) -> None:
        if self.pending + self.snapshot + (self.combine is not None) > 1:
            raise QuiltError(
                "Options `--combine', `--snapshot', and `-z' cannot be combined.",
                why="-z shows what is in no patch, --combine what several patches change",
                mend="leave one of them out",
            )


def diff(aim: view.Aim, ask: Ask, form: Form) -> Conversation[Report]:
    """Show what an applied patch changes, with the edits that it does not have yet.

    With ``-z`` it is those edits alone, of all files that patches have where none is named.

    Raises:
        PatchqError: the patch is not applied, a file is not in it, or a text is lost.
    """
    if ask.snapshot:
        return (yield from _since_snapshot(aim, ask, form))
    extra = ask.only if ask.pending else ()
    want = view.Want(contents=True, extra=extra, more=("patches",))
    seen = yield from look.sight(aim, want, need=view.Need.RECORD)
    if ask.pending and ask.patch is None:
        edits = yield from _edits(aim, seen, ask.only)
        notes = yield from _loose(aim, seen, ask)
        return _report(seen, edits, notes, ask, form)
    if not seen.applied:
        return names.nothing("diff", seen, "No patches applied", ExitCode.FAILED)
    last = applied(seen, ask.patch)
    first = last if ask.combine is None else _first(seen, ask.combine, last)
    held = seen.applied[first : last + 1]
    paths = list(dict.fromkeys(change.path for one in held for change in one.changes))
    _known(ask.only, paths, held[-1])
    paths = [path for path in paths if not ask.only or path in ask.only]
    if seen.tree and len(held) == 1:
        paths = plain.ordered(seen.queue, held[0].release, held[0].patch, paths)
    levels = yield from heights.rise(aim, seen, paths)
    high = seen.survey.stack.index(held[-1]) + 1
    low = high if ask.pending else seen.survey.stack.index(held[0])
    over = {path for path in paths if shadowed(seen, high, path)}
    tops = {
        path: levels.trees[high].get(path) if path in over else live(seen, path) for path in paths
    }
    pairs = {path: (levels.trees[low].get(path), tops[path]) for path in paths}
    notes = (f"Warning: more recent patches modify files in patch {held[-1].patch}",) * bool(over)
    if all(old == new for old, new in pairs.values()):
        notes += yield from _loose(aim, seen, ask)
    return _report(seen, pairs, notes, ask, form, held[-1].patch)


def _loose(aim: view.Aim, seen: view.Sight, ask: Ask) -> Conversation[tuple[str, ...]]:
    """Say which edited files no patch has, where nothing was named that is looked for."""
    if ask.only or ask.patch is not None or ask.combine is not None or not seen.applied:
        return ()
    return tuple(
        f"edited, and in no patch: {path} (patchq refresh puts it into {seen.applied[-1].patch};"
        f" patchq diff -z {path} shows it)"
        for path in (yield from desk.loose(aim, seen))
    )


def _since_snapshot(aim: view.Aim, ask: Ask, form: Form) -> Conversation[Report]:
    """Show what changed since the snapshot; a file that is not in it was pristine."""
    from patchq.conversation import snapping

    kept = snapping.kept(aim)
    want = view.Want(contents=True, extra=tuple(kept), more=("patches",))
    seen = yield from look.sight(aim, want, need=view.Need.RECORD)
    stacked = dict.fromkeys(change.path for one in seen.applied for change in one.changes)
    levels = yield from heights.rise(aim, seen, list(stacked))
    pairs = {
        path: (kept[path] if path in kept else levels.trees[0].get(path), live(seen, path))
        for path in (*kept, *(path for path in stacked if path not in kept))
        if not ask.only or path in ask.only
    }
    return _report(seen, pairs, (), ask, form)


def applied(seen: view.Sight, name: str | None) -> int:
    """Return the place among this queue's applied patches of a named one, of the top if None.

    Raises:
        PatchqError: it is not in the series, or not applied.
    """
    held = [one.patch for one in seen.applied]
    if name is None:
        return len(held) - 1
    every = list(dict.fromkeys((*held, *(seen.names if seen.choice else ()))))
    return Upto(name).index(held, "applied", every)


def shadowed(seen: view.Sight, height: int, path: str) -> bool:
    """Return whether a patch above the lowest `height` ones has a file, too."""
    above = seen.survey.stack[height:]
    return any(change.path == path for one in above for change in one.changes)


def live(seen: view.Sight, path: str) -> File | None:
    """Return a file as it is now."""
    state = standing.live(seen.survey, path)
    if state.sha256 is None:
        return None
    return seen.survey.contents[state.sha256], state.executable


def _first(seen: view.Sight, name: str, last: int) -> int:
    """Return the lowest patch that is combined; ``-`` is the lowest of all."""
    first = 0 if name == "-" else applied(seen, name)
    if first > last:
        low, high = seen.applied[first].patch, seen.applied[last].patch
        raise QuiltError(
            f"Patch {low} not applied before patch {high}",
            why="--combine names the lowest of the patches, -P the highest",
            mend=f"patchq diff --combine {high} -P {low}",
        )
    return first


def _known(only: Sequence[str], paths: Sequence[str], patch: AppliedPatch) -> None:
    if only and not set(only).intersection(paths):
        raise PatchqError(
            f"File {only[0]} is not in patch {patch.patch}",
            why=f"its files are: {', '.join(sorted(paths)) or 'none'}",
            mend=f"patchq diff -z {only[0]}   # shows edits that are in no patch",
        )


def _edits(
    aim: view.Aim, seen: view.Sight, only: tuple[str, ...]
) -> Conversation[dict[str, Sides]]:
    """Return the files that are not as recorded, or those of them that are named."""
    drifted = names.drifted(seen)
    edited = [*drifted, *_unrecorded(seen, only, drifted)]
    paths = [path for path in edited if not only or path in only]
    before = yield from _recorded(aim, seen, paths)
    return {path: (before.get(path), live(seen, path)) for path in paths}


def _unrecorded(seen: view.Sight, named: tuple[str, ...], known: list[str]) -> list[str]:
    """Return those of the named files that no patch touches, and that differ from RECORD."""
    out = []
    for path in named:
        found = seen.survey.files[path]
        if found.state.sha256 is None and found.recorded is None and path not in known:
            raise PatchqError(
                f"{path} is no file of {seen.survey.site}",
                why="it is not there, and RECORD does not list it",
                mend="patchq diff -z   # names the files that differ",
            )
        if found.recorded is not None and found.recorded != found.state.sha256:
            out.append(path)
    return [path for path in out if path not in known]


def _recorded(
    aim: view.Aim, seen: view.Sight, paths: list[str]
) -> Conversation[dict[str, File | None]]:
    """Return what edited files should hold: by the stack, else by the release store."""
    stacked = standing.recorded(seen.survey.stack)
    levels = yield from heights.rise(aim, seen, [path for path in paths if path in stacked])
    out = {path: levels.trees[-1].get(path) for path in paths if path in stacked}
    rest = [path for path in paths if path not in stacked]
    if rest:
        installed = seen.survey.installed
        release = seen.choice.release if seen.choice else ""
        if release not in seen.queue.releases and installed is not None:
            release = standing.public(installed.version)
        have = pristine.texts(aim.cache(), seen.queue.distribution, release, rest)
        if not have:
            raise pristine.unknown(seen.queue.distribution, release)
        modes = {path: standing.live(seen.survey, path).executable for path in rest}
        out.update({p: (have[p], modes[p]) if p in have else None for p in rest})
    return out


def _report(
    seen: view.Sight,
    pairs: Mapping[str, Sides],
    notes: tuple[str, ...],
    ask: Ask,
    form: Form,
    patch: str | None = None,
) -> Report:
    shown = form.ordered(pairs)
    document: dict[str, object] = {"verb": "diff", "queue": seen.queue.name, "files": list(shown)}
    if patch is not None:
        document["patch"] = patch
    if ask.stat:
        drawn, document["stat"] = form.stat(shown)
        return Report(tuple(drawn), notes, document)
    if form.strip is None and seen.tree:
        form = replace(form, strip=_own_strip(seen, patch))
    form = replace(form, top=PurePosixPath(seen.survey.site).name)
    document["diff"], binary = form.text(shown)
    out = tuple(str(document["diff"]).split("\n")[:-1])
    if binary is None:
        return Report(out, notes, document)
    note = f"Diff failed on file '{binary}', aborting"
    return Report(out, (*notes, note), document, ExitCode.FAILED)


def _own_strip(seen: view.Sight, patch: str | None) -> str:
    """Return the ``-p`` that the series of a plain tree gives a patch."""
    entries = store.series(seen.queue, seen.release).entries if patch is not None else ()
    return next((str(one.strip) for one in entries if one.name == patch), "1")
