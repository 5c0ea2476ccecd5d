"""`fetch --from-host`: the text of a build that no index keeps, from where it is installed.

Bytes are pristine where they equal the environment's own RECORD, and it holds no state of
ours; one file that differs and nothing is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchq.audit import verified
from patchq.conversation import answers, look, verify, view
from patchq.errors import PatchqError
from patchq.model import Survey, sha256
from patchq.report import Report
from patchq.transport.channel import Conversation

if TYPE_CHECKING:
    from patchq.releases.note import WheelNote
    from patchq.releases.record import Row

# What speaks against changing a distribution, and against believing its RECORD, too.
_UNPROVEN = ("editable", "installed-twice", "no-record", "not-installed")
# Contents and files of one answer.
_BATCH, _FILES = 24 << 20, 2000
# All text together, as of a wheel; names in one message.
_TOTAL, _NAMED = 1 << 29, 40


def take(aim: view.Aim, distribution: str, host: str) -> Conversation[Report]:
    """Keep what is installed as a release of the store, and report what `fetch` does.

    Raises:
        PatchqError: something there is not what RECORD says, or patches are on.
    """
    from patchq.releases import build

    survey = yield from _survey(aim, distribution, ())
    have = survey.installed
    assert have is not None
    reply = yield aim.request("hash", distribution, skip=list(verify.BINARIES), known=[])
    ok = reply.message["ok"]
    text = reply.blobs.get(ok.get("record"))
    rows = verify.rows(text, survey.site)
    seen = verify.seen_of(ok, {})
    _refuse_edited(distribution, survey.site, seen)
    info = yield from _info(aim, distribution)
    named = build.candidate(have.name, have.version, info)
    texts = {path: row for path, row in rows.items() if build.is_text(path, row)}
    files: list[tuple[str, bytes, bool]] = []
    count = 3
    for batch in _batches(texts):
        files += yield from _read(aim, distribution, batch, texts)
        count += 1
    where = f"{survey.site} on {host}" if host else survey.site
    origin = f"RECORD {sha256(text or b'')[:12]} in {where}"
    note = build.add(
        aim.cache() / "releases",
        named,
        sorted(files),
        info,
        text or b"",
        folder=have.dist_info,
        origin=origin,
    )
    return _report(named.distribution, note, files, count, seen)


def _survey(aim: view.Aim, distribution: str, paths: Sequence[str]) -> Conversation[Survey]:
    """Ask for files; refuse an environment that is not as an installer left it."""
    want = view.Want(contents=bool(paths), extra=tuple(paths))
    survey, reply = yield from look.survey(aim, distribution, (), want)
    refusal = survey.refusal
    if refusal is not None and refusal.get("word") in _UNPROVEN:
        raise answers.refused(refusal)
    found = _in_the_way(distribution, survey, bool(reply.message["ok"].get("busy")))
    if found is not None:
        raise PatchqError(
            f"{distribution} in {survey.site} is not as it was installed",
            why=found[0],
            mend=found[1],
        )
    return survey


def _in_the_way(distribution: str, survey: Survey, busy: bool) -> tuple[str, str] | None:
    """Return why what is there is not all an installer's, and what to type; None if it is."""
    from patchq.releases import names

    have = survey.installed
    if have is None or survey.orphaned:
        return survey.orphaned or "nothing is installed", "patchq recover"
    if busy or survey.interrupted:
        return "a transaction is not at its end", "patchq recover"
    if survey.stack:
        on = ", ".join(one.patch for one in survey.stack)
        return f"patches are on: {on}", "patchq pop -a"
    if have.installer == "patchq":
        return "it was laid out by patchq", f"patchq fetch {distribution}==VERSION"
    if names.canonical(have.name) != names.canonical(distribution):
        # What a host says opens no other store than the one that was asked for.
        return f"its METADATA is of {have.name}", "look at that dist-info"
    return None


def _refuse_edited(distribution: str, site: str, seen: verified.Seen) -> None:
    """Raise with every file that is not what RECORD says."""
    wrong = [
        *(
            f"{path} {'is missing' if has is None else 'differs'}"
            for path, has in seen.differs.items()
        ),
        *(f"{path} has no SHA-256 in RECORD" for path in seen.blank),
    ]
    if not wrong:
        return
    shown, more = wrong[:_NAMED], len(wrong) - _NAMED + seen.more
    lines = [*shown, f"and {more} more"] if more > 0 else shown
    raise PatchqError(
        f"{distribution} in {site} is not as its RECORD says",
        why="\n".join(lines),
        mend="take it from a host where nobody edited it, or reinstall it there",
    )


def _info(aim: view.Aim, distribution: str) -> Conversation[Mapping[str, bytes]]:
    """Return the files of the dist-info that there was room for."""
    reply = yield aim.request("read", distribution, info=True)
    named: Mapping[str, Any] = reply.message["ok"]["info"]
    return {name: reply.blobs[one] for name, one in named.items() if one is not None}


def _batches(texts: Mapping[str, Row]) -> Iterator[list[str]]:
    """Yield the paths in parts that fit into an answer.

    Raises:
        PatchqError: together they are more than a wheel may have.
    """
    from patchq.releases import wheel

    total = sum(row.size or 0 for row in texts.values())
    if total > _TOTAL:
        raise PatchqError(
            "the text is too much to be kept",
            why=f"RECORD says {total} bytes, patchq takes at most {_TOTAL}",
            mend="look at RECORD there",
        )
    batch, size = list[str](), 0
    for path, row in sorted(texts.items()):
        more = wheel.LIMIT if row.size is None else row.size
        if batch and (size + more > _BATCH or len(batch) == _FILES):
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += more
    if batch:
        yield batch


def _read(
    aim: view.Aim, distribution: str, batch: Sequence[str], texts: Mapping[str, Row]
) -> Conversation[list[tuple[str, bytes, bool]]]:
    """Return files with their bytes, each checked here by RECORD's row."""
    from patchq.releases import record

    survey = yield from _survey(aim, distribution, batch)
    out = []
    for path in batch:
        state = survey.files[path].state
        data = survey.contents.get(state.sha256) if state.sha256 else None
        try:
            if data is None:
                raise record.RecordError(f"{path} has gone")
            record.check(path, texts[path], data)
        except record.RecordError as error:
            raise PatchqError(
                f"{distribution} in {survey.site} changed while it was read",
                why=str(error),
                mend="find out who writes there, then run it again",
            ) from error
        out.append((path, data, state.executable))
    return out


def _report(
    distribution: str,
    note: WheelNote,
    files: Sequence[tuple[str, bytes, bool]],
    requests: int,
    seen: verified.Seen,
) -> Report:
    from patchq.releases.fetch import Fetched

    done = Fetched(
        distribution,
        note.release,
        note.tree,
        len(files),
        note.filename,
        note.size,
        sum(len(data) for _, data, _ in files),
        requests,
        note.verified,
        note.origin is None,
        origin=note.origin,
    )
    notes = []
    if note.origin is None:
        notes.append(f"{note.filename} was fetched before, and has this very text")
    if seen.added:
        some = list(seen.added)
        more = f" and {len(some) - 3} more" if len(some) > 3 else ""
        notes.append(f"left out, since RECORD does not list it: {', '.join(some[:3])}{more}")
    return Report((), tuple(notes), {"verb": "fetch", **done.to_json()})
