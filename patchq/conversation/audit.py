"""`audit`: which word each queue deserves in one environment. Nothing is written there.

One survey per distribution, hashes only; files are read only to judge sketches, where no
series fits, and each content once a run.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from patchq import running, standing
from patchq.audit import document, judge, verified
from patchq.audit.finding import Case, Finding, Receipt, Word, some
from patchq.conversation import answers, look, selection, upstream, verify, view
from patchq.errors import ExitCode, PatchqError
from patchq.model import Survey
from patchq.queue import store
from patchq.queue.history import History
from patchq.report import Report
from patchq.transport.channel import Conversation

# Rows of one environment.
_MOST = 500
_WANT = view.Want(more=("last", "records", "running"))


def audit(aim: view.Aim, verifying: bool = False) -> Conversation[Report]:
    """Say a word for each queue in sight, and for each that is on the record there.

    `verifying`: every text file of a distribution is hashed, too.
    """
    todo = list(dict.fromkeys(queue.distribution for queue in aim.queues))
    rows: list[dict[str, Any]] = []
    if not todo:
        reply = yield aim.request("records", "")
        todo += reply.message["ok"]["records"]
    told: list[str] | None = None
    for distribution in todo:
        found, more = yield from _rows(aim, distribution, verifying)
        rows += found
        if told is None:  # once: a host that names others each time would be asked for ever
            told = more
            known = set(map(_normal, todo))
            todo += [name for name in more if _normal(name) not in known]
        if len(rows) > _MOST:
            raise PatchqError(
                f"the environment has more than {_MOST} rows",
                why="its record names a queue for each of them",
                mend="look at .patchq/DISTRIBUTION/state.json there; set it aside if it is broken",
            )
    if not rows:
        raise selection.none(aim, [])
    rows = _told(aim, rows)
    if len(rows) > 1:
        for row in rows:
            row["mend"] = view.queued(row["mend"] or "", row["queue"]) or None
    good = all(map(document.good, rows))
    lines = tuple(
        f"{row['queue']}  {row['version'] or '-'}  {row['word']}  {row['why']}".rstrip()
        for row in rows
    )
    code = ExitCode.DONE if good else ExitCode.FINDING
    return Report(lines, (), {"verb": "audit", "rows": rows}, code)


def _told(aim: view.Aim, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows to tell, each with whether its queue is wanted there."""
    wanted = frozenset(aim.wanted if aim.name is None else (aim.name,))
    for row in rows:
        row["wanted"] = row["queue"] in wanted
    if aim.name is not None:
        return rows
    # A queue of what is not installed is nothing to speak of beside others.
    return [one for one in rows if one["wanted"] or one["word"] != Word.ABSENT.value] or rows


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _rows(
    aim: view.Aim, distribution: str, verifying: bool
) -> Conversation[tuple[list[dict[str, Any]], list[str]]]:
    """Return the rows of one distribution, and the distributions that have a record there."""
    queues = [queue for queue in aim.queues if queue.distribution == distribution]
    every = [lock for queue in queues for lock in aim.locks(queue).values()]
    survey, reply = yield from look.survey(aim, distribution, every, _WANT)
    ok = reply.message["ok"]
    checked = None
    if verifying and survey.installed is not None:
        locks = {queue.name: aim.locks(queue) for queue in queues}
        checked = yield from verify.verify(aim, distribution, survey, locks)
    rows = []
    for case, queue in _cases(aim, queues, survey, ok):
        finding = judge.judge(case)
        if finding.word is Word.NO_SERIES and case.in_sight:
            proof = yield from upstream.proof(aim, queue, survey)
            if proof:
                finding = Finding(Word.UPSTREAM, proof)
        if checked is not None:
            finding = verified.judged(finding, checked, bool(survey.stack))
        rows.append(_row(distribution, case, finding, checked, ok))
    return rows, list(ok.get("records") or ())


