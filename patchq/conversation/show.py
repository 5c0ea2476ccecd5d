"""Looking into it: check, diff and log."""

from __future__ import annotations

from typing import Any

from patchq import standing
from patchq.conversation import answers, files, look, names, pristine, view
from patchq.conversation.checking import check as check  # the verbs that look in, in one place
from patchq.conversation.goal import Upto
from patchq.engine import diff
from patchq.errors import ExitCode, PatchqError
from patchq.report import Report
from patchq.transport.channel import Conversation

# How the log marks patches, by the direction in which they went.
SIGNS = (("push", "+"), ("pop", "-"))


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
        out.update((yield from files.read(aim, seen, rest, originals=True)))
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


def log(aim: view.Aim) -> Conversation[Report]:
    """Show the environment's receipts, newest first, and whether the ledger is whole."""
    seen = yield from look.sight(aim, view.Want(more=("ledger",)), need=view.Need.RECORD)
    receipts = answers.receipts_of(seen.extra)
    broken = seen.extra.get("ledger_broken")
    lines = [line for one in reversed(receipts) for line in _receipt(one)]
    if not receipts and not broken:
        return names.nothing("log", seen, "No receipts", ExitCode.NOTHING_TO_DO)
    notes = (f"the ledger is not whole: {broken}",) if broken else ()
    document = {"verb": "log", "receipts": receipts, "ledger_broken": broken}
    code = ExitCode.FINDING if broken else ExitCode.DONE
    return Report(tuple(lines), notes, document, code)


def _receipt(one: dict[str, Any]) -> list[str]:
    """Return one receipt as lines: who and when, what of, which files, which patches."""
    there = one.get("user")
    as_ = "" if there == one.get("who") else f" as {there or 'user'} (uid {one.get('uid')})"
    first = f"{one['id']}  {one['time']}  {one['verb']}  {one.get('who')}"
    text = f", commit {str(one['commit'])[:12]}" if one.get("commit") else ""
    text += " (with uncommitted changes)" if one.get("dirty") else ""
    text += f", {one['outcome']}" if one.get("outcome") else ""
    lines = [
        f"{first} from {one.get('whence')}{as_}",
        f"    queue {one['queue']}, series {one.get('release')}{text}",
    ]
    effect = one.get("effect")
    if isinstance(effect, dict):
        before, after = (str(effect.get(key))[:12] for key in ("before", "after"))
        lines[1] += f", effect {before} -> {after}"
    moves = [(sign, p) for verb, sign in SIGNS for p in one["patches"].get(verb) or ()]
    return lines + [f"    {sign} {patch['patch']}" for sign, patch in moves]
