"""Looking into it: check, diff and log."""

from __future__ import annotations

from patchq import standing
from patchq.conversation import files, look, names, pristine, view
from patchq.conversation.checking import check as check  # the verbs that look in, in one place
from patchq.conversation.goal import Upto
from patchq.conversation.ledger import log as log
from patchq.engine import diff
from patchq.errors import ExitCode, PatchqError
from patchq.report import Report
from patchq.transport.channel import Conversation


def show_diff(
    aim: view.Aim, name: str | None, pending: bool, only: tuple[str, ...]
) -> Conversation[Report]:
    """Show what an applied patch changes, or with `pending` what nobody recorded."""
    want = view.Want(contents=True, extra=only if pending else (), more=("patches",))
    seen = yield from look.sight(aim, want, need=view.Need.RECORD)
    if pending:
        edited = [*names.drifted(seen), *_unrecorded(seen, only)]
        now = {p: seen.survey.files[p].state for p in edited if not only or p in only}
        before = yield from _recorded_bytes(aim, seen, list(now))
        held = seen.survey.contents
        after = {p: held[s.sha256] if s.sha256 else None for p, s in now.items()}
        return _diffs("diff", seen, before, after, ())
    applied = [one.patch for one in seen.applied]
    if not applied:
        return names.nothing("diff", seen, "No patches applied", ExitCode.FAILED)
    index = Upto(name).index(applied, "applied") if name else len(applied) - 1
    one = seen.applied[index]
    at = seen.survey.stack.index(one)
    paths = [change.path for change in one.changes]
    below = yield from _files(aim, seen, at, paths)
    above = yield from _files(aim, seen, at + 1, paths)
    return _diffs("diff", seen, below, above, only)


def _unrecorded(seen: view.Sight, named: tuple[str, ...]) -> list[str]:
    """Return those of the named files that no patch touches, and that differ from RECORD."""
    out = []
    for path in named:
        found = seen.survey.files[path]
        if found.state.sha256 is None and found.recorded is None:
            raise PatchqError(
                f"{path} is no file of {seen.survey.site}",
                why="it is not there, and RECORD does not list it",
                mend="patchq diff -z   # names the files that differ",
            )
        if found.recorded is not None and found.recorded != found.state.sha256:
            out.append(path)
    known = names.drifted(seen)
    return [path for path in out if path not in known]


def _files(
    aim: view.Aim, seen: view.Sight, count: int, paths: list[str]
) -> Conversation[dict[str, bytes | None]]:
    """Return files as the lowest `count` patches of the stack leave them."""
    stack = seen.survey.stack[:count]
    inside = [p for p in paths if any(c.path == p for a in stack for c in a.changes)]
    tree = yield from files.rebuild(aim, seen, stack, inside)
    out = {path: file and file[0] for path, file in tree.items()}
    rest = [path for path in paths if path not in out]
    if rest:
        out.update((yield from files.originals(aim, seen, rest)))
    return out


def _recorded_bytes(
    aim: view.Aim, seen: view.Sight, paths: list[str]
) -> Conversation[dict[str, bytes | None]]:
    """Return what drifted files should hold: by the stack, else by the release store."""
    stacked = standing.recorded(seen.survey.stack)
    ours = [path for path in paths if path in stacked]
    out = yield from _files(aim, seen, len(seen.survey.stack), ours)
    rest = [path for path in paths if path not in stacked]
    if rest:
        installed = seen.survey.installed
        release = seen.choice.release if seen.choice else ""
        if release not in seen.queue.releases and installed is not None:
            release = standing.public(installed.version)
        have = pristine.texts(aim.cache(), seen.queue.distribution, release, rest)
        if not have:
            raise pristine.unknown(seen.queue.distribution, release)
        out.update({path: have.get(path) for path in rest})
    return out


def _diffs(
    verb: str,
    seen: view.Sight,
    before: dict[str, bytes | None],
    after: dict[str, bytes | None],
    only: tuple[str, ...],
) -> Report:
    unknown = [path for path in only if path not in after]
    if unknown:
        raise PatchqError(
            f"{unknown[0]} has no difference here",
            why=f"files that differ: {', '.join(sorted(after)) or 'none'}",
            mend="patchq files",
        )
    paths = [path for path in after if not only or path in only]
    text = b"".join(diff.unified(before.get(p), after[p], p) for p in paths)
    shown = text.decode("utf-8", "surrogateescape")
    document = {"verb": verb, "queue": seen.queue.name, "files": paths, "diff": shown}
    return Report(tuple(shown.split("\n")[:-1]) if shown else (), (), document)