def _cases(
    aim: view.Aim, queues: list[store.Queue], survey: Survey, ok: Mapping[str, Any]
) -> Iterator[tuple[Case, store.Queue]]:
    """Yield a case per queue in sight, and per queue that is on record and is not."""
    last = _last(ok)
    orphans = answers.stack_of(ok) if survey.orphaned else []
    recorded = [one.queue for one in survey.stack] + [one["queue"] for one in orphans]
    if last is not None and not survey.stack and not survey.orphaned:
        recorded += [name for name, _, _ in last.applied]
    known = {queue.name for queue in queues}
    hidden = [
        store.Queue(name, Path(name), "", summary="")
        for name in dict.fromkeys(recorded)
        if name not in known and aim.name in (None, name)
    ]
    for queue in (*queues, *hidden):
        # What a host calls its queues is no folder of this machine.
        seen = queue.name in known
        past = (
            aim.shared.once(("history", queue.folder), functools.partial(History, queue))
            if seen
            else History(queue)
        )
        case = Case(
            queue.name,
            survey,
            aim.locks(queue) if seen else {},
            in_sight=seen,
            last=last,
            lost=tuple(one["patch"] for one in orphans if one["queue"] == queue.name),
            moved=_moved(survey, ok),
            busy=ok.get("busy"),
            past=past.past,
            edited=past.edited,
            dirty=past.is_dirty,
        )
        yield case, queue


def _moved(survey: Survey, ok: Mapping[str, Any]) -> bool:
    """Return whether the journal that is there is of another dist-info than the installed."""
    journal = (survey.interrupted or {}).get("dist_info")
    have = ok.get("installed")
    if not isinstance(journal, dict) or not have:
        return False
    now = (have["dist_info"], have.get("metadata"))
    return now != (journal.get("name"), journal.get("metadata"))


def _last(ok: Mapping[str, Any]) -> Receipt | None:
    """Return the ledger's last receipt, None where there is none that has its form."""
    found = answers.receipts_of(ok)
    if not found:
        return None
    one = found[-1]
    applied = one.get("applied")
    return Receipt(
        one["id"],
        one["time"],
        one["verb"],
        str(one.get("who") or "somebody"),
        str(one.get("whence") or "?"),
        str(one["commit"]) if one.get("commit") else None,
        bool(one.get("dirty")),
        tuple(
            (str(each[0]), str(each[1]), str(each[2]))
            for each in (applied if isinstance(applied, list) else ())
            if isinstance(each, list) and len(each) == 3
        ),
    )


def _record_broken(survey: Survey) -> str | None:
    """Return what RECORD lacks of what a push puts into it, or that it cannot be read."""
    if survey.installed is None:
        return None
    if not survey.installed.record:
        return "RECORD is gone"
    files = survey.files.values()
    there = [one for one in files if one.state.sha256 is not None]
    if there and all(one.recorded is None for one in there):
        return "RECORD has no digest of any file that the queue touches"
    says = standing.recorded(survey.stack)
    other = [
        path
        for path, state in says.items()
        if (found := survey.files.get(path)) is not None
        and found.state == state
        and found.recorded != state.sha256
    ]
    return f"RECORD does not say what was pushed: {some(other)}" if other else None


def _row(
    distribution: str,
    case: Case,
    finding: Finding,
    checked: verified.Checked | None,
    ok: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a finding as ``--json`` has it (docs/formats.md)."""
    survey = case.survey
    broken = ok.get("ledger_broken")
    why = f"{finding.why}; the ledger is not whole: {broken}" if broken else finding.why
    record = _record_broken(survey)
    why = f"{why}; {record}" if record else why
    ephemeral = bool(ok.get("ephemeral"))
    why = f"{why}; ephemeral" if ephemeral and case.held else why
    live = None if survey.orphaned else running.read(ok.get("running"))
    lock = case.locks.get(finding.release or "")
    row: dict[str, Any] = {
        "queue": case.queue,
        "distribution": distribution,
        "version": survey.installed.version if survey.installed else None,
        "release": finding.release,
        "word": finding.word.value,
        "why": why,
        "mend": finding.mend or None,
        "paths": list(finding.paths),
        "patches": [one.patch for one in case.held],
        "series": [one.name for one in lock.patches] if lock else [],
        "behind": finding.behind,
        "commit": finding.commit,
        "receipt": case.last.to_json() if case.last else None,
        "ledger_broken": broken,
        "record_broken": record,
        "site": survey.site or None,
        "python": survey.python,
        "environment": survey.environment or None,
        "ephemeral": ephemeral,
        "running": live.to_json() if live else None,
        "refusal": dict(survey.refusal) if survey.refusal else None,
    }
    return row if checked is None else row | checked.to_json()
